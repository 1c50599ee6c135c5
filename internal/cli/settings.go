package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"
)

const defaultFile = "holdfast.yaml"

// variable returns the environment variable of a setting.
func variable(name string) string {
	return "HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// addSettings adds the settings of the file and the environment to a parsed command line. The settings of
// other commands are validated too, so that every command finds a mistake in the shared file.
func (p *program) addSettings(ctx *kong.Context) error {
	selected, all := settings(ctx.Model.Node), sync.OnceValues(p.allSettings)
	values, err := p.fileSettings(ctx, all)
	if err != nil {
		return err
	}
	for env, text := range p.env {
		name := setting(env)
		if name == "" || text == "" { // counts as unset, because some shells cannot unset a variable
			continue
		}
		flag := selected[name]
		if flag == nil {
			known, err := all()
			if err != nil {
				return err
			}
			if flag = known[name]; flag == nil {
				continue
			}
		}
		value, err := parseSetting(flag, text)
		if err != nil {
			return fmt.Errorf("%s %w", env, err)
		}
		values[name] = value
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		return values[flag.Name], nil
	}))
	return nil
}

// setting returns the setting of an environment variable, or "".
func setting(env string) string {
	name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(env, "HOLDFAST_")), "_", "-")
	if variable(name) != env {
		return ""
	}
	return name
}

// allSettings returns the settings of all commands. The parser of a command line has only those of its command.
func (p *program) allSettings() (map[string]*kong.Flag, error) {
	parser, err := p.parser(&grammar{})
	if err != nil {
		return nil, err
	}
	return settings(parser.Model.Node), nil
}

// settings returns the flags of a node and its commands that are settings. A flag that several commands
// share is the same for each.
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

// isSetting reports whether a flag can be set by a variable or the file. A flag of one
// invocation cannot: HOLDFAST_ID in the environment must not name every entity.
func isSetting(f *kong.Flag) bool {
	return f.Name != "help" && f.Name != "config" && f.Tag.Get("setting") != "-"
}

// fileSettings reads the file that --config names, or the default file if it exists.
func (p *program) fileSettings(ctx *kong.Context, known func() (map[string]*kong.Flag, error)) (map[string]any, error) {
	named := p.env[variable("config")]
	for _, path := range ctx.Path {
		if path.Flag != nil && path.Flag.Name == "config" {
			named = ctx.Value(path).String()
		}
	}
	return readSettings(cmp.Or(named, defaultFile), named != "", known)
}

// parseSetting parses text into the value of a flag. The error states the expected value.
func parseSetting(flag *kong.Flag, text string) (any, error) {
	switch flag.Target.Interface().(type) {
	case bool:
		return parseBool(text)
	case time.Duration:
		if d, err := time.ParseDuration(text); err != nil || d < 0 {
			return nil, fmt.Errorf("must be a duration of 0 or more, such as 30s or 2m, got %q", text)
		}
	case int:
		if n, err := strconv.Atoi(text); err != nil || n < 0 {
			return nil, fmt.Errorf("must be an integer of 0 or more, got %q", text)
		}
	default:
		if flag.Enum != "" && !slices.Contains(flag.EnumSlice(), text) {
			return nil, fmt.Errorf("must be %s, got %q", strings.Join(flag.EnumSlice(), " or "), text)
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
	return nil, fmt.Errorf("must be true or false, got %q", text)
}
