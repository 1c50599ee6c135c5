package strict

import (
	"bytes"
	"encoding/json"
)

// Canonical writes a JSON document with its members in one order and without space,
// so that two who mean the same write the same; numbers stay as they are written. It
// says no of a document that [Check] refuses.
func Canonical(doc []byte) ([]byte, bool) {
	if Check(doc) != nil {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	out, err := json.Marshal(v)
	return out, err == nil
}
