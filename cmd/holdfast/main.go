// Command holdfast serves the engine over HTTP and looks after its database.
package main

import (
	"os"
	"runtime/debug"

	"github.com/holdfast-go/holdfast/internal/cli"
)

// softLimit is up to where the heap may grow before garbage is collected more often than by its default, which
// lets it be twice what is in use. What is in use is bounded elsewhere; this bounds what a burst of large values leaves behind.
const softLimit = 224 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
