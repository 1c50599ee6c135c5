package scopestore

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Names of edits. They are also those of their events.
const (
	opInc   = "inc"
	opPatch = "patch"
	opPush  = "push"
	opSet   = "set"
	opUnset = "unset"
)

// Op is an edit that needs to know nothing of the state before: it is made where the state
// is, so that callers need not agree on a version. The databases make it in SQL; [Op.Apply]
// makes it for all other stores, and is what both are tested against.
type Op struct {
	name  string `arg:"op"`
	field string `arg:"field,null"`
	key   string `arg:"key,null"`
	value []byte `arg:"value,null"`
	many  bool   // it has so many members that a database takes long over it
}

// Inc adds to the whole number in a field. A field that is missing is 0.
func Inc(field string, by int64) (Op, error) {
	return Op{name: opInc, field: field, value: strconv.AppendInt(nil, by, 10)}, checkName("field", field)
}

// Patch merges a document into the state (RFC 7396).
func Patch(patch []byte) (Op, error) {
	value, err := State(patch)
	return Op{name: opPatch, value: value, many: membersOf(value) > manyMembers}, err
}

// manyMembers is how many members of a patch are left to a database: it looks through the
// whole state for each.
const manyMembers = 200

// membersOf counts the members of all objects in a document.
func membersOf(doc []byte) (n int) {
	inText := false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case c == ':' && !inText:
			n++
		}
	}
	return n
}

// Push adds an item to the list in a field. A field that is missing is an empty list.
func Push(field string, item []byte) (Op, error) {
	value, err := within(item, func(v any) any { return map[string]any{field: []any{v}} })
	return Op{name: opPush, field: field, value: value}, cmp.Or(checkName("field", field), err)
}

// Set puts a record into the field under a key. A field that is missing is an empty object.
func Set(field, key string, record []byte) (Op, error) {
	value, err := within(record, func(v any) any { return map[string]any{field: map[string]any{key: v}} })
	return Op{name: opSet, field: field, key: key, value: value}, cmp.Or(checkName("field", field), checkName("key", key), err)
}

// Unset takes the record out of the field that is there under a key.
func Unset(field, key string) (Op, error) {
	return Op{name: opUnset, field: field, key: key}, cmp.Or(checkName("field", field), checkName("key", key))
}

func checkName(what, name string) error { return strictjson.Text(what, name, events.MaxName) }

// within checks a value where it will stand, so that no state becomes too deep, and writes
// it in its one form.
func within(value []byte, around func(any) any) ([]byte, error) {
	var v any = json.RawMessage(value)
	doc, err := Write(around(v))
	if err != nil {
		return nil, fault.New(fault.Validation, "the value is no JSON").Wrap(err)
	}
	if err := strictjson.State(doc); err != nil {
		return nil, err
	}
	return canonical(value)
}

// Alone is what the edit makes of an empty state, but for nulls in it; nil if nothing. An inc
// makes it 0 there: what a type can hold is the sum, not what is added.
func (o Op) Alone() []byte {
	if o.name == opPatch || o.name == opUnset {
		return o.value
	}
	doc := append(quoted([]byte{'{'}, o.field), ':')
	switch o.name {
	case opPush:
		doc = append(append(append(doc, '['), o.value...), ']')
	case opSet:
		doc = append(append(append(quoted(append(doc, '{'), o.key), ':'), o.value...), '}')
	default:
		doc = append(doc, '0')
	}
	return append(doc, '}')
}

// quoted adds a name to a document.
func quoted(doc []byte, name string) []byte {
	text, _ := Write(name) // of a text, it does not fail
	return append(doc, text...)
}

