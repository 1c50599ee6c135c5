package strictjson

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// change is one operation of a JSON patch (RFC 6902).
type change struct {
	Op    string           `json:"op"` // add, replace or remove
	Path  string           `json:"path"`
	Value *json.RawMessage `json:"value,omitempty"`
}

// Difference returns a JSON patch (RFC 6902) that turns one document into another: "[]" if they are equal. Unlike
// a merge patch, it can set a value to null. It compares objects by their members, and replaces everything else as
// a whole.
func Difference(from, to []byte) ([]byte, error) {
	a, err := Read(from)
	if err != nil {
		return nil, err
	}
	b, err := Read(to)
	if err != nil {
		return nil, err
	}
	all := []change{}
	differ(&all, "", a, b)
	return json.Marshal(all)
}

func differ(all *[]change, path string, from, to any) {
	a, isA := from.(map[string]any)
	b, isB := to.(map[string]any)
	if !isA || !isB {
		if !same(from, to) {
			*all = append(*all, change{"replace", path, valueOf(to)})
		}
		return
	}
	for _, name := range sortedNames(a, b) {
		was, had := a[name]
		is, has := b[name]
		at := path + "/" + unslash.Replace(name)
		switch {
		case !has:
			*all = append(*all, change{"remove", at, nil})
		case !had:
			*all = append(*all, change{"add", at, valueOf(is)})
		default:
			differ(all, at, was, is)
		}
	}
}

func valueOf(v any) *json.RawMessage {
	text, _ := json.Marshal(v) // it was decoded from JSON
	return (*json.RawMessage)(&text)
}

// sortedNames returns the names of the members of either object.
func sortedNames(a, b map[string]any) (all []string) {
	for name := range a {
		all = append(all, name)
	}
	for name := range b {
		if _, both := a[name]; !both {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Patched applies a patch that [Difference] returned.
func Patched(doc, patch []byte) ([]byte, error) {
	into, err := Read(doc)
	if err != nil {
		return nil, err
	}
	var all []change
	if err := json.Unmarshal(patch, &all); err != nil {
		return nil, badPatch()
	}
	for _, c := range all {
		if into, err = c.apply(into); err != nil {
			return nil, err
		}
	}
	return json.Marshal(into)
}

func badPatch() error {
	return fault.New(fault.DatabaseDamaged, "a recorded difference does not fit the data: run \"holdfast check\"")
}

func (c change) apply(into any) (any, error) {
	var value any
	if c.Value != nil {
		var err error
		if value, err = Read(*c.Value); err != nil {
			return nil, badPatch()
		}
	}
	if c.Path == "" {
		return value, nil
	}
	parts := strings.Split(c.Path, "/")[1:]
	at, ok := into.(map[string]any)
	for _, part := range parts[:len(parts)-1] {
		if !ok {
			break
		}
		at, ok = at[reslash.Replace(part)].(map[string]any)
	}
	if !ok {
		return nil, badPatch()
	}
	name := reslash.Replace(parts[len(parts)-1])
	if c.Op == "remove" {
		delete(at, name)
	} else {
		at[name] = value
	}
	return into, nil
}

// reslash is the inverse of unslash.
var reslash = strings.NewReplacer("~1", "/", "~0", "~")
