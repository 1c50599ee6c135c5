package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// usageError is the error of a command line that cannot be run.
type usageError struct {
	error
	context *kong.Context
}

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.error }

// parse parses a command line. It does what Parse of kong does, except that it does not look for methods by their names: a program
// in which any code does that contains all exported methods of all types, because the linker cannot know which are called.
func (p *program) parse(k *kong.Kong, args []string) (*kong.Context, error) {
	ctx, err := kong.Trace(k, args)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return ctx.Error },
		func() error { return help(ctx) },
		ctx.Reset,
		func() error { return p.addSettings(ctx) },
		ctx.Resolve,
		func() error { _, err := ctx.Apply(); return err },
		func() error { return checkUsage(ctx) },
	} {
		if err := step(); err != nil {
			return nil, &usageError{err, ctx}
		}
	}
	return ctx, nil
}

// help prints the help, and returns errHelped, if --help is given.
func help(ctx *kong.Context) error {
	if !slices.ContainsFunc(ctx.Path, func(at *kong.Path) bool { return at.Flag != nil && at.Flag.Name == "help" }) {
		return nil
	}
	return errors.Join(ctx.PrintUsage(false), errHelped)
}

// checkUsage verifies that nothing is missing, and that each value of an enum is one of the enum.
func checkUsage(ctx *kong.Context) error {
	for _, at := range ctx.Path {
		node := at.Node()
		if node == nil {
			continue
		}
		for _, v := range node.Values() {
			if v.Enum != "" && (v.Set || !v.Required) {
				if err := checkEnum(v); err != nil {
					return err
				}
			}
		}
		if missing := missingOf(at.Flags, func(f *kong.Flag) *kong.Value { return f.Value }); len(missing) > 0 {
			slices.Sort(missing)
			return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
		}
	}
	node := ctx.Selected()
	if node == nil {
		node = ctx.Model.Node
	}
	var missing []string
	if args := missingOf(node.Positional, func(v *kong.Value) *kong.Value { return v }); len(args) > 0 {
		missing = append(missing, strconv.Quote(strings.Join(args, " ")))
	}
	for _, child := range node.Children {
		if !child.Hidden {
			missing = append(missing, strconv.Quote(child.Name))
		}
	}
	switch {
	case len(missing) > 5:
		missing = append(missing[:5], "...")
		fallthrough
	case len(missing) > 1:
		return fmt.Errorf("expected one of %s", strings.Join(missing, ", "))
	case len(missing) == 1:
		return fmt.Errorf("expected %s", missing[0])
	}
	return nil
}

// missingOf returns a summary of each flag or argument that is required and not set.
func missingOf[T interface{ Summary() string }](all []T, valueOf func(T) *kong.Value) (missing []string) {
	for _, x := range all {
		if v := valueOf(x); v.Required && !v.Set {
			missing = append(missing, x.Summary())
		}
	}
	return missing
}

// checkEnum verifies the value of a flag or an argument.
func checkEnum(v *kong.Value) error {
	got := fmt.Sprint(v.Target.Interface())
	if allowed := v.EnumSlice(); !slices.Contains(allowed, got) {
		for i, x := range allowed {
			allowed[i] = strconv.Quote(x)
		}
		return fmt.Errorf("%s must be one of %s but got %q", v.ShortSummary(), strings.Join(allowed, ","), got)
	}
	return nil
}
