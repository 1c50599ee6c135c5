// Package strictjson says what JSON Holdfast accepts, and reads it.
//
// JSON as most parsers take it has room for a document that means one thing to
// one reader and another to the next: two members of one name, a name in the
// wrong case, a second document behind the first, half a surrogate pair, a
// number that no database holds. Here such a document is refused at the door,
// so that what is stored reads back the same from either database.
//
//	var order struct {
//		Amount json.Number `json:"amount"`
//	}
//	if err := strictjson.Decode(body, &order); err != nil {
//		return err // unknown field "Amount" at the root (byte 1)
//	}
//
// A refusal is a [*fault.Error]: of [fault.PayloadTooLarge] for a document over
// [MaxBytes], of [fault.Validation] for all else. Its message says what is wrong
// and where; its field "pointer" is the JSON pointer (RFC 6901) of the value at
// fault, "" for the document itself. Where a member's name is at fault, the
// pointer is that member's and the message names the object that holds it.
package strictjson

import (
	"github.com/holdfast-go/holdfast/fault"
)

// The limits of a document.
const (
	// MaxBytes is the largest document, in bytes.
	MaxBytes = 1 << 20
	// MaxDepth is how many objects and arrays may be open at once.
	MaxDepth = 64
	// MaxNumber is the longest number, in bytes, and the largest exponent.
	MaxNumber = 400
)

// Check returns nil if the bytes are exactly one JSON document that both
// databases hold. It reads them once, and a small document costs no memory.
func Check(doc []byte) error { return scan(doc, nil) }

// Object is [Check] for a place where only an object will do.
func Object(doc []byte) error {
	if err := Check(doc); err != nil {
		return err
	}
	return opens(doc)
}

// State is [Object] for what a program keeps, and not what comes through the door: its
// names may be anybody's, ids say, and two of them may differ by nothing but case. Its
// numbers are kept without exponents, so what is too long without is refused: the state
// could not be written again.
func State(doc []byte) error {
	s := scanner{doc: doc, twins: true, plain: true}
	if err := s.document(nil); err != nil {
		return err
	}
	return opens(doc)
}

// opens refuses a document that is no object.
func opens(doc []byte) error {
	s := scanner{doc: doc}
	s.space()
	if c := doc[s.pos]; c != '{' {
		return s.fail(s.pos, "%s where an object is wanted", kindOf(c))
	}
	return nil
}

// scan reads one document of a shape; a nil shape takes any.
func scan(doc []byte, sh *shape) error {
	s := scanner{doc: doc}
	return s.document(sh)
}

// document reads the one value of the document and what stands around it.
func (s *scanner) document(sh *shape) error {
	if len(s.doc) > MaxBytes {
		return fault.New(fault.PayloadTooLarge,
			"the document has %d bytes, %d are allowed", len(s.doc), MaxBytes).With("pointer", "")
	}
	if err := s.opening(); err != nil {
		return err
	}
	if err := s.value(sh); err != nil {
		return err
	}
	if s.space(); s.pos < len(s.doc) {
		return s.fail(s.pos, "more data after the document")
	}
	return nil
}

// opening refuses what has no document at all, and the byte order mark, which
// some readers skip and others take for a part of the text.
func (s *scanner) opening() error {
	if s.space(); s.pos == len(s.doc) {
		return s.fail(s.pos, "the document is empty")
	}
	if len(s.doc) >= 3 && string(s.doc[:3]) == "\ufeff" {
		return s.fail(0, "byte order mark")
	}
	return nil
}
