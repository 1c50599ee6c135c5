package scope

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/files"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// FileStore returns a store with one file per scope, in a folder that any number of processes on one machine may share. A
// new file is written next to the old one, flushed, and renamed over it, under a lock that the operating system
// releases when a process dies. After a crash at any moment, the file therefore contains either the old state or the
// new one. The folder must be on a file system that supports locks (not every network file system does).
func FileStore(dir string, kinds ...Kind) (*Store, error) {
	f := &fileBackend{dir: dir, hub: wake.NewHub(), piles: make(map[container]*pile)}
	f.cellVerbs = cellVerbs{f}
	if err := f.common.declare(kinds); err != nil {
		return nil, err
	}
	if err := files.MakeDir(filepath.Join(dir, locks)); err != nil {
		return nil, err
	}
	return &Store{f}, nil
}

// Sweep deletes the expired scopes in a file store and returns the number deleted. Expired scopes are already
// invisible, so Sweep only frees disk space. A memory store sweeps itself, and Sweep does nothing there.
func (s *Store) Sweep(ctx context.Context) (int, error) {
	if f, ok := s.backend.(*fileBackend); ok {
		return f.sweep(ctx)
	}
	return 0, nil
}

// locks is the folder of the lock files. Scopes share lockCount locks, which are held while a
// file is written, and never while a function decides.
const (
	locks     = ".locks"
	lockCount = 64
)

// fileBackend stores scopes in files.
type fileBackend struct {
	unrecorded
	cellVerbs
	dir    string
	common state
	hub    *wake.Hub

	// held guards the file locks within this process: at most one system thread blocks per lock,
	// not one per scope.
	held [lockCount]sync.Mutex

	mu    sync.Mutex
	piles map[container]*pile
}

// pile holds the changes of one scope that wait to be written. The writer takes all of them, and
// writes once.
type pile struct{ calls []*fileCall }

type fileCall struct {
	change change
	taken  bool // guarded by fileBackend.mu
	got    answer
	done   chan struct{}
}

func (f *fileBackend) state() *state               { return &f.common }
func (f *fileBackend) traits() traits              { return traits{queued: true} }
func (f *fileBackend) ready(context.Context) error { return nil }

func (f *fileBackend) get(ctx context.Context, kind, id string) (scopestore.Scope, error) {
	if err := ctx.Err(); err != nil {
		return scopestore.Scope{}, err
	}
	at, err := f.at(ctx, kind, id)
	if err != nil {
		return scopestore.Scope{}, err
	}
	c, _, err := f.read(at)
	now := clock.Now()
	if err == nil && !c.alive(now) {
		err = notThere(kind, id)
	}
	return c.scope(kind, id, now), err
}

// watchFiles is the poll interval for changes by other processes.
const watchFiles = 250 * time.Millisecond

func (f *fileBackend) watch(kind, id string) watching {
	woken, end := f.hub.Wait(scopestore.Topic(kind, id))
	return watching{woken: woken, end: end, every: watchFiles}
}

func (f *fileBackend) at(ctx context.Context, kind, id string) (container, error) {
	at := container{workspace: store.WorkspaceOf(ctx), kind: kind, id: id}
	return at, store.CheckWorkspace(at.workspace)
}

// change makes a change together with others that wait. If ctx ends before the change is taken,
// nothing is changed; after that, change waits for the result.
func (f *fileBackend) change(ctx context.Context, kind, id string, what change) (answer, error) {
	at, err := f.at(ctx, kind, id)
	if err != nil {
		return answer{}, err
	}
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	call := &fileCall{change: what, done: make(chan struct{})}
	f.add(at, call)
	select {
	case <-call.done:
		return call.got, call.got.err
	case <-ctx.Done():
	}
	if f.withdraw(at, call) {
		return answer{}, ctx.Err()
	}
	<-call.done
	return call.got, call.got.err
}

func (f *fileBackend) add(at container, call *fileCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.piles[at]; p != nil {
		p.calls = append(p.calls, call)
		return
	}
	f.piles[at] = &pile{[]*fileCall{call}}
	go f.serve(at)
}

// withdraw removes a waiting call. It returns false if the call is already taken.
func (f *fileBackend) withdraw(at container, call *fileCall) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if call.taken {
		return false
	}
	p := f.piles[at]
	for i, c := range p.calls {
		if c == call {
			p.calls = append(p.calls[:i:i], p.calls[i+1:]...)
		}
	}
	return true
}

// waits reports whether calls wait, and removes the pile if none do.
func (f *fileBackend) waits(at container) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.piles[at].calls) == 0 {
		delete(f.piles, at)
		return false
	}
	return true
}

// take takes all waiting calls.
func (f *fileBackend) take(at container) []*fileCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.piles[at]
	calls := p.calls
	p.calls = nil
	for _, c := range calls {
		c.taken = true
	}
	return calls
}

// serve writes the waiting changes of one scope until there are none. Callers may leave while it
// waits for the lock.
func (f *fileBackend) serve(at container) {
	for f.waits(at) {
		unlock, err := f.enter(at)
		calls := f.take(at)
		if err != nil {
			for _, c := range calls {
				c.got.err = err
			}
		} else {
			f.write(at, calls)
			unlock()
		}
		for _, c := range calls {
			close(c.done)
		}
	}
}

