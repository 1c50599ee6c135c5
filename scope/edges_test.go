package scope_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/scope"
)

// capitals is a workspace whose folder cannot be called after it: each of them takes three
// letters there.
var capitals = strings.Repeat("W", 60)

// TestSweepTakesTheLockOfWriters verifies that files are swept under the lock that they are
// written under, also in a workspace with a long name.
func TestSweepTakesTheLockOfWriters(t *testing.T) {
	for _, workspace := range []string{"short", capitals} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			store, err := scope.FileStore(dir)
			e := &env{T: t, ctx: holdfast.InWorkspace(context.Background(), workspace), own: store}
			e.ok(err)
			_, err = e.raw("u", scope.TTL(time.Minute)).Inc(e.ctx, "n", 1)
			e.ok(err)
			<-time.After(2 * time.Minute)
			n, err := store.Sweep(e.ctx)
			e.ok(err)
			e.equal("swept", n, 1)
			locks, err := os.ReadDir(filepath.Join(dir, ".locks"))
			e.ok(err)
			e.equal("locks taken", len(locks), 1)
		})
	}
}

// TestSweepBesideWriters verifies that where one process sweeps all the time, what another
// has written is there, and no version is used twice: scopes end, and are made anew, while
// they are swept.
func TestSweepBesideWriters(t *testing.T) {
	dir := t.TempDir()
	e, other := open(t, "files:"+dir), open(t, "files:"+dir)
	e.T, e.ctx = t, holdfast.InWorkspace(context.Background(), capitals)
	ended, end := context.WithTimeout(e.ctx, time.Second)
	defer end()
	var sweeping sync.WaitGroup
	var swept atomic.Int64
	sweeping.Go(func() {
		for ended.Err() == nil {
			n, err := other.own.Sweep(e.ctx)
			if swept.Add(int64(n)); err != nil {
				t.Error(err)
			}
		}
	})
	won, lost := holdfasttest.Race(t, 4, func(i int) error {
		id := fmt.Sprint("u", i)
		for last := int64(-1); ended.Err() == nil; {
			brief, err := e.raw(id, scope.TTL(time.Millisecond)).Inc(e.ctx, "n", 1)
			if err != nil {
				return err
			}
			if err := clock.Wait(e.ctx, time.Millisecond); err != nil {
				return err
			}
			kept, err := e.raw(id).Inc(e.ctx, "n", 1)
			if err != nil {
				return err
			}
			if err := clock.Wait(e.ctx, time.Millisecond); err != nil { // who sweeps may be about to delete it
				return err
			}
			got, err := e.raw(id).Get(e.ctx)
			if err != nil || !got.Exists || got.Version != kept.Version || brief.Version <= last || kept.Version <= brief.Version {
				return fmt.Errorf("%s was at %d, then %d, then %d without a TTL, and is at %d: %w", id, last, brief.Version, kept.Version, got.Version, err)
			}
			last = kept.Version
		}
		return nil
	})
	sweeping.Wait()
	e.equal("errors", lost, "[]")
	e.equal("writers", won, 4)
	if swept.Load() == 0 {
		t.Error("nothing was swept: the test proves nothing")
	}
}

// TestSweepOfAnyFolder verifies that a store of files is swept whatever its folder is called.
func TestSweepOfAnyFolder(t *testing.T) {
	for _, name := range []string{"plain", "a[b]", "a[b", "a*?", `a\b`} {
		dir := filepath.Join(t.TempDir(), name)
		synctest.Test(t, func(t *testing.T) {
			store, err := scope.FileStore(dir)
			e := &env{T: t, ctx: freshWorkspace(), own: store}
			e.ok(err)
			_, err = e.raw("u", scope.TTL(time.Minute)).Inc(e.ctx, "n", 1)
			e.ok(err)
			<-time.After(2 * time.Minute)
			n, err := store.Sweep(e.ctx)
			e.ok(err)
			e.equal(name+" swept", n, 1)
			e.equal(name+" files", e.files(dir, false), "[]")
		})
	}
}

// TestNoTwoScopesShareAFile verifies that a name that is too long for a file does not take
// the file of another: what it is written as instead is written by no other name.
func TestNoTwoScopesShareAFile(t *testing.T) {
	each(t, func(e *env) {
		var long, short string
		for i := 0; short == ""; i++ {
			long = fmt.Sprintf("%s%d", strings.Repeat("x", 160), i)
			if sum := sha256.Sum256([]byte(long)); sum[0] == 'A' { // which is written as %41
				short = "A" + hex.EncodeToString(sum[1:])
			}
		}
		sum := sha256.Sum256([]byte(long))
		ids := []string{long, short, hex.EncodeToString(sum[:]), "%" + hex.EncodeToString(sum[:]), "%%" + hex.EncodeToString(sum[:])}
		for i, id := range ids {
			_, err := e.raw(id).Inc(e.ctx, "n", int64(i+1))
			e.ok(err)
		}
		for i, id := range ids {
			e.is(id, fmt.Sprintf(`{"n":%d}`, i+1), 0)
		}
	}, "files")
}

