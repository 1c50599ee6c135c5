package chaos

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// upgrade is an upgrade of two servers, while clients and workers use them.
type upgrade struct {
	t    *testing.T
	rig  *rig
	load *load
}

// pace is the pause of each client between operations, so that a step of the upgrade is not followed by thousands.
const pace = 300 * time.Millisecond

// TestUpgrade verifies that servers are upgraded as docs/upgrading.md describes it, and that no acknowledged operation is lost or
// applied twice: from a release whose servers must be stopped first, and from the last release server by server and back, while
// servers and workers of both versions are killed. A program that the new schema excludes is refused, and the commands of each version
// work on the servers of the other.
func TestUpgrade(t *testing.T) {
	testlevel.Long(t)
	stopped, old, now := programs(t)
	eachDatabase(t, func(t *testing.T, db string) {
		x := &upgrade{t: t, rig: newRig(t, stopped.server, db, 2, "500ms")}
		x.run(stopped, old, now)
	})
}

func (x *upgrade) run(stopped, old, now *program) {
	r := x.rig
	x.load = r.declare()
	r.startWorkers(4, r.workerKey(), old.worker, now.worker)
	ctx, cancel := context.WithCancel(x.t.Context())
	leave := x.load.attend(ctx, r.world)
	var load sync.WaitGroup
	var enough atomic.Bool
	load.Go(func() { x.load.run(ctx, testlevel.Seed(), func() bool { return enough.Load() || !pause(ctx, pace) }) })
	defer load.Wait()
	defer leave()
	defer cancel()

	x.proceed("on " + stopped.name)
	for i := range r.servers {
		x.stop(i)
	}
	for i := range r.servers {
		x.start(i, old)
	}
	x.proceed("on " + old.name)

	r.binary = now.server
	r.holdfast("migrate")
	x.refuses(stopped)
	x.proceed("on a migrated database")

	x.stop(1)
	x.start(1, now)
	x.commands(old, r.urls[1])
	x.commands(now, r.urls[0])
	for _, p := range r.proxies { // half of the retries go to the other version
		p.answers.Store(20)
	}
	x.proceed("on both versions")
	for i, p := range []*program{old, now} {
		r.servers[i].kill()
		r.workers[i].kill()
		x.proceed("on one server")
		x.start(i, p)
		x.must(r.workers[i].start())
	}
	x.proceed("after the kills")

	for i, p := range []*program{now, old, now} { // forward, back, and forward
		i = min(i, 1)
		x.stop(i)
		x.start(i, p)
		x.proceed("after a restart")
	}
	for _, w := range r.workers {
		testkit.Eventually(x.t, w.name+" has made calls", func() bool { return r.world.calledBy(w.name) })
	}
	enough.Store(true)
	load.Wait()
	checked := r.conclude(x.load, leave)
	x.t.Logf("%s, then %s, then this build\n%s\nholdfast check: %s", stopped.name, old.name, x.load.table(), checked)
}

func (x *upgrade) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// stop stops a server, which ends its requests first.
func (x *upgrade) stop(i int) {
	x.t.Helper()
	x.rig.servers[i].signal(syscall.SIGTERM)
	x.must(x.rig.servers[i].cmd.Wait())
}

// start starts a server that does not run.
func (x *upgrade) start(i int, p *program) {
	x.t.Helper()
	x.rig.binary = p.server
	x.must(x.rig.servers[i].start())
}

// proceed waits until further operations are acknowledged, and further work is done.
func (x *upgrade) proceed(where string) {
	x.t.Helper()
	acked, delivered := x.load.acknowledged()+40, x.rig.world.effects()+20
	testkit.Eventually(x.t, "the load goes on "+where, func() bool { return x.load.acknowledged() >= acked && x.rig.world.effects() >= delivered })
}

// refuses verifies that a program does not use the migrated database.
func (x *upgrade) refuses(p *program) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute) // a server that is not refused would run
	defer cancel()
	for _, command := range []string{"serve --listen 127.0.0.1:0", "migrate", "keys create --role admin", "check"} {
		out, err := exec.CommandContext(ctx, p.server, append(strings.Fields(command), "--db", x.rig.db)...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), string(fault.DatabaseTooNew)) {
			x.t.Errorf("%s: holdfast %s: %v, want exit code 1 and %s: %s", p.name, command, err, fault.DatabaseTooNew, out)
		}
	}
}

// commands verifies that the commands of a program work on a server.
func (x *upgrade) commands(p *program, url string) {
	x.t.Helper()
	id := fmt.Sprint("cli-", strings.TrimPrefix(url, "http://127.0.0.1:"))
	for _, c := range []struct{ command, says string }{
		{"streams append " + id + " opened --data {\"by\":\"cli\"}", ""},
		{"streams read " + id + " -o json", "opened"},
		{"entities create ticket --id " + id, id},
		{"fire ticket " + id + " book --as system", "booked"},
		{"entities show ticket " + id + " -o json", "booked"},
		{"scope inc cli " + id + " n", ""},
		{"scope get cli " + id + " -o json", `"n"`},
		{"wallet show w-0 -o json", "w-0"},
		{"runs list", "chase"},
		{"batches list", ""},
		{"operations list", ""},
		{"reactions list", "watch"},
		{"keys list", "worker"},
		{"nodes", ""},
		{"inbox", ""},
	} {
		out, err := exec.Command(p.server, append(strings.Fields(c.command), "--url", url, "--key", x.rig.key)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.says) {
			x.t.Errorf("%s at a server of the other version: holdfast %s: %v, want %q: %s", p.name, c.command, err, c.says, out)
		}
	}
}
