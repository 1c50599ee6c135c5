package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/docstest"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// restored is a test of a backup that is taken under load, and restored while the old servers and their workers run.
type restored struct {
	t   *testing.T
	rig *rig
	old []*client.Client // of the old servers, by their proxies

	name  string // of the database
	dir   string // where the commands run
	block int    // the first block of commands in docs/backup.md for the kind of the database
	env   []string

	over     atomic.Bool  // the backup is in the place of the database
	written  atomic.Int64 // writes of old servers that were accepted before
	accepted atomic.Int64 // and after it
	refused  atomic.Int64
}

// TestARestoredBackup verifies that, after a backup was restored as docs/backup.md describes it, not one write of the old servers or
// of holders from before is accepted, that readers with old cursors are told, and that the work of the backup is done.
func TestARestoredBackup(t *testing.T) {
	testlevel.Long(t)
	binary := command(t)
	eachDatabase(t, func(t *testing.T, db string) {
		if db == "" {
			data := filepath.Join(t.TempDir(), "data")
			if err := os.Mkdir(data, 0o700); err != nil {
				t.Fatal(err)
			}
			db = "sqlite:" + filepath.Join(data, "chaos.db")
		}
		x := &restored{t: t, rig: newRig(t, binary, db, 3, "500ms")}
		x.run(t.Context())
	})
}

func (x *restored) must(_ any, err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *restored) run(ctx context.Context) {
	t, r := x.t, x.rig
	x.setUp()
	for _, url := range r.urls {
		c, err := client.New(url, client.Options{APIKey: r.key, MaxAttempts: 1})
		x.must(c, err)
		x.old = append(x.old, c)
	}
	admin := x.old[0]
	x.must(admin.PutHandler(ctx, "Step", wire.PutHandler{Kind: "worker", Safety: "idempotent"}))
	x.must(admin.PutHandler(ctx, "Slow", wire.PutHandler{Kind: "worker", Safety: "idempotent"}))
	x.must(admin.PutDefinition(ctx, json.RawMessage(twoSteps)))
	x.must(admin.PutDefinition(ctx, json.RawMessage(`{"name":"slow","version":"1","steps":[{"name":"a","type":"task","handler":"Slow"},{"name":"b","type":"task","handler":"Slow"}]}`)))
	x.must(admin.PutScope(ctx, "session", "s", json.RawMessage(`{"n":0}`)))

	working, stop := context.WithCancel(ctx)
	defer stop()
	var load sync.WaitGroup
	for i := range x.old {
		load.Go(func() { x.write(working, i) })
		load.Go(func() { x.workOn(working, i) })
	}
	for i := range 6 {
		key := fmt.Sprint("held-", i)
		x.must(admin.StartRun(ctx, wire.StartRun{DefinitionID: "slow@1", Input: json.RawMessage(`{}`), IdempotencyKey: &key}))
	}
	before := claim(ctx, t, x.old[1], "before", 3) // the backup has these leases

	x.wait(200)
	x.commands(x.block)
	after := claim(ctx, t, x.old[2], "after", 3) // it has these tasks, but not the leases
	x.complete(ctx, x.old[0], after[:2])
	next := claim(ctx, t, x.old[0], "after", 2) // it does not even have these tasks, which will be created again
	x.wait(200)
	lost := x.readers(ctx)
	expected := x.change(ctx, admin)

	x.commands(x.block + 1)
	x.over.Store(true)
	refused := x.refused.Load()
	testkit.Eventually(t, "the old servers refuse writes", func() bool { return x.refused.Load() >= refused+50 })
	stop()
	load.Wait()
	if n := x.accepted.Load(); n > 0 {
		t.Errorf("%d writes of old servers were accepted after the restore", n)
	}
	x.ended()

	var urls []string
	for range 2 {
		p := newProxy(t)
		urls = append(urls, p.url)
		s := &process{name: "new", begin: func(*process) (*exec.Cmd, error) { return r.serve(p) }}
		if r.servers = append(r.servers, s); s.start() != nil {
			t.Fatal("cannot start a server")
		}
	}
	now, err := client.New(urls[0], client.Options{APIKey: r.key})
	x.must(now, err)
	again := claim(ctx, t, now, "new", 3) // under the first lease of the tasks, as those of the old servers after the backup
	x.complete(ctx, now, again[:2])
	again = append(again[2:], claim(ctx, t, now, "new", 2)...)
	for _, h := range slices.Concat(before, after, next) {
		if _, err := now.CompleteTask(ctx, h.ID, wire.CompleteTask{Epoch: h.Epoch}); fault.CodeOf(err) != fault.LeaseLost {
			t.Errorf("a worker from before completes task %s at epoch %d: %v, want %s", h.ID, h.Epoch, err, fault.LeaseLost)
		}
	}
	x.complete(ctx, now, again)
	if _, err := now.PutScope(ctx, "session", "s", json.RawMessage(`{"n":-1}`), client.ExpectVersion(expected)); fault.CodeOf(err) != fault.PreconditionFailed {
		t.Errorf("a change that expects version %d of a scope: %v, want %s", expected, err, fault.PreconditionFailed)
	}
	x.told(ctx, now, lost)
	x.drain(ctx, now)
	r.holdfast("check")
}

