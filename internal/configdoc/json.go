package configdoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// jsonTree parses JSON. It uses the tokens of encoding/json because [strictjson.Decode] stops at
// the first error, and all errors are wanted here.
func (r *Reader) jsonTree(data []byte) *Node {
	if !r.jsonSyntax(data) || !r.jsonDepth(data) {
		return nil
	}
	j := jsonReader{data: data, dec: json.NewDecoder(bytes.NewReader(data)), last: Position{1, 1}}
	j.dec.UseNumber()
	root, err := j.value()
	if err != nil {
		r.Refuse(RuleSyntax, "", j.last, "invalid JSON: %v", err)
		return nil
	}
	return root
}

// jsonSyntax refuses data that is not exactly one JSON document.
func (r *Reader) jsonSyntax(data []byte) bool {
	var any json.RawMessage
	err := json.Unmarshal(data, &any)
	if err == nil {
		return true
	}
	at := len(data)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && !strings.Contains(err.Error(), "unexpected end") {
		at = int(syntax.Offset) - 1
	}
	r.Refuse(RuleSyntax, "", place(data, at), "invalid JSON: %v: correct it here or earlier in the file", err)
	return false
}

// jsonDepth checks the nesting by counting brackets, so that the functions that follow may recurse.
// It requires the syntax to be valid.
func (r *Reader) jsonDepth(data []byte) bool {
	depth, inText := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > strictjson.MaxDepth {
				r.tooDeep(place(data, i))
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return true
}

// jsonReader builds a tree from tokens.
type jsonReader struct {
	data []byte
	dec  *json.Decoder
	// last is the position of the last token, and offset is where it begins.
	last   Position
	offset int
}

// next returns the next token and moves the position to its begin. The decoder returns where the
// previous token ended, and only blanks, commas and colons lie between. Advancing from the last
// position keeps the total time linear.
func (j *jsonReader) next() (json.Token, error) {
	begin := int(j.dec.InputOffset())
	for begin < len(j.data) && strings.IndexByte(" \t\r\n,:", j.data[begin]) >= 0 {
		begin++
	}
	step := place(j.data[j.offset:], begin-j.offset)
	if step.Line > 1 {
		j.last = Position{j.last.Line + step.Line - 1, step.Column}
	} else {
		j.last.Column += step.Column - 1
	}
	j.offset = begin
	return j.dec.Token()
}

func (j *jsonReader) value() (*Node, error) {
	token, err := j.next()
	if err != nil {
		return nil, err
	}
	n := &Node{At: j.last}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return n, j.object(n)
		}
		return n, j.array(n)
	case string:
		n.Kind, n.Text = Text, v
	case json.Number:
		n.Kind, n.Text = Number, v.String()
	case bool:
		n.Kind, n.Text = Boolean, strconv.FormatBool(v)
	default:
		n.Kind = Null
	}
	return n, nil
}

func (j *jsonReader) object(n *Node) error {
	n.Kind = Object
	for j.dec.More() {
		key, err := j.next()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return fmt.Errorf("expected a field name, got %v", key)
		}
		m := Member{Name: name, At: j.last}
		if m.Value, err = j.value(); err != nil {
			return err
		}
		n.Members = append(n.Members, m)
	}
	return j.end()
}

func (j *jsonReader) array(n *Node) error {
	n.Kind = Array
	for j.dec.More() {
		it, err := j.value()
		if err != nil {
			return err
		}
		n.Items = append(n.Items, it)
	}
	return j.end()
}

func (j *jsonReader) end() error {
	_, err := j.next()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// pointerOf returns the JSON pointer of a strictjson error.
func pointerOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		path, _ := f.Fields["pointer"].(string)
		return path
	}
	return ""
}

// Reason returns the message of an error, without its code.
func Reason(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Message
	}
	return err.Error()
}