// Apply makes the edit on a state, nil where there is none, and says whether it changed
// anything. What it is given is not changed.
func (o Op) Apply(state []byte) (next []byte, changed bool, err error) {
	if state == nil && o.name == opUnset {
		return nil, false, nil
	}
	fields := map[string]any{}
	if state != nil {
		v, err := parse(state)
		if err != nil {
			return nil, false, err
		}
		if fields, changed = v.(map[string]any); !changed {
			return nil, false, fault.New(fault.Internal, "a scope's state is no object")
		}
	}
	fields, err = o.edit(fields)
	if err != nil {
		return nil, false, err
	}
	if next, err = Write(fields); err != nil {
		return nil, false, err
	}
	if len(next) > strictjson.MaxBytes && !smaller(next, state) { // what makes it smaller is never refused
		return nil, false, tooLarge()
	}
	if state != nil && strictjson.Equal(state, next) {
		return state, false, nil
	}
	return next, true, nil
}

// smaller says that a document is shorter than another would be in the same form.
func smaller(next, state []byte) bool {
	v, err := parse(state)
	if err != nil {
		return false
	}
	was, err := Write(v)
	return err == nil && len(next) < len(was)
}

func tooLarge() *fault.Error {
	return fault.New(fault.PayloadTooLarge, "the state would have more than %d bytes: keep less in one scope", strictjson.MaxBytes)
}

// edit makes the edit on the fields of a state.
func (o Op) edit(fields map[string]any) (map[string]any, error) {
	var value any
	if o.value != nil {
		var err error
		if value, err = parse(o.value); err != nil {
			return nil, err
		}
	}
	old := fields[o.field]
	has := old != nil // null is as if it were not there
	switch o.name {
	case opPatch:
		return strictjson.Merged(fields, value).(map[string]any), nil
	case opInc:
		sum, ok := add(old, has, value)
		if !ok {
			return nil, o.refuse(old, "only a whole number of 64 bits can be added to, and it must stay one")
		}
		fields[o.field] = sum
	case opPush:
		list, ok := old.([]any)
		if has && !ok {
			return nil, o.refuse(old, "only a list can be added to")
		}
		fields[o.field] = append(list, value)
	default:
		records, ok := old.(map[string]any)
		switch {
		case has && !ok:
			return nil, o.refuse(old, "only an object holds records")
		case o.name == opUnset && !has:
		case o.name == opSet && !has:
			fields[o.field] = map[string]any{o.key: value}
		case o.name == opSet:
			records[o.key] = value
		default:
			delete(records, o.key)
		}
	}
	return fields, nil
}

// add adds to a whole number, and says whether both are and the sum is one.
func add(old any, has bool, by any) (sum json.Number, ok bool) {
	n, err := strconv.ParseInt(string(by.(json.Number)), 10, 64)
	if err != nil || !has {
		return by.(json.Number), err == nil
	}
	was, isNumber := old.(json.Number)
	m, err := strconv.ParseInt(string(was), 10, 64)
	if !isNumber || err != nil {
		return "", false
	}
	s := m + n
	if (s > m) != (n > 0) && n != 0 {
		return "", false
	}
	return json.Number(strconv.FormatInt(s, 10)), true
}

// Recoverable is a state as read after the edit, maybe much later, with what the edit's event tells
// of it: the sum of an inc.
func (o Op) Recoverable(state []byte, sum int64) []byte {
	if o.name != opInc {
		return state
	}
	is := Op{name: opPatch, value: strconv.AppendInt(append(quoted([]byte{'{'}, o.field), ':'), sum, 10)}
	is.value = append(is.value, '}')
	if next, _, err := is.Apply(state); err == nil {
		return next
	}
	return is.value
}

// refuse says what stands where the edit was to be made.
func (o Op) refuse(old any, want string) error {
	found, err := Write(old)
	if err != nil {
		found = []byte("unreadable")
	}
	shown := string(found)
	if len(shown) > 40 {
		shown = shown[:40] + "…"
	}
	message := "the field " + strconv.Quote(o.field) + " is " + shown + ": " + want
	f := fault.New(fault.Validation, "%s", message)
	f.Violations = []fault.Violation{{Rule: o.name, Path: "/" + o.field, Message: message}}
	return f
}
