package chaos

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// process is a server or a worker, which is started again after a kill.
type process struct {
	name  string
	begin func(p *process) (*exec.Cmd, error)

	under  atomic.Bool // set while the process has a fault
	cmd    *exec.Cmd
	starts int
}

// start starts the process.
func (p *process) start() error {
	p.starts++
	cmd, err := p.begin(p)
	p.cmd = cmd
	return err
}

// kill kills the process and waits until it has exited.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// rig has the servers behind their proxies, the workers, and the simulated world.
type rig struct {
	t           *testing.T
	dir, db     string
	binary      string
	key         string // API key of an admin
	urls        []string
	proxies     []*proxy
	servers     []*process
	workers     []*process
	world       *world
	worldServer *httptest.Server
	log         *os.File
	janitor     string   // interval of the janitor
	flags       []string // further flags of the servers
}

// commandName is the name under which this program is the holdfast command, so that no test needs to link it.
const commandName = "holdfast"

// command returns the path of the holdfast command.
func command(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), commandName)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds the holdfast command, for a test that measures it or needs another one.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), commandName)
	args := append([]string{"build", "-o", path}, flags...)
	if out, err := exec.Command("go", append(args, "github.com/holdfast-go/holdfast/cmd/holdfast")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func newRig(t *testing.T, binary, db string, servers int, janitor string, flags ...string) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), binary: binary, db: db, world: newWorld(), janitor: janitor, flags: flags}
	var err error
	if db == "" {
		r.db = "sqlite:" + filepath.Join(r.dir, "chaos.db")
	}
	if r.log, err = os.Create(filepath.Join(r.dir, "log")); err != nil {
		t.Fatal(err)
	}
	r.worldServer = httptest.NewServer(r.world)
	t.Cleanup(r.close)
	r.key = r.holdfast("keys", "create", "--role", "admin", "--requester", "*")
	for i := range servers {
		p := newProxy(t)
		r.proxies, r.urls = append(r.proxies, p), append(r.urls, p.url)
		r.servers = append(r.servers, &process{name: fmt.Sprint("server-", i), begin: func(*process) (*exec.Cmd, error) { return r.serve(p) }})
		if err := r.servers[i].start(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// startWorkers starts workers with the API key of a worker, each with the next of the programs.
func (r *rig) startWorkers(n int, key string, programs ...string) {
	r.t.Helper()
	for i := range n {
		spec := workerSpec{program: programs[i%len(programs)], Name: fmt.Sprint("worker-", i), World: r.worldServer.URL, Servers: r.urls, Key: key, Ledger: filepath.Join(r.dir, fmt.Sprint("ledger-", i))}
		p := &process{name: spec.Name, begin: func(p *process) (*exec.Cmd, error) {
			spec.Start = fmt.Sprintf("%s/%d", p.name, p.starts)
			return r.work(spec)
		}}
		if r.workers = append(r.workers, p); p.start() != nil {
			r.t.Fatal("cannot start a worker")
		}
	}
}

// holdfast runs a holdfast command on the database and returns its output.
func (r *rig) holdfast(args ...string) string {
	r.t.Helper()
	cmd := exec.Command(r.binary, append(args, "--db", r.db)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		r.t.Errorf("holdfast %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String())
}

// serve starts a server and returns when it is ready.
func (r *rig) serve(p *proxy) (*exec.Cmd, error) {
	args := []string{"serve", "--db", r.db, "--listen", "127.0.0.1:0", "--janitor-every", r.janitor, "--log-level", "warn", "--artifacts", "none"}
	cmd := exec.Command(r.binary, append(args, r.flags...)...)
	cmd.Stderr = r.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, at, ok := strings.Cut(lines.Text(), "url=http://"); ok {
			p.SetServer(strings.TrimSpace(at))
			return cmd, nil
		}
	}
	_ = cmd.Wait() // the log has the reason
	return cmd, fmt.Errorf("the server did not start: %s", cmd.ProcessState)
}

// specVar is the environment variable that makes this program a worker.
const specVar = "HOLDFAST_CHAOS_WORKER"

func (r *rig) worker(spec workerSpec) (*exec.Cmd, error) {
	text, err := json.Marshal(spec)
	cmd := exec.Command(cmp.Or(spec.program, os.Args[0]))
	cmd.Env = append(os.Environ(), specVar+"="+string(text))
	cmd.Stderr = r.log
	return cmd, err
}

// work starts a worker.
func (r *rig) work(spec workerSpec) (*exec.Cmd, error) {
	cmd, err := r.worker(spec)
	if err != nil {
		return nil, err
	}
	return cmd, cmd.Start()
}

// workUntil starts a worker and returns when it has printed a line.
func (r *rig) workUntil(spec workerSpec, line string) (*exec.Cmd, error) {
	cmd, err := r.worker(spec)
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == line {
			return cmd, nil
		}
	}
	return cmd, fmt.Errorf("the worker exited: %w", cmd.Wait())
}

// close kills all processes.
func (r *rig) close() {
	for _, p := range append(r.servers, r.workers...) {
		if p.cmd != nil && p.cmd.ProcessState == nil {
			p.kill()
		}
	}
	r.worldServer.Close()
	if r.t.Failed() {
		if text, err := os.ReadFile(r.log.Name()); err == nil {
			r.t.Logf("log of the servers:\n%s", text[max(0, len(text)-4000):])
		}
	}
	_ = r.log.Close()
}

// restart restarts all processes and waits until the workers have read their ledgers.
func (r *rig) restart(ctx context.Context) error {
	for _, p := range append(r.servers, r.workers...) {
		p.kill()
		if err := p.start(); err != nil {
			return err
		}
	}
	for _, p := range r.workers {
		for !r.world.hasRecovered(fmt.Sprintf("%s/%d", p.name, p.starts)) {
			if !pause(ctx, 50*time.Millisecond) {
				return fmt.Errorf("%s has not read its ledger: %w", p.name, ctx.Err())
			}
		}
	}
	return nil
}
