// Command holdfast serves the engine over HTTP and manages its database.
package main

import (
	"os"
	"runtime/debug"

	"github.com/holdfast-go/holdfast/internal/cli"
)

// softLimit is the memory above which garbage is collected more often than by default, which lets the heap grow to
// twice the memory in use. Memory in use is bounded elsewhere; this limits the garbage of a burst of large values.
const softLimit = 224 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
