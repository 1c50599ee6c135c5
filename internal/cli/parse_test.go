package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// TestParseAgreesWithKong verifies that command lines are accepted or refused as by Parse of kong, with the same errors.
func TestParseAgreesWithKong(t *testing.T) {
	testlevel.Long(t)
	testlevel.OneGoroutine(t)
	t.Chdir(t.TempDir())
	p := newProgram(nil, io.Discard, io.Discard)
	all, err := p.parser(&grammar{})
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	check := func(ours, theirs *kong.Kong, lines []string) {
		for _, line := range lines {
			forget(ours)
			forget(theirs)
			_, want := theirs.Parse(strings.Fields(line))
			_, got := p.parse(ours, strings.Fields(line))
			if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
				t.Errorf("holdfast %s: got error %v, kong returns %v", line, got, want)
			}
			if want == nil {
				accepted++
			} else {
				refused++
			}
		}
	}
	check(all, all, []string{"", "--log-level loud", "--log-level debug", "--config", "keys", "version -o yaml", "nothing", "--nothing", "completion", "completion ksh"})
	for _, command := range all.Model.Children {
		if command.Hidden || command.Name == "completion" { // these are parsed with the whole grammar, which is slow
			continue
		}
		var both [2]*kong.Kong // with this command alone
		for i := range both {
			if both[i], err = p.parser(&grammar{}, only(command.Name)...); err != nil {
				t.Fatal(err)
			}
		}
		_ = kong.Visit(command, func(x kong.Visitable, next kong.Next) error {
			if n, ok := x.(*kong.Node); ok {
				check(both[0], both[1], commandLines(strings.TrimPrefix(n.FullPath(), "holdfast "), n))
			}
			return next(nil)
		})
	}
	if accepted < 500 || refused < 500 {
		t.Errorf("kong accepted %d command lines and refused %d, want at least 500 of each", accepted, refused)
	}
}

// commandLines returns command lines of a command, complete ones and others: with a number of arguments, of which the last ones
// may be missing or too many, with the required flags or without, and with a wrong value of each flag.
func commandLines(path string, n *kong.Node) (lines []string) {
	var flags, args []string
	for _, f := range n.Flags {
		if f.Required {
			flags = append(flags, "--"+f.Name+"="+sample(f.Value))
		}
	}
	for _, a := range n.Positional {
		args = append(args, sample(a))
	}
	all := path + " " + strings.Join(append(flags, args...), " ")
	lines = append(lines, all, all+" -- extra", path+" "+strings.Join(args, " "))
	for i := range args {
		lines = append(lines, path+" "+strings.Join(append(flags, args[:i]...), " "),
			path+" "+strings.Join(append(append(flags, args[:i]...), append([]string{"?"}, args[i+1:]...)...), " "))
	}
	for _, f := range n.Flags {
		lines = append(lines, all+" --"+f.Name+"=?", path+" --"+f.Name)
	}
	return lines
}

// sample returns a value of a flag or an argument.
func sample(v *kong.Value) string {
	if v.Enum != "" {
		return v.EnumSlice()[len(v.EnumSlice())-1]
	}
	return "1"
}
