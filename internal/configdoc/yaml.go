package configdoc

import (
	"errors"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// yamlTree reads YAML from its syntax tree: decoding it would lose the positions and accept
// features that are refused here.
func (r *Reader) yamlTree(data []byte) *Node {
	file, ok := r.yamlFile(string(data))
	if !ok {
		return nil
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if _, ok := doc.Body.(*ast.DirectiveNode); ok {
			r.Refuse(RuleYAML, "", placeOf(doc.Body), "a directive (%%) is not supported: remove it")
			return nil
		}
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		r.empty()
		return nil
	case len(bodies) > 1:
		r.Refuse(RuleYAML, "", placeOf(bodies[1]), "a second document begins here, but a file must contain only one %s: split the file", r.doc.What)
		return nil
	}
	return r.yamlNode(bodies[0], "")
}

// yamlFile parses the text. The parser recurses, and a stack overflow ends the process; its time
// also grows with the square of a block's entries. The tokens are therefore checked for both
// first.
func (r *Reader) yamlFile(text string) (file *ast.File, ok bool) {
	defer func() {
		if recover() != nil { // the library panics on some texts
			r.Refuse(RuleSyntax, "", Position{1, 1}, "invalid YAML: simplify it, or write it as JSON")
			ok = false
		}
	}()
	tokens := lexer.Tokenize(text)
	if !r.yamlSize(tokens) {
		return nil, false
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.yamlSyntax(err)
		return nil, false
	}
	return file, true
}

func (r *Reader) yamlSyntax(err error) {
	syntax, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok || syntax.Token == nil {
		r.Refuse(RuleSyntax, "", Position{1, 1}, "invalid YAML: simplify it, or write it as JSON")
		return
	}
	r.Refuse(RuleSyntax, "", placeOfToken(syntax.Token), "invalid YAML: %s: correct it here or earlier in the file", syntax.Message)
}

// maxEntries limits the entries of a block.
const maxEntries = 5000

// yamlSize refuses a text that is nested too deeply or has a block that is too long.
func (r *Reader) yamlSize(tokens token.Tokens) bool {
	var d yamlDepth
	for _, t := range tokens {
		d.add(t)
		switch {
		case d.depth() > strictjson.MaxDepth:
			r.tooDeep(placeOfToken(t))
			return false
		case len(d.blocks) > 0 && d.blocks[len(d.blocks)-1].entries > maxEntries:
			r.Refuse(RuleSize, "", placeOfToken(t), "more than %d entries in one block of YAML: write them in brackets, or as JSON", maxEntries)
			return false
		}
	}
	return true
}

// yamlDepth estimates the recursion depth of the parser: open brackets, columns at which a block
// may have begun, and tags and anchors, which may follow each other without limit.
type yamlDepth struct {
	flow   int     // open brackets
	marks  int     // all tags, anchors and directives so far
	blocks []block // the blocks that contain the current token
	line   int     // of the current token
}

type block struct {
	column  int
	typ     token.Type
	entries int
}

func (d *yamlDepth) depth() int { return d.flow + d.marks + len(d.blocks) }

func (d *yamlDepth) add(t *token.Token) {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		d.flow++
	case token.SequenceEndType, token.MappingEndType:
		d.flow--
	case token.AnchorType, token.TagType, token.DirectiveType:
		d.marks++
	case token.SequenceEntryType, token.MappingKeyType:
		d.open(t.Position.Column, t.Type)
	case token.CommentType:
	default:
		if d.flow == 0 && t.Position.Line != d.line {
			d.open(t.Position.Column, token.StringType)
		}
	}
	d.line = t.Position.Line
}

