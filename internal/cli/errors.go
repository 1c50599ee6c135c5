package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/fault"
)

// misuse is an error of what was asked for, not of what happened then.
func misuse(format string, args ...any) error { return fault.New(fault.Validation, format, args...) }

// exitCode is 2 for what was asked for wrongly, 3 for a server or a database that does
// not answer, and 1 for all else.
func exitCode(err error) int {
	_, parse := errors.AsType[*kong.ParseError](err)
	switch code := fault.CodeOf(err); {
	case parse || code == fault.Validation:
		return 2
	case code == fault.Unavailable && !errors.Is(err, errNoAddress):
		return 3
	}
	return 1
}

// report prints an error for a person, on one line. What is under it goes to the
// log, for the one who asked for all of it.
func (p *program) report(err error) {
	fmt.Fprintf(p.stderr, "holdfast: %s\n", redact(oneLine(message(err))))
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Unwrap() != nil {
		p.log.Debug("the cause", "error", f.Unwrap())
	}
}

// message is the text of an error with its code at the end, where it helps to
// search for it and does not stand in the way of reading.
func message(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return strings.Replace(err.Error(), string(f.Code)+": ", "", 1) + " (" + string(f.Code) + ")"
	}
	if parse, ok := errors.AsType[*kong.ParseError](err); ok {
		return parse.Error() + hint(parse.Context)
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return err.Error()
}

// hint names the help that goes with a wrong use.
func hint(ctx *kong.Context) string {
	command := "holdfast"
	if ctx != nil && ctx.Selected() != nil {
		command = ctx.Selected().FullPath()
	}
	return fmt.Sprintf(" (see %q)", command+" --help")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

var (
	secretInURL = regexp.MustCompile(`(://[^\s/:@]*):\S*@`)
	secretInDSN = regexp.MustCompile(`(?i)((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'"]+)`)
)

// redact takes passwords out of a text that is about to be shown. Whoever makes
// the text should not put one in; this is the second door.
func redact(s string) string {
	s = secretInURL.ReplaceAllString(s, "$1:***@")
	return secretInDSN.ReplaceAllString(s, "$1***")
}
