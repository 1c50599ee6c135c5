// Package configdoc reads JSON and YAML documents into one kind of tree that records the position
// of each value, and reports all errors of a document at once. The meaning of a document is left to
// the packages that use it.
package configdoc

import (
	"strconv"
	"strings"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds.
const (
	Refused Kind = iota // already reported: no further errors for it
	Object
	Array
	Text
	Number
	Boolean
	Null
)

// String returns the kind in words, for messages.
func (k Kind) String() string {
	return [...]string{"refused", "an object", "a list", "a string", "a number", "a boolean", "null"}[k]
}

// Position is a position in a text. Both numbers start at 1; columns count characters.
type Position struct{ Line, Column int }

// Node is a value of a document, the same for JSON and YAML.
type Node struct {
	Kind    Kind
	At      Position
	Text    string // a string, or a number or boolean as written
	Bare    bool   // an unquoted YAML string
	Members []Member
	Items   []*Node
}

// Member is a field of an object.
type Member struct {
	Name  string
	At    Position
	Value *Node
}

// Has reports whether a member is present, even if it is invalid.
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

// refuse clears a value whose error has been reported.
func (n *Node) refuse() { *n = Node{At: n.At} }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Child returns the JSON pointer of a member. It shortens a long name, to limit the length of the
// pointer.
func Child(path, name string) string {
	return path + "/" + pointerEscapes.Replace(Shorten(name, maxShown))
}

// Item returns the JSON pointer of an item of a list.
func Item(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// Parent returns the JSON pointer of the containing value.
func Parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// Find returns the position of a value, or of the nearest value that contains it.
func Find(at map[string]Position, path string) Position {
	for {
		if p, ok := at[path]; ok || path == "" {
			return p
		}
		path = Parent(path)
	}
}
