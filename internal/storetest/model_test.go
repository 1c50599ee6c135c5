package storetest

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// model is the reference that the databases are compared with: maps, and a second, hand-written
// implementation of the rules.
type model struct {
	streams  map[string]int64 // the head
	entities map[string]modelEntity
	scopes   map[string]modelScope
	// history has the names of the events of every stream, '$' included.
	history map[string][]string
}

type modelEntity struct {
	status  string
	version int64
	data    string
}

type modelScope struct {
	version int64
	live    bool
	fields  map[string]modelValue
}

// modelValue is a JSON value, and its integer, if it is one.
type modelValue struct {
	json  string
	whole *big.Int
}

func newModel() *model {
	return &model{streams: map[string]int64{}, entities: map[string]modelEntity{},
		scopes: map[string]modelScope{}, history: map[string][]string{}}
}

// clone copies deeply where needed: the fields of scopes are never changed in place.
func (m *model) clone() *model {
	c := &model{streams: maps.Clone(m.streams), entities: maps.Clone(m.entities),
		scopes: maps.Clone(m.scopes), history: map[string][]string{}}
	for k, v := range m.history {
		c.history[k] = slices.Clone(v)
	}
	return c
}

func (m *model) note(stream, event string) { m.history[stream] = append(m.history[stream], event) }

func (m *model) append(o op) string {
	head, ok := m.streams[o.key]
	if !ok {
		head = -1
	}
	if o.want != nil && *o.want != head {
		return conflictResult(*o.want, head)
	}
	for _, name := range o.events {
		m.note(o.key, name)
	}
	m.streams[o.key] = head + int64(len(o.events))
	return fmt.Sprint("last ", m.streams[o.key])
}

func (m *model) create(o op) string {
	if e, ok := m.entities[o.key]; ok {
		return "CONFLICT " + e.answer()
	}
	e := modelEntity{o.to, 0, o.data}
	m.entities[o.key] = e
	m.note("$entity/thing/"+o.key, "created -> "+o.to)
	return e.answer()
}

func (e modelEntity) answer() string {
	return fmt.Sprintf("%s v%d %s", e.status, e.version, canonical(e.data))
}

func (m *model) transition(o op) string {
	e, ok := m.entities[o.key]
	switch {
	case !ok:
		return "NOT_FOUND"
	case !slices.Contains(o.from, e.status):
		return "INVALID_TRANSITION " + e.answer()
	case o.want != nil && *o.want != e.version:
		return conflictResult(*o.want, e.version)
	}
	m.note("$entity/thing/"+o.key, fmt.Sprintf("moved %s -> %s", e.status, o.to))
	e.status, e.version = o.to, e.version+1
	if o.data != "" {
		e.data = o.data
	}
	m.entities[o.key] = e
	return e.answer()
}

func (m *model) getEntity(o op) string {
	if e, ok := m.entities[o.key]; ok {
		return e.answer()
	}
	return "NOT_FOUND"
}

// seen returns the version of a scope as a caller sees it.
func (s modelScope) seen() int64 {
	if s.live {
		return s.version
	}
	return -1
}

func (s modelScope) answer() string {
	doc := ""
	for _, f := range slices.Sorted(maps.Keys(s.fields)) {
		doc += fmt.Sprintf(",%q:%s", f, s.fields[f].json)
	}
	if doc != "" {
		doc = doc[1:]
	}
	return fmt.Sprintf("v%d %s", s.version, canonical("{"+doc+"}"))
}

func (m *model) scope(key string) modelScope {
	if s, ok := m.scopes[key]; ok {
		return s
	}
	return modelScope{version: -1}
}

func (m *model) store(key, event string, s modelScope) string {
	s.version++
	m.scopes[key] = s
	m.note("$scope/user/"+key, event)
	return s.answer()
}

func (m *model) put(o op) string {
	s := m.scope(o.key)
	if o.want != nil && *o.want != s.seen() {
		return conflictResult(*o.want, s.seen())
	}
	s.live, s.fields = true, map[string]modelValue{}
	for _, f := range o.fields {
		s.fields[f.name] = f.value
	}
	return m.store(o.key, "put", s)
}

func (m *model) inc(o op) string {
	s := m.scope(o.key)
	old, there := s.fields[o.field]
	there = there && old.json != "null"
	if !s.live || !there {
		old = modelValue{whole: new(big.Int)}
	}
	if old.whole == nil || !old.whole.IsInt64() {
		return "VALIDATION_ERROR"
	}
	sum := new(big.Int).Add(old.whole, big.NewInt(o.by))
	if !sum.IsInt64() {
		return "VALIDATION_ERROR"
	}
	if s.live && there && o.by == 0 { // an edit without a change writes nothing
		return s.answer() + fmt.Sprint(" = ", sum)
	}
	fields := map[string]modelValue{}
	if s.live {
		fields = maps.Clone(s.fields)
	}
	fields[o.field] = modelValue{sum.String(), sum}
	s.live, s.fields = true, fields
	return m.store(o.key, "inc", s) + fmt.Sprint(" = ", sum)
}

func (m *model) delete(o op) string {
	s := m.scope(o.key)
	if !s.live {
		return "NOT_FOUND"
	}
	if o.want != nil && *o.want != s.version {
		return conflictResult(*o.want, s.version)
	}
	s.live, s.fields = false, nil
	m.store(o.key, "deleted", s)
	return fmt.Sprint("deleted v", s.version+1)
}

func (m *model) getScope(o op) string {
	if s := m.scope(o.key); s.live {
		return s.answer()
	}
	return "NOT_FOUND"
}

func (m *model) read(o op) string {
	return fmt.Sprint(m.history[o.key])
}

func conflictResult(want, last int64) string {
	return fmt.Sprintf("CONCURRENCY_ERROR expected %d, last %d", want, last)
}