// write writes by an old server, and counts the answers.
func (x *restored) write(ctx context.Context, i int) {
	for n := 0; ctx.Err() == nil; n++ {
		over, name := x.over.Load(), fmt.Sprintf("%d-%d", i, n)
		var err error
		one, cancel := context.WithTimeout(ctx, attempt)
		switch n % 4 {
		case 0:
			_, err = x.old[i].AppendEvents(one, "orders-"+name, wire.Append{Events: []wire.NewEvent{{Name: "placed"}}})
		case 1:
			_, err = x.old[i].StartRun(one, wire.StartRun{DefinitionID: "two@1", Input: json.RawMessage(`{}`), IdempotencyKey: &name})
		case 2:
			_, err = x.old[i].PutScope(one, "session", name, json.RawMessage(`{}`))
		case 3:
			_, err = x.old[i].PutWallet(one, name, wire.PutWallet{})
		}
		cancel()
		x.count(over, err)
	}
}

// workOn completes tasks by an old server.
func (x *restored) workOn(ctx context.Context, i int) {
	wait := wire.Millis(200)
	for ctx.Err() == nil {
		over := x.over.Load()
		one, cancel := context.WithTimeout(ctx, attempt)
		got, err := x.old[i].ClaimTasks(one, wire.ClaimTasks{Worker: fmt.Sprint("w", i), Handlers: []string{"Step"}, Limit: 10, WaitMs: &wait, LeaseMs: wire.Ms(2 * time.Second)})
		if x.count(over, err); err == nil && over && len(got.Tasks) == 0 {
			x.t.Error("an old server handed out tasks after the restore")
		}
		for _, task := range got.Tasks {
			over = x.over.Load()
			_, err := x.old[i].CompleteTask(one, task.ID, wire.CompleteTask{Epoch: task.Epoch})
			x.count(over, err)
		}
		cancel()
	}
}

// count counts the answer to a request, which was sent after the restore if over is true.
func (x *restored) count(over bool, err error) {
	switch {
	case err == nil && over:
		x.accepted.Add(1)
	case err == nil:
		x.written.Add(1)
	case over:
		x.refused.Add(1)
	}
}

// wait waits until the old servers have accepted a number of further writes.
func (x *restored) wait(n int64) {
	enough := x.written.Load() + n
	testkit.Eventually(x.t, "the load goes on", func() bool { return x.written.Load() >= enough })
}

