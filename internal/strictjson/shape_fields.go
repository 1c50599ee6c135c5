package strictjson

import (
	"reflect"
	"strings"
)

// candidate is one of several fields with the same name.
type candidate struct {
	sh     *shape
	tagged bool
}

// fields returns the members of a struct by the rules of encoding/json: the fields of an
// embedded struct belong to the outer struct. Of several fields with the same name, the
// least deeply embedded one wins, then the only one with a tag; otherwise none is known.
func (m shaper) fields(t reflect.Type) map[string]*shape {
	found := make(map[string]*shape)
	hidden := make(map[string]bool)
	visited := make(map[reflect.Type]bool)
	for level := []reflect.Type{t}; len(level) > 0; {
		names, next := m.level(level, visited)
		for name, rivals := range names {
			if !hidden[name] {
				selectField(found, name, rivals)
			}
			hidden[name] = true
		}
		level = next
	}
	return found
}

// selectField adds the field that wins a name, if there is one.
func selectField(found map[string]*shape, name string, rivals []candidate) {
	if len(rivals) == 1 {
		found[name] = rivals[0].sh
		return
	}
	tagged := 0
	for _, c := range rivals {
		if c.tagged {
			tagged++
			found[name] = c.sh
		}
	}
	if tagged != 1 {
		delete(found, name)
	}
}

// level collects the fields of structs at the same embedding depth, and the structs embedded
// in them. Types of a higher level are not visited again: their fields would lose, and a type
// may embed itself.
func (m shaper) level(structs []reflect.Type, visited map[reflect.Type]bool) (names map[string][]candidate, next []reflect.Type) {
	names = make(map[string][]candidate)
	for _, t := range structs {
		visited[t] = true
	}
	for _, t := range structs {
		for i := range t.NumField() {
			f := t.Field(i)
			name, options, tagged := tagOf(f)
			inner := embedded(f)
			switch {
			case name == "" || inner == nil && !f.IsExported():
			case inner == nil || tagged:
				names[name] = append(names[name], candidate{m.field(f, options), tagged})
			case !visited[inner]:
				next = append(next, inner)
			}
		}
	}
	return names, next
}

// field returns the shape of a field with the options of its tag.
func (m shaper) field(f reflect.StructField, options string) *shape {
	sh := m.shape(f.Type)
	if sh == nil || sh.form != scalar || !hasOption(options, "string") {
		return sh
	}
	quoted := *sh
	quoted.quoted = true
	return &quoted
}

// tagOf returns the JSON name of a field, or "" if the field is excluded.
func tagOf(f reflect.StructField) (name, options string, tagged bool) {
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "", "", false
	}
	name, options, _ = strings.Cut(tag, ",")
	if name == "" {
		return f.Name, options, false
	}
	return name, options, true
}

// embedded returns the struct that a field embeds, or nil.
func embedded(f reflect.StructField) reflect.Type {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !f.Anonymous || t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

func hasOption(options, want string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == want {
			return true
		}
	}
	return false
}
