package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// bar is a progress bar at the bottom of a terminal. A nil bar shows nothing, for output that
// is not a terminal.
type bar struct {
	out io.Writer
	of  int
}

func newBar(out io.Writer, of int) *bar {
	if !isTerminal(out) {
		return nil
	}
	return &bar{out: out, of: of}
}

func (b *bar) draw(n int) {
	if b != nil {
		fmt.Fprintf(b.out, "  [%s%s] %d of %d", strings.Repeat("=", n), strings.Repeat(" ", b.of-n), n, b.of)
	}
}

func (b *bar) clear() {
	if b != nil {
		io.WriteString(b.out, "\r\x1b[K")
	}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