// write applies changes one after the other, and writes the result once.
func (f *fileBackend) write(at container, calls []*fileCall) {
	c, there, err := f.read(at)
	now, changed := clock.Now(), false
	if err == nil && !there {
		var floor int64
		floor, err = f.floor(at)
		c = none(floor)
	}
	if err == nil {
		for _, call := range calls {
			c, call.got = call.change(c, now)
			changed = changed || call.got.changed
		}
		if changed {
			err = f.save(at, c)
		}
	}
	if err != nil {
		for _, call := range calls { // also refused calls: the refusal may depend on a change that was not written
			call.got = answer{err: err}
		}
		return
	}
	if changed {
		f.hub.WakeHere(scopestore.Topic(at.kind, at.id))
	}
}

// save writes a cell to its file, or deletes the file.
func (f *fileBackend) save(at container, c cell) error {
	if c.state == nil {
		return f.drop(at, c)
	}
	doc, err := scopestore.Write(fileDoc{Workspace: at.workspace, Kind: at.kind, ID: at.id, Version: c.version, EndsAt: c.ends, State: c.state})
	if err != nil {
		return err
	}
	return files.Replace(f.file(at), doc)
}

// drop deletes a file. It raises the floor first, so that versions are not reused.
func (f *fileBackend) drop(at container, c cell) error {
	floor, err := f.floor(at)
	if err == nil && floor <= c.version {
		err = files.Replace(f.floorFile(at), strconv.AppendInt(nil, c.version+1, 10))
	}
	if err != nil {
		return err
	}
	return files.Remove(f.file(at))
}

// fileDoc is the content of a file.
type fileDoc struct {
	Workspace string          `json:"workspace"`
	Kind      string          `json:"kind"`
	ID        string          `json:"id"`
	Version   int64           `json:"version"`
	EndsAt    int64           `json:"endsAt,omitempty"`
	State     json.RawMessage `json:"state"`
}

// read reads a file. It needs no lock, because files are replaced atomically.
func (f *fileBackend) read(at container) (c cell, there bool, err error) {
	doc, there, err := files.Read(f.file(at))
	if err != nil || !there {
		return cell{}, false, err
	}
	var d fileDoc
	if err := json.Unmarshal(doc, &d); err != nil || d.Workspace != at.workspace || d.Kind != at.kind || d.ID != at.id || len(d.State) == 0 {
		return cell{}, false, fault.New(fault.DatabaseDamaged, "file %s does not contain %s scope %q: restore it from a backup", f.file(at), at.kind, at.id).Wrap(err)
	}
	return cell{d.Version, d.State, d.EndsAt}, true, nil
}

// floorFile returns the file with the floor of a kind, for the scopes under one lock.
func (f *fileBackend) floorFile(at container) string {
	return filepath.Join(f.dir, fileName(at.workspace), fileName(at.kind), fmt.Sprintf(".floor%02d", lockOf(at)))
}

// floor returns the first version of a new scope of the kind, under the same lock.
func (f *fileBackend) floor(at container) (int64, error) {
	doc, there, err := files.Read(f.floorFile(at))
	if err != nil || !there {
		return 0, err
	}
	n, err := strconv.ParseInt(string(doc), 10, 64)
	if err != nil {
		return 0, fault.New(fault.DatabaseDamaged, "file %s does not contain a version: restore it from a backup", f.floorFile(at)).Wrap(err)
	}
	return n, nil
}

// enter waits for the lock of a scope, first within this process, then among all processes.
func (f *fileBackend) enter(at container) (leave func(), err error) {
	held := &f.held[lockOf(at)]
	held.Lock()
	unlock, err := files.Lock(f.lock(at))
	if err != nil {
		held.Unlock()
		return nil, err
	}
	return func() { unlock(); held.Unlock() }, nil
}

func (f *fileBackend) lock(at container) string {
	return filepath.Join(f.dir, locks, fmt.Sprintf("%02d", lockOf(at)))
}

func lockOf(at container) int {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s/%s/%s", at.workspace, at.kind, at.id)
	return int(h.Sum32() % lockCount)
}

func (f *fileBackend) file(at container) string {
	return filepath.Join(f.dir, fileName(at.workspace), fileName(at.kind), fileName(at.id)+suffix)
}

const suffix = ".json"

// fileName encodes a name so that every file system accepts it, and keeps names distinct on file
// systems that ignore case.
func fileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() > 150 {
		sum := sha256.Sum256([]byte(name))
		return "%%" + hex.EncodeToString(sum[:]) // no other name begins with %%
	}
	return b.String()
}

// sweep deletes the files of expired scopes.
func (f *fileBackend) sweep(ctx context.Context) (n int, err error) {
	walked := filepath.WalkDir(f.dir, func(name string, e fs.DirEntry, failed error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case failed != nil:
			err = errors.Join(err, failed)
		case e.IsDir() && e.Name() == locks:
			return fs.SkipDir
		case !e.IsDir() && strings.HasSuffix(name, suffix):
			gone, failed := f.sweepOne(name)
			if err = errors.Join(err, failed); gone {
				n++
			}
		}
		return nil
	})
	return n, errors.Join(err, walked)
}

func (f *fileBackend) sweepOne(name string) (gone bool, err error) {
	doc, _, err := files.Read(name)
	var d fileDoc
	if err != nil || json.Unmarshal(doc, &d) != nil || d.EndsAt == 0 || d.EndsAt > clock.Now().UnixMilli() {
		return false, nil // gone, alive, or damaged: a read reports the damage
	}
	at := container{workspace: d.Workspace, kind: d.Kind, id: d.ID}
	unlock, err := f.enter(at)
	if err != nil {
		return false, err
	}
	defer unlock()
	c, there, err := f.read(at)
	if err != nil || !there || c.alive(clock.Now()) {
		return false, err
	}
	return true, f.drop(at, c)
}
