// Package strictjson validates and decodes JSON that every parser and both databases read
// the same way.
//
// Most parsers accept documents that different readers interpret differently: duplicate
// names, names in the wrong case, data after the document, half a surrogate pair, or
// numbers that a database cannot store. This package refuses such documents, so that a
// stored document reads back the same from either database.
//
//	var order struct {
//		Amount json.Number `json:"amount"`
//	}
//	if err := strictjson.Decode(body, &order); err != nil {
//		return err // unknown field "Amount" at the root (byte 1)
//	}
//
// All errors are a [*fault.Error]: [fault.PayloadTooLarge] for a document larger than
// [MaxBytes], [fault.Validation] otherwise. The message states the problem and its place.
// The field "pointer" is the JSON pointer (RFC 6901) of the invalid value, "" for the
// document itself. If the name of a member is invalid, the pointer is that of the member
// and the message names the object that contains it.
package strictjson

import (
	"github.com/holdfast-go/holdfast/fault"
)

// Limits of a document.
const (
	// MaxBytes is the largest document, in bytes.
	MaxBytes = 1 << 20
	// MaxDepth is the maximum nesting of objects and arrays.
	MaxDepth = 64
	// MaxNumber is the maximum length of a number, in bytes, and the maximum absolute
	// exponent.
	MaxNumber = 400
)

// Check returns nil if doc is exactly one JSON document that both databases can store. It
// reads doc once and allocates nothing for a small document.
func Check(doc []byte) error { return scan(doc, nil) }

// Object is like [Check], and also requires an object.
func Object(doc []byte) error {
	if err := Check(doc); err != nil {
		return err
	}
	return requireObject(doc)
}

// State is like [Object], for the state of a program instead of an API request. Its names
// may be arbitrary, such as ids, and may differ only by case. Numbers of a state are stored
// without exponents, so a number that is too long without its exponent is refused: the
// state could not be written again.
func State(doc []byte) error {
	s := scanner{doc: doc, caseSensitive: true, plain: true}
	if err := s.document(nil); err != nil {
		return err
	}
	return requireObject(doc)
}

// requireObject refuses a document that is not an object. REQUIRES: Check accepts doc.
func requireObject(doc []byte) error {
	s := scanner{doc: doc}
	s.space()
	if c := doc[s.pos]; c != '{' {
		return s.fail(s.pos, "expected an object, got %s", kindOf(c))
	}
	return nil
}

// scan reads one document of a shape. A nil shape accepts any document.
func scan(doc []byte, sh *shape) error {
	s := scanner{doc: doc}
	return s.document(sh)
}

// document reads the only value of the document and the white space around it.
func (s *scanner) document(sh *shape) error {
	if len(s.doc) > MaxBytes {
		return fault.New(fault.PayloadTooLarge,
			"the document has %d bytes, but at most %d are allowed", len(s.doc), MaxBytes).With("pointer", "")
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

// opening refuses an empty document and a byte order mark, which some readers skip and
// others read as a part of the text.
func (s *scanner) opening() error {
	if s.space(); s.pos == len(s.doc) {
		return s.fail(s.pos, "the document is empty")
	}
	if len(s.doc) >= 3 && string(s.doc[:3]) == "\ufeff" {
		return s.fail(0, "unexpected byte order mark")
	}
	return nil
}
