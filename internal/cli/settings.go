package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

const defaultFile = "holdfast.yaml"

// variable is the name in the environment of a setting.
func variable(name string) string {
	return "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// BeforeResolve is called by kong when it has read the command line. It reads
// the file and the environment whole, also what belongs to other commands: a
// mistake in a file shared by all is found by the first of them.
func (g *grammar) BeforeResolve(ctx *kong.Context, p *program) error {
	known := settings(ctx.Model.Node)
	values, err := p.fileSettings(ctx, known)
	if err != nil {
		return err
	}
	for name, flag := range known {
		text := p.env[variable(name)]
		if text == "" { // as good as not set: a shell cannot always unset one
			continue
		}
		value, err := parseSetting(flag, text)
		if err != nil {
			return fmt.Errorf("%s %w", variable(name), err)
		}
		values[name] = value
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		return values[flag.Name], nil
	}))
	return nil
}

// settings returns the flags of all commands that may be set from outside the
// command line. Where commands share a flag it is the same for each.
func settings(node *kong.Node) map[string]*kong.Flag {
	all := make(map[string]*kong.Flag)
	for _, f := range node.Flags {
		if isSetting(f) {
			all[f.Name] = f
		}
	}
	for _, child := range node.Children {
		for name, f := range settings(child) {
			all[name] = f
		}
	}
	return all
}

// isSetting says whether a flag may be set from outside the command line. What
// belongs to one use of a verb may not: who has HOLDFAST_ID in the environment does
// not mean every entity by it.
func isSetting(f *kong.Flag) bool {
	return f.Name != "help" && f.Name != "config" && f.Tag.Get("setting") != "-"
}

// fileSettings reads the file that was named, or the one that is there.
func (p *program) fileSettings(ctx *kong.Context, known map[string]*kong.Flag) (map[string]any, error) {
	named := p.env[variable("config")]
	for _, path := range ctx.Path {
		if path.Flag != nil && path.Flag.Name == "config" {
			named = ctx.Value(path).String()
		}
	}
	return readSettings(cmp.Or(named, defaultFile), named != "", known)
}

// parseSetting turns text into the value of a flag, or says what is wanted.
func parseSetting(flag *kong.Flag, text string) (any, error) {
	switch flag.Target.Interface().(type) {
	case bool:
		return parseBool(text)
	case time.Duration:
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			return nil, fmt.Errorf("wants a duration such as 30s or 2m, and is %q", text)
		}
	case int:
		if n, err := strconv.Atoi(text); err != nil || n < 0 {
			return nil, fmt.Errorf("wants a whole number, and is %q", text)
		}
	default:
		if flag.Enum != "" && !slices.Contains(flag.EnumSlice(), text) {
			return nil, fmt.Errorf("wants %s, and is %q", strings.Join(flag.EnumSlice(), " or "), text)
		}
	}
	return text, nil
}

func parseBool(text string) (any, error) {
	switch strings.ToLower(text) {
	case "true", "1", "yes":
		return true, nil
	case "false", "0", "no":
		return false, nil
	}
	return nil, fmt.Errorf("wants true or false, and is %q", text)
}
