package scope

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// PanicError is the panic value that the caller gets if a function that changes a scope panics:
// the function runs in another goroutine, and its panic continues in the goroutine of the caller.
type PanicError struct {
	Value any    // original panic value
	Stack []byte // stack of the function's goroutine
}

// Error returns the panic value and the stack of the function.
func (p *PanicError) Error() string {
	return fmt.Sprintf("%v\n\nthe function's stack:\n%s", p.Value, p.Stack)
}

// Unwrap returns the panic value if it is an error, else nil.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// outcome is how a function ended: by returning, by a panic, or by runtime.Goexit.
type outcome struct {
	next     []byte
	err      error
	panicked *PanicError
	exited   bool
}

// decide runs a function, and waits for it no longer than the context lasts. A result that
// arrives after that is dropped.
func (h *handle) decide(ctx context.Context, state []byte, f func(context.Context, []byte) ([]byte, error)) ([]byte, error) {
	if !h.backend.traits().queued { // a transaction must stay on one goroutine
		return f(ctx, state)
	}
	done := make(chan outcome, 1)
	go func() {
		o := outcome{exited: true}
		defer func() {
			if o.exited {
				if v := recover(); v != nil {
					o = outcome{panicked: &PanicError{v, debug.Stack()}}
				}
			}
			done <- o
		}()
		o.next, o.err = f(ctx, state)
		o.exited = false
	}()
	select {
	case o := <-done:
		switch {
		case o.panicked != nil:
			panic(o.panicked)
		case o.exited:
			runtime.Goexit()
		}
		return o.next, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// mutate lets f change a state, nil if there is none, and returns the document to write, or nil
// if f has changed nothing.
func mutate[T any](ctx context.Context, state []byte, f func(context.Context, T) (T, error)) ([]byte, error) {
	doc := state
	if doc == nil {
		doc = []byte("{}")
	}
	var t T
	if err := json.Unmarshal(doc, &t); err != nil {
		return nil, fault.New(fault.Internal, "the state is not a valid %T: %v", t, err).Wrap(err)
	}
	before, err := marshal(&t) // by pointer, as it is decoded: its methods may have pointer receivers
	if err != nil {
		return nil, err
	}
	if t, err = f(ctx, t); err != nil {
		return nil, err
	}
	after, err := marshal(&t)
	if err != nil {
		return nil, err
	}
	if err := strictjson.State(after); err != nil {
		return nil, err
	}
	if state == nil {
		return after, nil
	}
	return graft(state, before, after)
}

// graft applies the changes between the documents before and after to state, which before was
// decoded from. Everything else in state stays as it is written: fields that T does not have, and
// numbers that are too large for it. It returns nil if nothing is changed.
func graft(state, before, after []byte) ([]byte, error) {
	if strictjson.Equal(before, after) {
		return nil, nil
	}
	next, err := grafted(state, before, after)
	if err != nil || strictjson.Equal(state, next) {
		return nil, err
	}
	return next, nil
}

// grafted is graft for a document of any type that differs between before and after.
func grafted(state, before, after []byte) ([]byte, error) {
	if next, ok, err := graftedList(state, before, after); ok || err != nil {
		return next, err
	}
	s, isObject := members(state)
	b, was := members(before)
	a, is := members(after)
	if !isObject || !was || !is {
		return after, nil
	}
	for name := range b {
		if _, still := a[name]; !still {
			for _, spelt := range spellings(s, b, a, name) {
				delete(s, spelt)
			}
		}
	}
	for name, value := range a {
		old, had := b[name]
		if had && strictjson.Equal(old, value) {
			continue // also if state does not have it and T writes it anyway
		}
		for i, spelt := range spellings(s, b, a, name) {
			if i > 0 {
				delete(s, spelt) // otherwise the next reader would see this one
				continue
			}
			name = spelt
		}
		if kept, has := s[name]; had && has {
			inner, err := grafted(kept, old, value)
			if err != nil {
				return nil, err
			}
			value = inner
		}
		s[name] = value
	}
	return scopestore.Write(s)
}

// graftedList applies graft to lists. Unchanged items stay as they are written, even if they
// moved. A changed item keeps its unknown fields only if it can be matched to its old self
// ([recognized]); otherwise they are dropped, because it might get those of another item. It
// returns false if one of the documents is not a list, or if state has another number of items than before.
func graftedList(state, before, after []byte) (next []byte, ok bool, err error) {
	s, okS := items(state)
	b, okB := items(before)
	a, okA := items(after)
	if !okS || !okB || !okA || len(s) != len(b) {
		return nil, false, nil
	}
	from, changed, gone := paired(b, a)
	recognized(b, a, from, changed, gone)
	for i, j := range from {
		if j >= 0 {
			if a[i], err = graftedItem(s[j], b[j], a[i]); err != nil {
				return nil, false, err
			}
		}
	}
	next, err = scopestore.Write(a)
	return next, err == nil, err
}

func graftedItem(state, before, after []byte) ([]byte, error) {
	if strictjson.Equal(before, after) {
		return state, nil
	}
	return grafted(state, before, after)
}

// paired matches each item of a list to the same item of the list before: first those at the
// beginning and at the end, then those that have moved. The others are -1 in from, and are listed
// in changed (new list) or gone (old list).
func paired(b, a []json.RawMessage) (from, changed, gone []int) {
	from = slices.Repeat([]int{-1}, len(a))
	first := 0
	for ; first < min(len(a), len(b)) && strictjson.Equal(b[first], a[first]); first++ {
		from[first] = first
	}
	i, j := len(a)-1, len(b)-1
	for ; i >= first && j >= first && strictjson.Equal(b[j], a[i]); i, j = i-1, j-1 {
		from[i] = j
	}
	left := make(map[string][]int) // both lists were encoded from the same type, so equal items have equal text
	for k := first; k <= j; k++ {
		left[string(b[k])] = append(left[string(b[k])], k)
	}
	for k := first; k <= i; k++ {
		if same := left[string(a[k])]; len(same) > 0 {
			from[k], left[string(a[k])] = same[0], same[1:]
		} else {
			changed = append(changed, k)
		}
	}
	for _, rest := range left {
		gone = append(gone, rest...)
	}
	slices.Sort(gone)
	return from, changed, gone
}

// recognized matches changed items to gone ones: by the same id; else by a string that they share
// and that no other item has, before or after; else by such a number. An ambiguous match, in
// either direction, counts as none. A list in a list is matched if it is the only changed item
// and stays in its place.
func recognized(b, a []json.RawMessage, from, changed, gone []int) {
	if len(changed) == 0 || len(gone) == 0 {
		return
	}
	if _, list := items(a[changed[0]]); list && len(changed) == 1 && slices.Equal(changed, gone) && len(a) == len(b) {
		from[changed[0]] = gone[0]
		return
	}
	was, is := fingerprintsOf(b), fingerprintsOf(a)
	left := make(map[int]bool, len(gone))
	for _, j := range gone {
		left[j] = true
	}
	for _, kind := range []byte{'i', '"', '0'} {
		matches := make(map[int]int) // gone item by changed item; -1 if several match
		matched := make(map[int]int) // number of changed items that match a gone item
		for _, i := range changed {
			if from[i] >= 0 {
				continue
			}
			for print := range is.of[i] {
				j, known := was.only[print]
				if _, mine := is.only[print]; print[0] != kind || !known || !mine || !left[j] || was.id[j] != "" && is.id[i] != "" && was.id[j] != is.id[i] {
					continue
				}
				if other, again := matches[i]; again && other != j {
					j = -1
				} else if !again {
					matched[j]++
				}
				matches[i] = j
			}
		}
		for i, j := range matches {
			if j >= 0 && matched[j] == 1 {
				from[i] = j
				delete(left, j)
			}
		}
	}
}

// fingerprints are the values that identify the items of a list. The first byte of each is its
// kind: an id, a string or a number.
type fingerprints struct {
	of   []map[string]bool
	id   []string
	only map[string]int // item by fingerprint, if only one item has it
}

func fingerprintsOf(all []json.RawMessage) fingerprints {
	m := fingerprints{of: make([]map[string]bool, len(all)), id: make([]string, len(all)), only: make(map[string]int)}
	twice := make(map[string]bool)
	for i, item := range all {
		m.of[i] = make(map[string]bool)
		object, _ := members(item)
		id := idName(object)
		for name, value := range object {
			kind := kindOf(value)
			if kind == 0 {
				continue
			}
			m.of[i][string(kind)+name+":"+string(value)] = true
			if name == id {
				m.id[i] = string(value)
				m.of[i]["i"+string(value)] = true
			}
		}
		for print := range m.of[i] {
			if _, known := m.only[print]; known {
				twice[print] = true
			}
			m.only[print] = i
		}
	}
	for print := range twice {
		delete(m.only, print)
	}
	return m
}

// idName returns the name of the member that identifies an item, or "" if it has none.
func idName(object map[string]json.RawMessage) string {
	for _, is := range []string{"id", "uuid", "key"} {
		if kindOf(object[is]) != 0 {
			return is
		}
		for _, spelt := range slices.Sorted(maps.Keys(object)) {
			if strings.EqualFold(spelt, is) && kindOf(object[spelt]) != 0 {
				return spelt
			}
		}
	}
	return ""
}

// kindOf returns '"' for a string and '0' for a number, and 0 for values that identify nothing,
// such as an empty string or zero.
func kindOf(value json.RawMessage) byte {
	switch {
	case len(value) == 0, string(value) == "0", string(value) == `""`:
		return 0
	case value[0] == '"':
		return '"'
	case value[0] == '-' || value[0] >= '0' && value[0] <= '9':
		return '0'
	}
	return 0
}

// items returns the items of a list; ok is false if doc is not a list.
func items(doc []byte) (all []json.RawMessage, ok bool) {
	if doc = bytes.TrimSpace(doc); len(doc) == 0 || doc[0] != '[' {
		return nil, false
	}
	return all, json.Unmarshal(doc, &all) == nil
}

// spellings returns the names in a state that encoding/json decodes into the struct field that T
// writes under this name: the name itself, and names that differ only in case. Names that T
// distinguishes, before or after, such as the keys of a map, are excluded.
func spellings(s, before, after map[string]json.RawMessage, name string) (all []string) {
	for twin := range s {
		_, apart := before[twin]
		_, still := after[twin]
		if twin != name && !apart && !still && strings.EqualFold(twin, name) {
			all = append(all, twin)
		}
	}
	slices.Sort(all)
	if _, has := s[name]; has {
		all = slices.Insert(all, 0, name)
	}
	return all
}

// members returns the members of an object; ok is false if doc is not an object.
func members(doc []byte) (m map[string]json.RawMessage, ok bool) {
	if doc = bytes.TrimSpace(doc); len(doc) == 0 || doc[0] != '{' {
		return nil, false
	}
	return m, json.Unmarshal(doc, &m) == nil
}
