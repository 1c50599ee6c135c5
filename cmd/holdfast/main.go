// Command holdfast serves the engine over HTTP and looks after its database.
package main

import (
	"os"

	"github.com/holdfast-go/holdfast/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
