package strictjson

import (
	"reflect"
	"strings"
)

// candidate is a field that may be the one of its name.
type candidate struct {
	sh     *shape
	tagged bool
}

// fields returns the members of a struct by the rules of encoding/json: the
// fields of an embedded struct count as the outer one's own, and of fields with
// one name the least deeply embedded wins, then the only one with a tag; else
// none of them is known.
func (m shaper) fields(t reflect.Type) map[string]*shape {
	found := make(map[string]*shape)
	hidden := make(map[string]bool)
	visited := make(map[reflect.Type]bool)
	for level := []reflect.Type{t}; len(level) > 0; {
		names, next := m.level(level, visited)
		for name, rivals := range names {
			if !hidden[name] {
				settle(found, name, rivals)
			}
			hidden[name] = true
		}
		level = next
	}
	return found
}

// settle enters the field that a name stands for, where there is one.
func settle(found map[string]*shape, name string, rivals []candidate) {
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

// level collects the fields of structs that are embedded equally deep, and the
// structs embedded in them. Types met on a higher level are not visited again:
// their fields would lose anyway, and a type may embed itself.
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

// tagOf returns the name of a field in JSON, "" for one that has none.
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

// embedded returns the struct that a field embeds, nil if it embeds none.
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
