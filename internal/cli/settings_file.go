package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is the maximum size of a settings file.
const maxFile = 64 << 10

// readSettings reads a settings file. The file may be missing unless named is true.
//
// The syntax tree is read instead of decoding into a struct, so that errors name the line,
// and so that anchors and numbers in place of strings are refused. The parser itself refuses
// duplicate keys.
func readSettings(path string, named bool, known func() (map[string]*kong.Flag, error)) (map[string]any, error) {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return make(map[string]any), nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("settings file %s does not exist: create it, or correct --config", path)
	}
	if err != nil {
		return nil, fmt.Errorf("settings file %s %w", path, err)
	}
	f := settingsFile{path: path}
	if f.known, err = known(); err != nil {
		return nil, err
	}
	return f.parse(text)
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be opened: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("is larger than %d KiB: it must contain only settings", maxFile>>10)
	case !utf8.Valid(text):
		return nil, errors.New("is not valid UTF-8")
	}
	return bytes.TrimPrefix(text, []byte("\uFEFF")), nil
}

type settingsFile struct {
	path  string
	known map[string]*kong.Flag
}

// at returns an error about a line.
func (f settingsFile) at(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", f.path, line, fmt.Sprintf(format, args...))
}

func (f settingsFile) parse(text []byte) (map[string]any, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, f.syntax(err)
	}
	values := make(map[string]any)
	for i, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		line := doc.Body.GetToken().Position.Line
		mapping, ok := doc.Body.(*ast.MappingNode)
		if !ok || i > 0 {
			return nil, f.at(line, "must have one list of settings, each \"name: value\"")
		}
		for _, pair := range mapping.Values {
			if err := f.pair(values, pair); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// syntax returns an error with the line of a syntax error. The error of the library would
// show the surrounding lines, which may contain a password.
func (f settingsFile) syntax(err error) error {
	syntax, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok || syntax.Token == nil {
		return fmt.Errorf("settings file %s is not valid YAML", f.path)
	}
	return f.at(syntax.Token.Position.Line, "%s", syntax.Message)
}

func (f settingsFile) pair(values map[string]any, pair *ast.MappingValueNode) error {
	line := pair.Key.GetToken().Position.Line
	key, ok := pair.Key.(*ast.StringNode)
	if !ok {
		return f.at(line, "must have the name of a setting, got %s", describeNode(pair.Key))
	}
	flag, ok := f.known[key.Value]
	if !ok {
		return f.at(line, "%q is not a setting: did you mean %q?", key.Value, nearest(key.Value, f.known))
	}
	value, err := f.value(flag, pair.Value)
	if err != nil {
		return f.at(line, "%s %v", key.Value, err)
	}
	values[key.Value] = value
	return nil
}

func (f settingsFile) value(flag *kong.Flag, node ast.Node) (any, error) {
	if _, ok := flag.Target.Interface().(bool); ok {
		b, ok := node.(*ast.BoolNode)
		if !ok {
			return nil, fmt.Errorf("must be true or false, got %s", describeNode(node))
		}
		return b.Value, nil
	}
	if _, ok := flag.Target.Interface().(int); ok {
		n, ok := node.(*ast.IntegerNode)
		if !ok {
			return nil, fmt.Errorf("must be an integer, got %s", describeNode(node))
		}
		return parseSetting(flag, n.Token.Value)
	}
	if list, ok := node.(*ast.SequenceNode); ok && (flag.IsSlice() || flag.Tag.Has("commas")) {
		return f.list(list, flag)
	}
	if _, named := node.(*ast.MappingNode); named && flag.Tag.Has("mapping") {
		return f.mapping(node.(*ast.MappingNode))
	}
	s, ok := node.(*ast.StringNode)
	if _, duration := flag.Target.Interface().(time.Duration); !ok && duration {
		return nil, fmt.Errorf("must be a duration of 0 or more, such as 30s or 2m, got %s", describeNode(node))
	}
	if !ok {
		return nil, fmt.Errorf("must be a string on one line, got %s: put the value in quotes to make it a string", describeNode(node))
	}
	return parseSetting(flag, s.Value)
}

// mapping converts named objects with options to the values of a repeatable flag, each NAME:option=value,… .
func (f settingsFile) mapping(node *ast.MappingNode) (any, error) {
	var all []any
	for _, one := range node.Values {
		options, ok := one.Value.(*ast.MappingNode)
		if _, none := one.Value.(*ast.NullNode); !ok && !none {
			return nil, fmt.Errorf("must have options for %s, got %s", one.Key.GetToken().Value, describeNode(one.Value))
		}
		var parts []string
		if ok {
			for _, o := range options.Values {
				text, err := f.option(o.Value)
				if err != nil {
					return nil, fmt.Errorf("%s of %s %w", o.Key.GetToken().Value, one.Key.GetToken().Value, err)
				}
				parts = append(parts, o.Key.GetToken().Value+"="+text)
			}
		}
		all = append(all, one.Key.GetToken().Value+":"+strings.Join(parts, ","))
	}
	return all, nil
}

// option converts the value of an option: a number, a string, or a list of strings, which it joins with spaces. In the text of the
// flag, semicolons separate the objects, commas their options, and spaces the strings of a list; so no string may contain a
// comma or semicolon, and no string of a list white space.
func (f settingsFile) option(node ast.Node) (string, error) {
	if n, ok := node.(*ast.IntegerNode); ok {
		return n.Token.Value, nil
	}
	values := []ast.Node{node}
	list, isList := node.(*ast.SequenceNode)
	if isList {
		values = list.Values
	}
	var texts []string
	for _, v := range values {
		s, ok := v.(*ast.StringNode)
		if !ok || strings.ContainsAny(s.Value, ",;") || isList && strings.ContainsFunc(s.Value, unicode.IsSpace) {
			return "", fmt.Errorf("must be a number, a string, or a list of strings, without commas and semicolons, and in a list also without spaces, got %s", describeNode(v))
		}
		texts = append(texts, s.Value)
	}
	return strings.Join(texts, " "), nil
}

// list converts a list of strings to the value of a repeatable flag, or of one whose values commas separate.
func (f settingsFile) list(node *ast.SequenceNode, flag *kong.Flag) (any, error) {
	all, texts := make([]any, len(node.Values)), make([]string, len(node.Values))
	for i, one := range node.Values {
		s, ok := one.(*ast.StringNode)
		if !ok {
			return nil, fmt.Errorf("must be a list of strings, but item %d is %s", i+1, describeNode(one))
		}
		all[i], texts[i] = s.Value, s.Value
	}
	if !flag.IsSlice() {
		return strings.Join(texts, ","), nil
	}
	return all, nil
}

// describeNode describes the type of a node for an error.
func describeNode(node ast.Node) string {
	switch node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "an empty value"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor or an alias, which are not supported"
	case *ast.StringNode:
		return "a string"
	default:
		return "something else (" + node.Type().String() + ")"
	}
}

// nearest returns the known name with the smallest edit distance.
func nearest(name string, known map[string]*kong.Flag) string {
	names := slices.Sorted(maps.Keys(known))
	return slices.MinFunc(names, func(a, b string) int { return edits(name, a) - edits(name, b) })
}

// edits returns the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
