package lifecycles

import (
	"errors"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// yamlTree reads YAML by its syntax tree: decoding it would lose the lines, and
// take what is refused here.
func (r *reader) yamlTree(data []byte) *node {
	file, ok := r.yamlFile(string(data))
	if !ok {
		return nil
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if _, ok := doc.Body.(*ast.DirectiveNode); ok {
			r.refuse(ruleYAML, "", placeOf(doc.Body), "a directive (%%) is not used here: take it out")
			return nil
		}
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		r.refuse(ruleSyntax, "", position{1, 1}, "the config is empty: write at least workflow, owning_module, status_types, initial_status and steps")
		return nil
	case len(bodies) > 1:
		r.refuse(ruleYAML, "", placeOf(bodies[1]), "a second document begins here: one file has one config")
		return nil
	}
	return r.yamlNode(bodies[0], "")
}

// yamlFile parses the text. The parser recurses, and a stack that is too deep
// ends the process; and its time grows with the square of a block's entries. So
// the tokens are looked through for both first.
func (r *reader) yamlFile(text string) (file *ast.File, ok bool) {
	defer func() {
		if recover() != nil { // the library gives up on some texts this way
			r.refuse(ruleSyntax, "", position{1, 1}, "not YAML: write it more plainly, or as JSON")
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

func (r *reader) yamlSyntax(err error) {
	syntax, ok := errors.AsType[*yaml.SyntaxError](err)
	if !ok || syntax.Token == nil {
		r.refuse(ruleSyntax, "", position{1, 1}, "not YAML: write it more plainly, or as JSON")
		return
	}
	r.refuse(ruleSyntax, "", placeOfToken(syntax.Token), "not YAML: %s: correct it here or before", syntax.Message)
}

// maxEntries is how many entries a block may have.
const maxEntries = 5000

// yamlSize refuses what is nested too deeply, or too long.
func (r *reader) yamlSize(tokens token.Tokens) bool {
	var d yamlDepth
	for _, t := range tokens {
		d.add(t)
		switch {
		case d.depth() > strict.MaxDepth:
			r.tooDeep(placeOfToken(t))
			return false
		case len(d.blocks) > 0 && d.blocks[len(d.blocks)-1].entries > maxEntries:
			r.refuse(ruleSize, "", placeOfToken(t), "more than %d entries in one block of YAML: write them in brackets, or as JSON", maxEntries)
			return false
		}
	}
	return true
}

// yamlDepth counts how deep a parser may get: brackets that are open, columns at
// which a block may have begun, and tags and anchors, which may stand one before
// the other without end.
type yamlDepth struct {
	flow   int
	marks  int
	blocks []block
	line   int
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

// open enters a block, and leaves those that are further to the right, or a list
// that stands as far left as the mapping that it is in.
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

// yamlNode makes a value of a part of the syntax tree.
func (r *reader) yamlNode(y ast.Node, path string) *node {
	n := &node{at: placeOf(y)}
	switch v := y.(type) {
	case *ast.MappingNode:
		n.kind = object
		r.yamlMembers(n, v.Values, path)
	case *ast.MappingValueNode:
		n.kind = object
		r.yamlMembers(n, []*ast.MappingValueNode{v}, path)
	case *ast.SequenceNode:
		n.kind = array
		for i, it := range v.Values {
			n.items = append(n.items, r.yamlNode(it, item(path, i)))
		}
	default:
		r.yamlScalar(n, y, path)
	}
	return n
}

func (r *reader) yamlScalar(n *node, y ast.Node, path string) {
	switch v := y.(type) {
	case *ast.StringNode:
		n.kind, n.text = text, v.Value
	case *ast.LiteralNode:
		n.kind, n.text = text, v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = number, strings.TrimSpace(y.GetToken().Value)
	case *ast.BoolNode:
		n.kind = boolean
	case *ast.NullNode:
		n.kind = null
	default:
		r.refuse(ruleYAML, path, n.at, "%s is not used here: write the value out", yamlWord(y))
	}
}

func (r *reader) yamlMembers(n *node, values []*ast.MappingValueNode, path string) {
	for _, v := range values {
		name, ok := r.yamlName(v.Key, path)
		if ok {
			n.members = append(n.members, member{name, placeOf(v.Key), r.yamlNode(v.Value, child(path, name))})
		}
	}
}

// yamlName reads the name of a member.
func (r *reader) yamlName(key ast.MapKeyNode, path string) (string, bool) {
	switch v := key.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode, *ast.BoolNode, *ast.NullNode:
		name := key.GetToken().Value
		r.refuse(ruleType, child(path, name), placeOf(key), "%s is no name: put it in quotes", show(name))
	case *ast.MappingKeyNode:
		name, ok := v.Value.(*ast.StringNode)
		if ok {
			r.refuse(ruleYAML, child(path, name.Value), placeOf(key), "an explicit key (?) is not used here: write \"name: value\"")
			return name.Value, true
		}
		r.refuse(ruleYAML, path, placeOf(key), "a name is a text: write each field as \"name: value\"")
	default:
		r.refuse(ruleYAML, path, placeOf(key), "%s is not used here: write each field as \"name: value\"", yamlWord(key))
	}
	return "", false
}

// yamlWord names a part of YAML that is refused.
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
	return "this part of YAML"
}

// placeOf returns where a value begins. The library gives a mapping the place of
// its first colon, and a list in a block that of its first dash.
func placeOf(y ast.Node) position {
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

func placeOfToken(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{max(1, t.Position.Line), max(1, t.Position.Column)}
}

// decimal is the one way to write an integer.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