// largeDocument returns a document with so many members that a database is slow to process it.
func largeDocument(value string) map[string]any {
	doc := map[string]any{}
	for i := range 10_000 {
		doc[fmt.Sprintf("key%05d", i)] = value
	}
	return doc
}

// TestPatchOfManyMembers verifies that a patch of 10,000 members is made on every store: one
// change with one event, which in a database is that of a state put in the place of another;
// and what it changes not is no change.
func TestPatchOfManyMembers(t *testing.T) {
	each(t, func(e *env) {
		s := at[map[string]any](e, "thing", "u")
		_, err := s.Inc(e.ctx, "n", 1)
		e.ok(err)
		want := largeDocument("b")
		want["n"] = 1
		for i, doc := range []map[string]any{largeDocument("a"), largeDocument("b"), largeDocument("b")} {
			got, err := s.Patch(e.ctx, doc)
			e.ok(err)
			e.equal("changed", got.Changed, i < 2)
			e.equal("version", got.Version, min(i+1, 2))
		}
		got, err := s.Get(e.ctx)
		e.ok(err)
		e.equal("members", maps.EqualFunc(got.State, want, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }), true)
		if e.hf != nil {
			e.equal("history", e.history("thing", "u"), "[inc put put]")
		}
		_, err = at[map[string]any](e, "thing", "u", scope.ExpectVersion(1)).Patch(e.ctx, largeDocument("c"))
		e.refused(err, fault.Concurrency)
	}, someStores(t, everyStore)...)
}

// TestPatchOfManyMembersLosesNothing verifies that such patches and sums made at the same
// time, also by another process, are all made.
func TestPatchOfManyMembersLosesNothing(t *testing.T) {
	testlevel.Long(t)
	each(t, func(e *env) {
		envs := []*env{e, e}
		if e.where != "" {
			envs[1] = e.other()
		}
		const patchers, patches, sums = 2, 2, 4 * 10
		won, lost := holdfasttest.Race(e.T, 6, func(i int) error {
			s := at[map[string]any](envs[i%2], "thing", "u")
			if i < patchers {
				for k := range patches {
					if _, err := s.Patch(e.ctx, largeDocument(fmt.Sprint(i, k))); err != nil {
						return err
					}
				}
				return nil
			}
			for range sums / 4 {
				if _, err := s.Inc(e.ctx, "n", 1); err != nil {
					return err
				}
				if err := clock.Wait(e.ctx, 10*time.Millisecond); err != nil {
					return err
				}
			}
			return nil
		})
		e.equal("errors", lost, "[]")
		e.equal("callers", won, 6)
		got, err := at[map[string]any](e, "thing", "u").Get(e.ctx)
		e.ok(err)
		e.equal("sum", got.State["n"], sums)
		e.equal("version", got.Version, sums+patchers*patches-1)
		e.equal("members", len(got.State), 10_001)
		for name, value := range got.State {
			if name != "n" && value != got.State["key00000"] {
				e.Fatalf("%s is %v of one patch, but key00000 is %v of another", name, value, got.State["key00000"])
			}
		}
	})
}

// TestNodesThatSweepTogether verifies that several nodes that sweep at the same time end all
// that there is to be ended, however many pages that is, and each scope once.
func TestNodesThatSweepTogether(t *testing.T) {
	each(t, func(e *env) {
		n := testlevel.Pick(17, 40, 40) // for each of 32 callers: a page is 500
		if e.name == "sqlite" {
			n = min(n, 20)
		}
		_, lost := holdfasttest.Race(e.T, 32, func(i int) error {
			for k := range n {
				if _, err := e.raw(fmt.Sprintf("%d-%d", i, k), scope.TTL(time.Minute)).Inc(e.ctx, "n", 1); err != nil {
					return err
				}
			}
			return nil
		})
		e.equal("errors", lost, "[]")
		nodes := []*env{e, e.other(), e.other()}
		for _, node := range nodes { // connected, so that they begin together
			_, err := scopestore.SweepAll(e.ctx, engine.Of(node.hf))
			e.ok(err)
		}
		e.pass(2 * time.Minute)
		for round, want := range []int{32 * n, 0} {
			var swept atomic.Int64
			_, lost := holdfasttest.Race(e.T, len(nodes), func(i int) error {
				n, err := scopestore.SweepFor(e.ctx, engine.Of(nodes[i].hf), time.Hour)
				swept.Add(int64(n))
				return err
			})
			e.equal("errors", lost, "[]")
			e.equal(fmt.Sprint("ended in round ", round), swept.Load(), want)
		}
		e.equal("history", e.history("thing", "31-0"), "[inc expired]")
	}, "sqlite", "postgres")
}

