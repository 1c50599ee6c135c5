package scopestore

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Names of the edits and of their events.
const (
	opInc   = "inc"
	opPatch = "patch"
	opPush  = "push"
	opSet   = "set"
	opUnset = "unset"
)

// Op is an edit that does not depend on a version of the state, so concurrent callers do not
// conflict. A database applies it in place, in SQL, except for a large patch: [Edit] applies that
// with [Op.Apply] to the state that it has read, and replaces the state, again if another write came
// first. The scopes in files and in memory use Op.Apply for every edit, and tests compare the SQL of
// both databases with it. The tags name the arguments of the SQL, as in store.VerbOf.
type Op struct {
	name   string `arg:"op"`
	field  string `arg:"field,null"`
	key    string `arg:"key,null"`
	value  []byte `arg:"value,null"`
	amount int64  // of an inc
	large  bool   // a patch with more than maxMembers members, which Edit applies in Go
}

// Inc adds to the integer in a field. A missing field counts as 0.
func Inc(field string, by int64) (Op, error) {
	return Op{name: opInc, field: field, value: strconv.AppendInt(nil, by, 10), amount: by}, checkName("field", field)
}

// Patch merges a document into the state (RFC 7396).
func Patch(patch []byte) (Op, error) {
	value, err := State(patch)
	return Op{name: opPatch, value: value, large: membersOf(value) > maxMembers}, err
}

// maxMembers is the maximum number of members of a patch that the database applies:
// it scans the whole state for each member.
const maxMembers = 200

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

// Push appends an item to the list in a field. A missing field counts as an empty list.
func Push(field string, item []byte) (Op, error) {
	value, err := checkedValue(item, func(v any) any { return map[string]any{field: []any{v}} })
	return Op{name: opPush, field: field, value: value}, cmp.Or(checkName("field", field), err)
}

// Set stores a record under a key of the object in a field. A missing field counts as
// an empty object.
func Set(field, key string, record []byte) (Op, error) {
	value, err := checkedValue(record, func(v any) any { return map[string]any{field: map[string]any{key: v}} })
	return Op{name: opSet, field: field, key: key, value: value}, cmp.Or(checkName("field", field), checkName("key", key), err)
}

// Unset removes the record under a key of the object in a field.
func Unset(field, key string) (Op, error) {
	return Op{name: opUnset, field: field, key: key}, cmp.Or(checkName("field", field), checkName("key", key))
}

func checkName(what, name string) error { return strictjson.Text(what, name, events.MaxName) }

// checkedValue checks a value at its place in the state, so that no state becomes too
// deep, and returns it in canonical form.
func checkedValue(value []byte, around func(any) any) ([]byte, error) {
	var v any = json.RawMessage(value)
	doc, err := Write(around(v))
	if err != nil {
		return nil, fault.New(fault.Validation, "the value is not valid JSON").Wrap(err)
	}
	if err := strictjson.State(doc); err != nil {
		return nil, err
	}
	return canonical(value)
}

// Alone returns the result of the edit on an empty state, without removing nulls, or nil for an
// unset. Package scope decodes it into the Go type of the scope, to reject an edit that the type cannot
// decode. For an inc, the field is 0 instead of the increment, because only the sum is stored: a
// decrement of an unsigned field is valid.
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

// quoted appends a name as a JSON string to a document.
func quoted(doc []byte, name string) []byte {
	text, _ := Write(name) // cannot fail for a string
	return append(doc, text...)
}

// Apply applies the edit to a state (nil for a missing scope), and reports whether it
// changed anything. It does not modify its argument.
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
		var ok bool
		if fields, ok = v.(map[string]any); !ok {
			return nil, false, fault.New(fault.Internal, "the stored state of the scope is not a JSON object: restore it from a backup")
		}
	}
	fields, err = o.edit(fields)
	if err != nil {
		return nil, false, err
	}
	if next, err = Write(fields); err != nil {
		return nil, false, err
	}
	if len(next) > strictjson.MaxBytes && !smaller(next, state) { // an edit that makes the state smaller is always allowed
		return nil, false, tooLarge()
	}
	if state != nil && strictjson.Equal(state, next) {
		return state, false, nil
	}
	return next, true, nil
}

// smaller reports whether next is shorter than the canonical form of state.
func smaller(next, state []byte) bool {
	v, err := parse(state)
	if err != nil {
		return false
	}
	was, err := Write(v)
	return err == nil && len(next) < len(was)
}

func tooLarge() *fault.Error {
	return fault.New(fault.PayloadTooLarge, "the state would exceed %d bytes: store less data in one scope", strictjson.MaxBytes)
}

// edit applies the edit to the fields of a state.
func (o Op) edit(fields map[string]any) (map[string]any, error) {
	var value any
	if o.value != nil {
		var err error
		if value, err = parse(o.value); err != nil {
			return nil, err
		}
	}
	old := fields[o.field]
	has := old != nil // null counts as missing
	switch o.name {
	case opPatch:
		return strictjson.Merged(fields, value).(map[string]any), nil
	case opInc:
		sum, ok := add(old, has, value)
		if !ok {
			return nil, o.refuse(old, "inc requires a 64-bit integer, and the sum must fit into 64 bits")
		}
		fields[o.field] = sum
	case opPush:
		list, ok := old.([]any)
		if has && !ok {
			return nil, o.refuse(old, "push requires a list")
		}
		fields[o.field] = append(list, value)
	default:
		records, ok := old.(map[string]any)
		switch {
		case has && !ok:
			return nil, o.refuse(old, "set and unset require an object")
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

// add adds two integers. ok is false if one of them is no 64-bit integer, or if the
// sum overflows.
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

// Recovered returns what is known of the state after an edit whose response was lost. state was read
// later and may include newer changes. Only the sum of an inc is known exactly, from the edit's event:
// it replaces the value of the field. If state cannot be patched, the result has only that field.
func (o Op) Recovered(state []byte, sum int64) []byte {
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

// refuse returns the error of an edit that does not fit the current value of its field.
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
