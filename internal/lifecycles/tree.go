package lifecycles

import (
	"strconv"
	"strings"
)

// kind is what a value of a document is.
type kind uint8

const (
	refused kind = iota // already reported: no further word about it
	object
	array
	text
	number
	boolean
	null
)

// String says in words what a value is.
func (k kind) String() string {
	return [...]string{"refused", "an object", "a list", "text", "a number", "true or false", "empty"}[k]
}

// position is a place in a text; both count from 1, columns in characters.
type position struct{ line, column int }

// node is a value of a document, the same whether it was JSON or YAML.
type node struct {
	kind    kind
	at      position
	text    string // of text, and of a number as it is written
	members []member
	items   []*node
}

type member struct {
	name  string
	at    position
	value *node
}

// refuse takes back what a value is: what is wrong with it has been said.
func (n *node) refuse() { *n = node{at: n.at} }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// child returns the JSON pointer of a member. A long name is cut in it, so that a
// pointer is not as long as the document.
func child(path, name string) string {
	return path + "/" + pointerEscapes.Replace(shorten(name, maxShown))
}

// item returns the JSON pointer of an item of a list.
func item(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// parent returns the JSON pointer of what holds the value.
func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }
