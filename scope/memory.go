package scope

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Store stores scopes outside any engine. It is safe for concurrent use.
type Store struct{ backend backend }

// MemoryStore returns a store that lives as long as the program.
func MemoryStore(kinds ...Kind) (*Store, error) {
	m := newMemory()
	if err := m.common.declare(kinds); err != nil {
		return nil, err
	}
	return &Store{m}, nil
}

func newMemory() *memoryBackend {
	m := &memoryBackend{cells: make(map[container]cell), floors: make(map[container]int64), hub: wake.NewHub()}
	m.cellVerbs = cellVerbs{m}
	return m
}

// memoryBackend stores scopes in memory. Callers queue, so no writer is ever faster than another.
type memoryBackend struct {
	unrecorded
	cellVerbs
	common state
	hub    *wake.Hub

	mu     sync.Mutex
	cells  map[container]cell
	floors map[container]int64 // by kind: higher than every version of a dropped scope
	busy   int                 // writes since the last sweep
	left   int                 // scopes left after the last sweep
}

func (m *memoryBackend) state() *state               { return &m.common }
func (m *memoryBackend) traits() traits              { return traits{queued: true, alone: true} }
func (m *memoryBackend) ready(context.Context) error { return nil }

func (m *memoryBackend) get(ctx context.Context, kind, id string) (scopestore.Scope, error) {
	now, at := clock.Now(), container{workspace: store.WorkspaceOf(ctx), kind: kind, id: id}
	if err := store.CheckWorkspace(at.workspace); err != nil {
		return scopestore.Scope{}, err
	}
	m.mu.Lock()
	c := m.cells[at]
	m.mu.Unlock()
	if !c.alive(now) {
		return scopestore.Scope{}, notThere(kind, id)
	}
	return c.scope(kind, id, now), nil
}

func (m *memoryBackend) change(ctx context.Context, kind, id string, f change) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	now, at := clock.Now(), container{workspace: store.WorkspaceOf(ctx), kind: kind, id: id}
	if err := store.CheckWorkspace(at.workspace); err != nil {
		return answer{}, err
	}
	c := m.cell(at)
	next, got := f(c, now) // the caller has exclusive access to the container, so mu is not needed
	if !got.changed {
		return got, got.err
	}
	m.save(at, next, now)
	m.hub.WakeHere(scopestore.Topic(kind, id))
	return got, nil
}

func (m *memoryBackend) cell(at container) cell {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, there := m.cells[at]; there {
		return c
	}
	return none(m.floors[at.kindOf()])
}

func (m *memoryBackend) save(at container, c cell, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cells[at] = c; c.state == nil {
		m.drop(at, c)
	}
	m.sweep(now)
}

// drop removes a scope, but records its version in the floor. REQUIRES: mu
func (m *memoryBackend) drop(at container, c cell) {
	kind := at.kindOf()
	m.floors[kind] = max(m.floors[kind], c.version+1)
	delete(m.cells, at)
}

// sweep drops expired scopes, after as many writes as scopes were left by the last sweep (and
// 1,000 more). So each write costs about as much as reading two scopes, and at most half of the
// stored scopes expired long ago. REQUIRES: mu
func (m *memoryBackend) sweep(now time.Time) {
	if m.busy++; m.busy <= m.left+1000 {
		return
	}
	m.busy = 0
	for at, c := range m.cells {
		if !c.alive(now) {
			m.drop(at, c)
		}
	}
	m.left = len(m.cells)
}

func (m *memoryBackend) watch(kind, id string) watching {
	woken, end := m.hub.Wait(scopestore.Topic(kind, id))
	return watching{woken: woken, end: end, every: watchEvery}
}
