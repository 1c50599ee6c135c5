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
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is far more than any settings need.
const maxFile = 64 << 10

// readSettings reads a file of settings. One that was not named may be missing.
//
// The file is read by its syntax tree and not decoded into a struct, because a
// person who mistyped should be told the line, and because what YAML would
// guess at (anchors, a number for a text, a key said twice) is refused.
func readSettings(path string, named bool, known map[string]*kong.Flag) (map[string]any, error) {
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return make(map[string]any), nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the config file %s does not exist", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the config file %s %w", path, err)
	}
	f := settingsFile{path: path, known: known}
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
		return nil, fmt.Errorf("is larger than %d KiB: it holds settings only", maxFile>>10)
	case !utf8.Valid(text):
		return nil, errors.New("is not UTF-8")
	}
	return bytes.TrimPrefix(text, []byte("\uFEFF")), nil
}

type settingsFile struct {
	path  string
	known map[string]*kong.Flag
}

// at makes an error about a line.
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
			return nil, f.at(line, "wants one list of settings, each \"name: value\"")
		}
		for _, pair := range mapping.Values {
			if err := f.pair(values, pair); err != nil {
				return nil, err
			}
		}
	}
	return values, nil
}

// syntax tells where the file stops being YAML. The library's own text would
// show the lines around it, and one of them may have a password.
func (f settingsFile) syntax(err error) error {
	syntax, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok || syntax.Token == nil {
		return fmt.Errorf("%s is not YAML", f.path)
	}
	return f.at(syntax.Token.Position.Line, "%s", syntax.Message)
}

func (f settingsFile) pair(values map[string]any, pair *ast.MappingValueNode) error {
	line := pair.Key.GetToken().Position.Line
	key, ok := pair.Key.(*ast.StringNode)
	if !ok {
		return f.at(line, "wants the name of a setting, and it is %s", what(pair.Key))
	}
	flag, ok := f.known[key.Value]
	if !ok {
		return f.at(line, "%q is no setting: the nearest is %q", key.Value, nearest(key.Value, f.known))
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
			return nil, fmt.Errorf("wants true or false, and is %s", what(node))
		}
		return b.Value, nil
	}
	if _, ok := flag.Target.Interface().(int); ok {
		n, ok := node.(*ast.IntegerNode)
		if !ok {
			return nil, fmt.Errorf("wants a whole number, and is %s", what(node))
		}
		return parseSetting(flag, n.Token.Value)
	}
	if list, ok := node.(*ast.SequenceNode); ok && flag.IsSlice() {
		return f.list(list)
	}
	s, ok := node.(*ast.StringNode)
	if _, duration := flag.Target.Interface().(time.Duration); !ok && duration {
		return nil, fmt.Errorf("wants a duration such as 30s or 2m, and is %s", what(node))
	}
	if !ok {
		return nil, fmt.Errorf("wants text in one line, and is %s; quotes make it text", what(node))
	}
	return parseSetting(flag, s.Value)
}

// list makes of a list of texts the value of a flag that may be given again.
func (f settingsFile) list(node *ast.SequenceNode) (any, error) {
	all := make([]any, len(node.Values))
	for i, one := range node.Values {
		s, ok := one.(*ast.StringNode)
		if !ok {
			return nil, fmt.Errorf("wants a list of texts, and number %d is %s", i+1, what(one))
		}
		all[i] = s.Value
	}
	return all, nil
}

// what says in words what stands in the file.
func what(node ast.Node) string {
	switch node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "empty"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor or an alias, which are not used here"
	case *ast.StringNode:
		return "text"
	default:
		return "something else (" + node.Type().String() + ")"
	}
}

// nearest returns the known name that takes the fewest edits to get to.
func nearest(name string, known map[string]*kong.Flag) string {
	names := slices.Sorted(maps.Keys(known))
	return slices.MinFunc(names, func(a, b string) int { return edits(name, a) - edits(name, b) })
}

// edits is the Levenshtein distance.
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
