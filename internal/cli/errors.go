package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/fault"
)

// misuse returns a validation error about the command line, which exits with code 2.
func misuse(format string, args ...any) error { return fault.New(fault.Validation, format, args...) }

// exitCode returns 2 for wrong usage, 3 for a server or a database that is unreachable,
// and 1 for all other errors.
func exitCode(err error) int {
	_, usage := errors.AsType[*usageError](err)
	switch code := fault.CodeOf(err); {
	case usage || code == fault.Validation:
		return 2
	case code == fault.Unavailable && !errors.Is(err, errNoAddress):
		return 3
	}
	return 1
}

// report prints an error on one line. The wrapped cause goes to the debug log.
func (p *program) report(err error) {
	fmt.Fprintf(p.stderr, "holdfast: %s\n", redact(oneLine(message(err))))
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Unwrap() != nil {
		p.log.Debug("cause of the error", "error", f.Unwrap())
	}
}

// message returns the text of an error with its code moved to the end, where the code can
// be searched for and does not disturb reading.
func message(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		text := strings.Replace(err.Error(), string(f.Code)+": ", "", 1)
		if cause := causeOf(f); exitCode(err) == 3 && cause != nil { // it names the address and what failed
			text += ": " + cause.Error()
		}
		return text + " (" + string(f.Code) + ")"
	}
	if usage, ok := errors.AsType[*usageError](err); ok {
		return usage.Error() + hint(usage.context)
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return err.Error()
}

// causeOf returns the cause of an error, without the request that failed.
func causeOf(f *fault.Error) error {
	if u, ok := errors.AsType[*url.Error](f.Unwrap()); ok {
		return u.Err
	}
	return f.Unwrap()
}

// hint returns a reference to the help of the command that was used wrongly.
func hint(ctx *kong.Context) string {
	command := "holdfast"
	if ctx.Selected() != nil {
		command = ctx.Selected().FullPath()
	}
	return fmt.Sprintf(" (see %q)", command+" --help")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

var (
	secretInURL = regexp.MustCompile(`(://[^\s/:@]*):\S*@`)
	secretInDSN = regexp.MustCompile(`(?i)((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'"]+)`)
)

// redact removes passwords from a text before it is shown. It is a second line of defense:
// error texts should not contain passwords.
func redact(s string) string {
	s = secretInURL.ReplaceAllString(s, "$1:***@")
	return secretInDSN.ReplaceAllString(s, "$1***")
}