// open enters a block. It leaves the blocks further to the right, and a list at the same column as
// the mapping that contains it.
func (d *yamlDepth) open(column int, typ token.Type) {
	n := len(d.blocks)
	for n > 0 && (d.blocks[n-1].column > column ||
		d.blocks[n-1].column == column && d.blocks[n-1].typ == token.SequenceEntryType && typ != token.SequenceEntryType) {
		n--
	}
	d.blocks = d.blocks[:n]
	if n > 0 && d.blocks[n-1].column == column && d.blocks[n-1].typ == typ {
		d.blocks[n-1].entries++
	} else {
		d.blocks = append(d.blocks, block{column: column, typ: typ, entries: 1})
	}
}

// yamlNode converts a node of the syntax tree.
func (r *Reader) yamlNode(y ast.Node, path string) *Node {
	n := &Node{At: placeOf(y)}
	switch v := y.(type) {
	case *ast.MappingNode:
		n.Kind = Object
		r.yamlMembers(n, v.Values, path)
	case *ast.MappingValueNode:
		n.Kind = Object
		r.yamlMembers(n, []*ast.MappingValueNode{v}, path)
	case *ast.SequenceNode:
		n.Kind = Array
		for i, it := range v.Values {
			n.Items = append(n.Items, r.yamlNode(it, Item(path, i)))
		}
	default:
		r.yamlScalar(n, y, path)
	}
	return n
}

func (r *Reader) yamlScalar(n *Node, y ast.Node, path string) {
	switch v := y.(type) {
	case *ast.StringNode:
		n.Kind, n.Text, n.Bare = Text, v.Value, v.GetToken().Type == token.StringType
	case *ast.LiteralNode:
		n.Kind, n.Text = Text, v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.Kind, n.Text = Number, strings.TrimSpace(y.GetToken().Value)
	case *ast.BoolNode:
		n.Kind, n.Text = Boolean, strconv.FormatBool(v.Value)
	case *ast.NullNode:
		n.Kind = Null
	default:
		r.Refuse(RuleYAML, path, n.At, "%s is not supported: write out the value", yamlWord(y))
	}
}

func (r *Reader) yamlMembers(n *Node, values []*ast.MappingValueNode, path string) {
	for _, v := range values {
		name, ok := r.yamlName(v.Key, path)
		if ok {
			n.Members = append(n.Members, Member{name, placeOf(v.Key), r.yamlNode(v.Value, Child(path, name))})
		}
	}
}

// yamlName reads the name of a member.
func (r *Reader) yamlName(key ast.MapKeyNode, path string) (string, bool) {
	switch v := key.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode, *ast.BoolNode, *ast.NullNode:
		name := key.GetToken().Value
		r.Refuse(RuleType, Child(path, name), placeOf(key), "a name must be a string, got %s: put it in quotes", Show(name))
	case *ast.MappingKeyNode:
		name, ok := v.Value.(*ast.StringNode)
		if ok {
			r.Refuse(RuleYAML, Child(path, name.Value), placeOf(key), "an explicit key (?) is not supported: write \"name: value\"")
			return name.Value, true
		}
		r.Refuse(RuleYAML, path, placeOf(key), "a name must be a string: write each field as \"name: value\"")
	default:
		r.Refuse(RuleYAML, path, placeOf(key), "%s is not supported: write each field as \"name: value\"", yamlWord(key))
	}
	return "", false
}

// yamlWord returns the name of an unsupported YAML feature.
func yamlWord(y ast.Node) string {
	switch y.(type) {
	case *ast.AnchorNode:
		return "an anchor (&)"
	case *ast.AliasNode:
		return "an alias (*)"
	case *ast.MergeKeyNode:
		return "a merge key (<<)"
	case *ast.TagNode:
		return "a tag (!)"
	}
	return "this YAML feature"
}

// placeOf returns where a value begins. The library positions a mapping at its first colon, and a
// block list at its first dash.
func placeOf(y ast.Node) Position {
	switch v := y.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return placeOf(v.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return placeOf(v.Key)
	}
	return placeOfToken(y.GetToken())
}

func placeOfToken(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{1, 1}
	}
	return Position{max(1, t.Position.Line), max(1, t.Position.Column)}
}