// oversize makes the state of a scope longer than any verb does, behind the store's back.
func (e *env) oversize(id, doc string) {
	e.Helper()
	if folder, ok := strings.CutPrefix(e.where, "files:"); ok {
		was, err := e.raw(id).Get(e.ctx)
		e.ok(err)
		for _, name := range e.files(folder, false) {
			text, err := os.ReadFile(name)
			e.ok(err)
			e.ok(os.WriteFile(name, bytes.Replace(text, was.State, []byte(doc), 1), 0o600))
		}
		return
	}
	e.ok(e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := storetest.Exec(ctx, tx, `UPDATE holdfast_scope SET state = $1 WHERE id = $2`, doc, id)
		return err
	}))
}

// TestWhatIsTooLargeCanBeMadeSmaller verifies that a state that is over the limit, however
// it came there, takes every edit that makes it smaller, also if it is over the limit still,
// and none that does not.
func TestWhatIsTooLargeCanBeMadeSmaller(t *testing.T) {
	each(t, func(e *env) {
		e.has("u", `{"small":1}`)
		long := strings.Repeat("x", 1<<20)
		e.oversize("u", `{"l":[1],"n":1,"p":"xx","r":{"k":"xx"},"t":"`+long+`"}`)
		_, err := e.raw("u").Push(e.ctx, "l", "x")
		e.refused(err, fault.PayloadTooLarge)
		_, err = e.raw("u").Patch(e.ctx, map[string]any{"more": true})
		e.refused(err, fault.PayloadTooLarge)
		_, err = e.raw("u").Inc(e.ctx, "n", 1)
		e.refused(err, fault.PayloadTooLarge)
		s, err := e.raw("u").DeleteRecord(e.ctx, "r", "k")
		e.ok(err)
		e.like(s, `{"l":[1],"n":1,"p":"xx","r":{},"t":"`+long+`"}`, 1, true)
		s, err = e.raw("u").Patch(e.ctx, map[string]any{"p": nil})
		e.ok(err)
		e.like(s, `{"l":[1],"n":1,"r":{},"t":"`+long+`"}`, 2, true)
		s, err = e.raw("u").Patch(e.ctx, map[string]any{"t": nil})
		e.ok(err)
		e.like(s, `{"l":[1],"n":1,"r":{}}`, 3, true)
	}, someStores(t, shared)...)
}

// TestFloorsAreOfAWorkspaceAndAKind verifies that scopes that are gone raise the versions of
// new ones of the same kind in the same workspace, and of no others.
func TestFloorsAreOfAWorkspaceAndAKind(t *testing.T) {
	each(t, func(e *env) {
		const n = 100 // more than there are locks of files
		inc := func(ctx context.Context, kind string, i int) int64 {
			e.Helper()
			s, err := at[json.RawMessage](e, kind, fmt.Sprint("u", i)).Inc(ctx, "n", 1)
			e.ok(err)
			return s.Version
		}
		for i := range n {
			inc(e.ctx, "thing", i)
		}
		for i := range n {
			gone, err := e.raw(fmt.Sprint("u", i)).Delete(e.ctx)
			e.ok(err)
			e.equal("gone at", gone.Version, 1)
		}
		if e.hf != nil { // a tombstone keeps the versions for a day
			e.pass(25 * time.Hour)
			e.sweep()
			e.equal("tombstones", e.count("scope"), 0)
		}
		elsewhere := freshWorkspace()
		for i := range n {
			e.equal("in another workspace", inc(elsewhere, "thing", i), 0)
			e.equal("of another kind", inc(e.ctx, "other", i), 0)
			e.equal("made anew", inc(e.ctx, "thing", i), 2)
		}
	})
}

// wallet has a field that is written by a method of its pointer.
type wallet struct {
	Sum big.Int `json:"sum"`
}

// TestAFieldThatIsWrittenByItsPointer verifies that a function that changes such a field has
// changed something, and that it is stored as it is written.
func TestAFieldThatIsWrittenByItsPointer(t *testing.T) {
	each(t, func(e *env) {
		e.has("u", `{"sum":123456789012345678901234567890,"other":1}`)
		s := change(e, "u", func(w *wallet) { w.Sum.Add(&w.Sum, big.NewInt(1)) })
		e.equal("changed", s.Changed, true)
		e.equal("sum", s.State.Sum.String(), "123456789012345678901234567891")
		e.is("u", `{"sum":123456789012345678901234567891,"other":1}`, 1)
		s = change(e, "u", func(*wallet) {})
		e.equal("changed", s.Changed, false)
		change(e, "new", func(w *wallet) { w.Sum.SetInt64(5) })
		e.is("new", `{"sum":5}`, 0)
	})
}
