// Package configdoc reads documents, JSON or YAML, into one tree that knows where each value
// stands, and reports all that is wrong with one at once. What a document means is for
// the packages that use it.
package configdoc

import (
	"strconv"
	"strings"
)

// Kind is what a value of a document is.
type Kind uint8

// The kinds.
const (
	Refused Kind = iota // already reported: no further word about it
	Object
	Array
	Text
	Number
	Boolean
	Null
)

// String says in words what a value is.
func (k Kind) String() string {
	return [...]string{"refused", "an object", "a list", "text", "a number", "true or false", "empty"}[k]
}

// Position is a place in a text; both count from 1, columns in characters.
type Position struct{ Line, Column int }

// Node is a value of a document, the same whether it was JSON or YAML.
type Node struct {
	Kind    Kind
	At      Position
	Text    string // of text, and of a number or a boolean as it is written
	Bare    bool   // it is text of YAML that stands without quotes
	Members []Member
	Items   []*Node
}

// Member is a field of an object.
type Member struct {
	Name  string
	At    Position
	Value *Node
}

// Has says whether a member was written, be it right or wrong.
func (n *Node) Has(name string) bool { return n.Member(name) != nil }

// Member returns a member's value, or nil.
func (n *Node) Member(name string) *Node {
	for _, m := range n.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// refuse takes back what a value is: what is wrong with it has been said.
func (n *Node) refuse() { *n = Node{At: n.At} }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Child returns the JSON pointer of a member. A long name is cut in it, so that a
// pointer is not as long as the document.
func Child(path, name string) string {
	return path + "/" + pointerEscapes.Replace(Shorten(name, maxShown))
}

// Item returns the JSON pointer of an item of a list.
func Item(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// Parent returns the JSON pointer of what holds the value.
func Parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// Find returns the position of a value, or of the nearest that holds it.
func Find(at map[string]Position, path string) Position {
	for {
		if p, ok := at[path]; ok || path == "" {
			return p
		}
		path = Parent(path)
	}
}