// claim claims tasks that are never completed by the server that handed them out.
func claim(ctx context.Context, t *testing.T, c *client.Client, worker string, n int) (all []wire.Task) {
	t.Helper()
	wait := wire.Millis(5000)
	testkit.Eventually(t, "the tasks are claimed", func() bool {
		got, err := c.ClaimTasks(ctx, wire.ClaimTasks{Worker: worker, Handlers: []string{"Slow"}, Limit: n - len(all), WaitMs: &wait, LeaseMs: wire.Ms(10 * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got.Tasks...)
		return len(all) == n
	})
	return all
}

func (x *restored) complete(ctx context.Context, c *client.Client, tasks []wire.Task) {
	x.t.Helper()
	for _, task := range tasks {
		x.must(c.CompleteTask(ctx, task.ID, wire.CompleteTask{Epoch: task.Epoch}))
	}
}

// readers returns the cursors of readers that have read events which the backup does not have: of pages, and of the feed.
func (x *restored) readers(ctx context.Context) (lost [2]string) {
	x.must(x.old[0].AppendEvents(ctx, "orders-lost", wire.Append{Events: []wire.NewEvent{{Name: "lost"}}}))
	testkit.Eventually(x.t, "the lost event is read", func() bool {
		for e, err := range x.old[0].ReadFeed(ctx, "") {
			if err != nil {
				return false
			}
			if e.Stream == "orders-lost" {
				lost[1] = *e.Position
			}
		}
		return lost[1] != ""
	})
	page, err := x.old[0].ListRunsPage(ctx, client.RunFilter{}, client.Page{Limit: 1})
	x.must(page, err)
	lost[0] = *page.Next
	return lost
}

// change changes a scope after the backup, and returns its version.
func (x *restored) change(ctx context.Context, c *client.Client) int64 {
	for n := range 4 {
		x.must(c.PutScope(ctx, "session", "s", json.RawMessage(fmt.Sprintf(`{"n":%d}`, n+1))))
	}
	s, err := c.GetScope(ctx, "session", "s")
	x.must(s, err)
	return s.Version
}

// told verifies that readers with cursors from before are refused, and where they can continue.
func (x *restored) told(ctx context.Context, c *client.Client, lost [2]string) {
	if _, err := c.ListRunsPage(ctx, client.RunFilter{}, client.Page{Cursor: lost[0]}); fault.CodeOf(err) != fault.CursorExpired {
		x.t.Errorf("a page with a cursor from before: %v, want %s", err, fault.CursorExpired)
	}
	if _, err := c.ReadFeedPage(ctx, client.Page{Cursor: lost[1]}); fault.CodeOf(err) != fault.CursorExpired {
		x.t.Errorf("a page of the feed after a lost event: %v, want %s", err, fault.CursorExpired)
	}
	for _, err := range c.FollowFeed(ctx, lost[1]) {
		if fault.CodeOf(err) != fault.CursorExpired {
			x.t.Errorf("the feed after a lost event: %v, want %s", err, fault.CursorExpired)
		}
		break
	}
}

// drain completes the work of the backup with new workers.
func (x *restored) drain(ctx context.Context, c *client.Client) {
	completed := map[string]int{}
	wait := wire.Millis(1000)
	testkit.Eventually(x.t, "the work of the backup is done", func() bool {
		got, err := c.ClaimTasks(ctx, wire.ClaimTasks{Worker: "new", Handlers: []string{"Step", "Slow"}, Limit: 50, WaitMs: &wait, LeaseMs: wire.Ms(10 * time.Second)})
		x.must(got, err)
		for _, task := range got.Tasks {
			_, err := c.CompleteTask(ctx, task.ID, wire.CompleteTask{Epoch: task.Epoch})
			x.must(nil, err)
			completed[task.ID[:strings.IndexByte(task.ID, '.')]]++
		}
		open := 0
		for run, err := range c.ListRuns(ctx, client.RunFilter{}) {
			x.must(run, err)
			if run.FinishedAt == nil {
				open++
			}
		}
		return open == 0
	})
	for id, n := range completed {
		if n > 1 {
			x.t.Errorf("task %s was completed %d times", id, n)
		}
	}
}

// ended verifies that the old servers have stopped by themselves, and say why.
func (x *restored) ended() {
	for _, s := range x.rig.servers {
		if err := s.cmd.Wait(); err == nil {
			x.t.Errorf("%s has stopped without an error", s.name)
		}
	}
	log, err := os.ReadFile(x.rig.log.Name())
	x.must(nil, err)
	if n := bytes.Count(log, []byte(fault.DatabaseRestored)); n < len(x.rig.servers) {
		x.t.Errorf("the log of the servers mentions %s %d times, want %d", fault.DatabaseRestored, n, len(x.rig.servers))
	}
}

// commands runs the nth block of commands in docs/backup.md that this test runs, for the database of the test.
func (x *restored) commands(n int) {
	x.t.Helper()
	page, err := docstest.Read(os.DirFS("../.."), "docs/backup.md")
	x.must(page, err)
	var blocks []string
	for _, b := range page.Blocks {
		if b.Comments["run by"] == "TestARestoredBackup" {
			blocks = append(blocks, b.Text)
		}
	}
	c := exec.Command("sh", "-euc", strings.ReplaceAll(blocks[n], "shop", x.name))
	c.Dir, c.Env = x.dir, append(os.Environ(), x.env...)
	if out, err := c.CombinedOutput(); err != nil {
		x.t.Fatalf("%s: %v: %s", blocks[n], err, out)
	}
}

// setUp sets the name of the database, and the variables for commands.
func (x *restored) setUp() {
	x.dir = x.rig.dir
	x.env = []string{"PATH=" + filepath.Dir(x.rig.binary) + ":" + os.Getenv("PATH")}
	if path, ok := strings.CutPrefix(x.rig.db, "sqlite:"); ok {
		x.name, x.block, x.dir = strings.TrimSuffix(filepath.Base(path), ".db"), 2, filepath.Dir(filepath.Dir(path))
		_, err := pgtest.Command(x.t.Context(), "sqlite3", "sqlite3")
		x.must(nil, err)
		return
	}
	config, err := pgx.ParseConfig(x.rig.db)
	x.must(config, err)
	dump, err := pgtest.Program(x.t.Context(), "pg_dump")
	x.must(dump, err)
	x.name = config.Database
	x.env[0] = "PATH=" + filepath.Dir(dump) + ":" + strings.TrimPrefix(x.env[0], "PATH=")
	x.env = append(x.env, "PGHOST="+config.Host, fmt.Sprint("PGPORT=", config.Port), "PGUSER="+config.User, "PGPASSWORD="+config.Password)
	x.t.Cleanup(func() {
		for _, name := range []string{x.name + "_lost", x.name + "_new"} {
			x.must(nil, pgtest.Exec(context.Background(), x.rig.db, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"))
		}
	})
}
