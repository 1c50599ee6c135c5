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

// PanicError is what a panic in a function that changes a scope goes on with, in the
// goroutine that has called.
type PanicError struct {
	Value any    // that it panicked with
	Stack []byte // of the goroutine that the function ran in
}

func (p *PanicError) Error() string {
	return fmt.Sprintf("%v\n\nthe function's stack:\n%s", p.Value, p.Stack)
}

// Unwrap returns what it panicked with, if that is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// outcome is how a function ended: by returning, by a panic, or with its goroutine.
type outcome struct {
	next     []byte
	err      error
	panicked *PanicError
	exited   bool
}

// decide has a function decide, and waits for it no longer than the context lasts. What it
// returns after that is dropped: nobody is there to write it.
func (h *handle) decide(ctx context.Context, state []byte, f func(context.Context, []byte) ([]byte, error)) ([]byte, error) {
	if !h.backend.traits().queued { // a transaction is used by one goroutine
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

// mutate has f change a state, nil where there is none, and returns the document to write,
// nil if f has changed nothing.
func mutate[T any](ctx context.Context, state []byte, f func(context.Context, T) (T, error)) ([]byte, error) {
	doc := state
	if doc == nil {
		doc = []byte("{}")
	}
	var t T
	if err := json.Unmarshal(doc, &t); err != nil {
		return nil, fault.New(fault.Validation, "the state is no %T: %v", t, err).Wrap(err)
	}
	before, err := marshal(&t) // as it is read: its methods may be the pointer's
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

// graft makes the changes that lead from one document to another on a third, which the first
// was read from. What they do not speak of stays as it is written: fields that a T does not
// have, and numbers that are too large for it. It returns nil if nothing is changed.
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
			continue // also if it was not there, and a T writes it all the same
		}
		for i, spelt := range spellings(s, b, a, name) {
			if i > 0 {
				delete(s, spelt) // left there, it would be what the next reader sees
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

// graftedList does it for lists. An item that is as it was stays as it is written, wherever it
// has gone. One that was changed keeps what the change does not speak of if it is known to be
// the same one ([recognized]). Otherwise it is what it was made: it would be given what another
// item had. It says no where one of them is no list.
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

// paired says of each item of a list which item of the list before is the same: those at the
// beginning and at the end, and then those that have moved. What is left is -1, and among the
// changed, or the gone.
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
	left := make(map[string][]int) // both were written by the same type, so the same items are the same text
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

// recognized says of changed items which of the gone ones they were: the one with the same id;
// else the one that has a text in common which no other item has, before or after; else the
// one that has a number so. Where that names several, or is named by several, it is none of
// them. A list in a list is known where it is the only one that changed, in its place.
func recognized(b, a []json.RawMessage, from, changed, gone []int) {
	if len(changed) == 0 || len(gone) == 0 {
		return
	}
	if _, list := items(a[changed[0]]); list && len(changed) == 1 && slices.Equal(changed, gone) && len(a) == len(b) {
		from[changed[0]] = gone[0]
		return
	}
	was, is := signs(b), signs(a)
	left := make(map[int]bool, len(gone))
	for _, j := range gone {
		left[j] = true
	}
	for _, kind := range []byte{'i', '"', '0'} {
		claims := make(map[int]int) // the gone one, by the changed one; -1 if they are several
		named := make(map[int]int)  // how many have claimed it
		for _, i := range changed {
			if from[i] >= 0 {
				continue
			}
			for sign := range is.of[i] {
				j, known := was.only[sign]
				if _, mine := is.only[sign]; sign[0] != kind || !known || !mine || !left[j] || was.id[j] != "" && is.id[i] != "" && was.id[j] != is.id[i] {
					continue
				}
				if other, claimed := claims[i]; claimed && other != j {
					j = -1
				} else if !claimed {
					named[j]++
				}
				claims[i] = j
			}
		}
		for i, j := range claims {
			if j >= 0 && named[j] == 1 {
				from[i] = j
				delete(left, j)
			}
		}
	}
}

// fingerprints are what items of a list are known by: each begins with what it is, an id, a text or a
// number.
type fingerprints struct {
	of   []map[string]bool
	id   []string
	only map[string]int // the item, of what one alone has
}

func signs(all []json.RawMessage) fingerprints {
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
		for sign := range m.of[i] {
			if _, known := m.only[sign]; known {
				twice[sign] = true
			}
			m.only[sign] = i
		}
	}
	for sign := range twice {
		delete(m.only, sign)
	}
	return m
}

// idName is the name of what tells an item from others, if it has something that is called so.
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

// kindOf is '"' of a text and '0' of a number; 0 of what tells nothing, such as one that is
// empty or zero.
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

// items returns those of a list; not ok if it is none.
func items(doc []byte) (all []json.RawMessage, ok bool) {
	if doc = bytes.TrimSpace(doc); len(doc) == 0 || doc[0] != '[' {
		return nil, false
	}
	return all, json.Unmarshal(doc, &all) == nil
}

// spellings are the names in a state that encoding/json reads into the field of a struct
// that a T writes under this name: the name itself, and those that differ by case. What a T
// tells apart, before or after, such as the keys of a map, is not among them.
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

// members returns those of an object; not ok if it is none.
func members(doc []byte) (m map[string]json.RawMessage, ok bool) {
	if doc = bytes.TrimSpace(doc); len(doc) == 0 || doc[0] != '{' {
		return nil, false
	}
	return m, json.Unmarshal(doc, &m) == nil
}
