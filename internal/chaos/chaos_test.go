// Package chaos has an outside program judge the server: it knows the public API alone
// (packages client and wire), has its own ledger of what it was told, and compares that
// with what the API says in the end.
//
//	make chaos          # 5,000 operations on PostgreSQL, and on SQLite
//	make chaos SEED=7
//
// Servers and workers are processes. They are killed, and stopped for longer than a lease,
// and answers are lost on the way, on a schedule that follows the seed. Workers act on a
// pretended outside world, which counts what was really done.
package chaos

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// operations is how many are asked for.
var operations = flag.Int("operations", testlevel.Pick(0, 200, 5000), "how many operations the outside program asks for")

func TestMain(m *testing.M) {
	if text := os.Getenv(specVar); text != "" {
		var spec workerSpec
		err := json.Unmarshal([]byte(text), &spec)
		switch {
		case err != nil:
		case spec.Quick:
			err = workQuickly(context.Background(), spec)
		default:
			err = work(context.Background(), spec)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// Verifies that nothing acknowledged is lost, and nothing happens twice unreported, while
// servers and workers are killed and stopped and answers are lost: on PostgreSQL with three
// servers, on SQLite with one.
func TestChaos(t *testing.T) {
	testlevel.Long(t)
	binary := build(t)
	eachDatabase(t, func(t *testing.T, db string) {
		servers := 3
		if db == "" {
			servers = 1
		}
		chaos(t, binary, db, servers)
	})
}

// eachDatabase runs a test on an empty database of either kind; "" is SQLite, in a file of the rig's own.
func eachDatabase(t *testing.T, f func(t *testing.T, db string)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Attr(testlevel.DatabaseAttr, "postgres")
		db, drop, err := pgtest.Database(t.Context(), pgtest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(drop)
		f(t, db)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Attr(testlevel.DatabaseAttr, "sqlite")
		f(t, "")
	})
}

// chaos runs the whole on a database ("" is SQLite), and judges it.
func chaos(t *testing.T, binary, db string, servers int) {
	r := newRig(t, binary, db, servers, "500ms")
	begun := time.Now()
	l := r.declare()
	r.hire(4, r.workerKey())
	working, stop := context.WithCancel(t.Context())
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { l.approve(working) })
	beside.Go(func() { l.person(working, r.world) })

	failing, enough := context.WithCancel(t.Context())
	var faults map[string]int
	var schedule sync.WaitGroup
	schedule.Go(func() { faults = r.faults(failing, testlevel.Seed()) })
	l.run(t.Context(), testlevel.Seed(), int64(*operations))
	asked := time.Since(begun)
	enough()
	schedule.Wait()

	bounded, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	left := l.settle(bounded, r.world)
	if err := r.restart(bounded); err != nil { // who was killed in the middle says now what it did
		t.Error(err)
	}
	left = append(left, l.settle(bounded, r.world)...)
	stop()
	beside.Wait()
	for _, x := range left {
		l.rows[x.capability].stuck++
		t.Errorf("stuck: %s: %s", x.capability, x.what)
	}
	if err := (&judge{l, r.world}).all(t.Context()); err != nil {
		t.Error(err)
	}
	checked := r.holdfast("check")
	for _, what := range l.defects {
		t.Error(what)
	}
	t.Logf("%s, %d servers, %d workers, seed %d: operations %s, all %s\nfaults: %v; calls of the outside world that its keys made harmless: %d\n%s\nholdfast check: %s\nagain: make chaos SEED=%d",
		strings.SplitN(r.db, ":", 2)[0], servers, len(r.workers), testlevel.Seed(), asked.Round(time.Second), time.Since(begun).Round(time.Second),
		faults, r.world.repeated, l.table(), checked, testlevel.Seed())
}
