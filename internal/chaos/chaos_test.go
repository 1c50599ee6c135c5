// Package chaos tests the server from outside, under faults. The test program uses only the
// public API (packages client and wire), records the results of its requests, and compares them
// with the final state that the API returns.
//
//	make chaos          # 5,000 operations on PostgreSQL, and on SQLite
//	make chaos SEED=7
//
// Servers and workers are processes. On a schedule derived from the seed, they are killed or
// stopped for longer than a lease, and responses are lost. Workers call a simulated external
// service, which counts the effects that happened.
package chaos

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/browser"
	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// operations is the number of operations to submit.
var operations = flag.Int("operations", testlevel.Pick(0, 100, 5000), "number of operations to submit")

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == commandName {
		os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	}
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
	os.Exit(browser.Main(m).Run())
}

// TestChaos verifies that no acknowledged operation is lost, and that no effect happens twice
// without a report, while servers and workers are killed and stopped and responses are lost: on
// PostgreSQL with three servers, on SQLite with one.
func TestChaos(t *testing.T) {
	testlevel.Long(t)
	binary := command(t)
	eachDatabase(t, func(t *testing.T, db string) {
		servers := 3
		if db == "" {
			servers = 1
		}
		chaos(t, binary, db, servers)
	})
}

// eachDatabase runs a test on an empty database of each kind or, at level test, of one kind. "" means SQLite, in a file
// of the rig.
func eachDatabase(t *testing.T, f func(t *testing.T, db string)) {
	t.Helper()
	names := []string{"postgres", "sqlite"}
	if testlevel.Current() == testlevel.Test {
		names = testlevel.OneDatabase(t)
	}
	onDatabases(t, names, f)
}

func onDatabases(t *testing.T, names []string, f func(t *testing.T, db string)) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Attr(testlevel.DatabaseAttr, name)
			if name == "sqlite" {
				f(t, "")
				return
			}
			db, drop, err := pgtest.Database(t.Context(), pgtest.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(drop)
			f(t, db)
		})
	}
}

// chaos runs the test on a database ("" means SQLite) and verifies the result.
func chaos(t *testing.T, binary, db string, servers int) {
	r := newRig(t, binary, db, servers, "500ms")
	begun := time.Now()
	l := r.declare()
	r.startWorkers(4, r.workerKey(), os.Args[0])
	leave := l.attend(t.Context(), r.world)
	defer leave()

	failing, enough := context.WithCancel(t.Context())
	var faults map[string]int
	var schedule sync.WaitGroup
	schedule.Go(func() { faults = r.faults(failing, testlevel.Seed()) })
	l.run(t.Context(), testlevel.Seed(), func() bool { return l.submitted.Load() >= int64(*operations) })
	submitted := time.Since(begun)
	enough()
	schedule.Wait()

	checked := r.conclude(l, leave)
	t.Logf("%s, %d servers, %d workers, seed %d: operations %s, all %s\nfaults: %v; repeated external calls that were absorbed by their keys: %d\n%s\nholdfast check: %s\nagain: make chaos SEED=%d",
		strings.SplitN(r.db, ":", 2)[0], servers, len(r.workers), testlevel.Seed(), submitted.Round(time.Second), time.Since(begun).Round(time.Second),
		faults, r.world.repeated, l.table(), checked, testlevel.Seed())
}

// conclude waits until all work is done, then ends what attends to the load, and compares the outcomes of the operations with the
// final state. It returns the output of "holdfast check".
func (r *rig) conclude(l *load, leave func()) string {
	r.t.Helper()
	bounded, cancel := context.WithTimeout(r.t.Context(), 5*time.Minute)
	defer cancel()
	left := l.settle(bounded, r.world)
	if err := r.restart(bounded); err != nil { // restarted workers report the calls that they made before a kill
		r.t.Error(err)
	}
	left = append(left, l.settle(bounded, r.world)...)
	leave()
	for _, x := range left {
		l.rows[x.capability].stuck++
		r.t.Errorf("stuck: %s: %s", x.capability, x.what)
	}
	if err := (&judge{l, r.world}).all(r.t.Context()); err != nil {
		r.t.Error(err)
	}
	checked := r.holdfast("check")
	for _, what := range l.defects {
		r.t.Error(what)
	}
	return checked
}
