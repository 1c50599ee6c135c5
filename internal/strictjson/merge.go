package strictjson

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-go/holdfast/fault"
)

// Merge applies merge patches (RFC 7396), which must be objects, to a document, one after the
// other. Numbers stay as written.
func Merge(doc []byte, patches ...[]byte) ([]byte, error) {
	into, err := Read(doc)
	if err != nil {
		return nil, err
	}
	for _, patch := range patches {
		if err := Object(patch); err != nil {
			return nil, err
		}
		from, err := Read(patch)
		if err != nil {
			return nil, err
		}
		into = Merged(into, from)
	}
	out, err := json.Marshal(into)
	if err != nil {
		return nil, err
	}
	return out, Object(out)
}

// Read decodes a document that [Check] accepts. Numbers stay as written.
func Read(doc []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fault.New(fault.Validation, "the document is not valid JSON").Wrap(err)
	}
	return v, nil
}

// Merged applies a merge patch to a value, both as decoded by encoding/json. It changes
// target in place if target is an object.
func Merged(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, ok := target.(map[string]any)
	if !ok {
		t = make(map[string]any)
	}
	for name, value := range p {
		if value == nil {
			delete(t, name)
		} else {
			t[name] = Merged(t[name], value)
		}
	}
	return t
}
