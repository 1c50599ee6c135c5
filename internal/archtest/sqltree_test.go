package archtest

import (
	"fmt"
	"strings"
)

// node is a token, or a group in parentheses, in brackets, or between CASE and END. The token of
// a group is its opening token.
type node struct {
	sqlToken
	group bool
	kids  []node
}

// nest builds a tree of the tokens, without comments.
func nest(tokens []sqlToken) ([]node, error) {
	t := treeBuilder{tokens: tokens}
	return t.upTo(sqlToken{}, "")
}

type treeBuilder struct {
	tokens []sqlToken
	pos    int
}

// upTo reads nodes up to the token that closes the group opened by open.
func (t *treeBuilder) upTo(open sqlToken, closer string) ([]node, error) {
	var nodes []node
	for t.pos < len(t.tokens) {
		tok := t.tokens[t.pos]
		t.pos++
		if tok.kind == comment {
			continue
		}
		if closer != "" && closes(tok, closer, nodes) {
			return nodes, nil
		}
		n := node{sqlToken: tok}
		if end := closerOf(tok, nodes); end != "" {
			kids, err := t.upTo(tok, end)
			if err != nil {
				return nil, err
			}
			n.group, n.kids = true, kids
		} else if tok.is(punct, ")") || tok.is(punct, "]") {
			return nil, fmt.Errorf("line %d: a %q closes nothing", tok.line, tok.text)
		}
		nodes = append(nodes, n)
	}
	if closer != "" {
		return nil, fmt.Errorf("line %d: a %q is never closed", open.line, open.text)
	}
	return nodes, nil
}

func closes(tok sqlToken, closer string, before []node) bool {
	if closer == "end" {
		return tok.is(word, closer) && !afterDot(before)
	}
	return tok.is(punct, closer)
}

// closerOf returns the closing text of the group that tok opens, or "".
func closerOf(tok sqlToken, before []node) string {
	switch {
	case tok.is(punct, "("):
		return ")"
	case tok.is(punct, "["):
		return "]"
	case tok.is(word, "case") && !afterDot(before):
		return "end"
	}
	return ""
}

func afterDot(before []node) bool {
	return len(before) > 0 && before[len(before)-1].is(punct, ".")
}

// split splits nodes at every separator on the top level. It omits empty pieces.
func split(nodes []node, separator func(i int) bool) [][]node {
	var pieces [][]node
	start := 0
	for i := 0; i <= len(nodes); i++ {
		if i < len(nodes) && !separator(i) {
			continue
		}
		if i > start {
			pieces = append(pieces, nodes[start:i])
		}
		start = i + 1
	}
	return pieces
}

func splitAt(nodes []node, mark string) [][]node {
	return split(nodes, func(i int) bool { return nodes[i].is(punct, mark) })
}

// keyword returns the keyword at i, or "". A word next to a dot is a name and not a keyword.
func keyword(nodes []node, i int) string {
	if i < 0 || i >= len(nodes) || nodes[i].kind != word || nodes[i].group {
		return ""
	}
	if i > 0 && nodes[i-1].is(punct, ".") || i+1 < len(nodes) && nodes[i+1].is(punct, ".") {
		return ""
	}
	return nodes[i].text
}

func isKeyword(nodes []node, i int, words ...string) bool {
	k := keyword(nodes, i)
	for _, w := range words {
		if k == w {
			return k != ""
		}
	}
	return false
}

// paren reports whether there is a group in parentheses at i.
func paren(nodes []node, i int) bool {
	return i >= 0 && i < len(nodes) && nodes[i].group && nodes[i].text == "("
}

// statements splits the tokens of a file or a section into statements.
func statements(tokens []sqlToken) ([][]node, error) {
	nodes, err := nest(tokens)
	if err != nil {
		return nil, err
	}
	return splitAt(nodes, ";"), nil
}

// opening returns the beginning of a statement for a report.
func opening(src string, nodes []node) string {
	const enough = 60
	if len(nodes) == 0 {
		return ""
	}
	last := nodes[len(nodes)-1]
	text := strings.Join(strings.Fields(src[nodes[0].pos:min(len(src), last.pos+len(last.text))]), " ")
	if len(text) <= enough {
		return text
	}
	return strings.ToValidUTF8(text[:enough], "") + "…"
}
