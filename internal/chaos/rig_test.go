package chaos

import (
	"bufio"
	"bytes"
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

// process is a server or a worker, which is begun again after it was killed.
type process struct {
	name  string
	begin func(p *process) (*exec.Cmd, error)

	under  atomic.Bool // a fault: one at a time
	cmd    *exec.Cmd
	starts int
}

// start begins the process.
func (p *process) start() error {
	p.starts++
	cmd, err := p.begin(p)
	p.cmd = cmd
	return err
}

// kill ends the process at once, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // how it ended is known
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// rig is everything that runs: servers behind their proxies, workers, and the world.
type rig struct {
	t       *testing.T
	dir, db string
	binary  string
	key     string // an admin's
	urls    []string
	proxies []*proxy
	servers []*process
	workers []*process
	world   *world
	site    *httptest.Server
	log     *os.File
	janitor string // how often it comes round
}

// build makes the command.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/holdfast-go/holdfast/cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func newRig(t *testing.T, binary, db string, servers int, janitor string) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), binary: binary, db: db, world: newWorld(), janitor: janitor}
	var err error
	if db == "" {
		r.db = "sqlite:" + filepath.Join(r.dir, "chaos.db")
	}
	if r.log, err = os.Create(filepath.Join(r.dir, "log")); err != nil {
		t.Fatal(err)
	}
	r.site = httptest.NewServer(r.world)
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

// hire begins workers, with a key that workers have.
func (r *rig) hire(n int, key string) {
	r.t.Helper()
	for i := range n {
		spec := workerSpec{Name: fmt.Sprint("worker-", i), World: r.site.URL, Servers: r.urls, Key: key, Ledger: filepath.Join(r.dir, fmt.Sprint("ledger-", i))}
		p := &process{name: spec.Name, begin: func(p *process) (*exec.Cmd, error) {
			spec.Start = fmt.Sprintf("%s/%d", p.name, p.starts)
			return r.work(spec)
		}}
		if r.workers = append(r.workers, p); p.start() != nil {
			r.t.Fatal("a worker did not begin")
		}
	}
}

// holdfast runs the command to its end, on the database.
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

// serve begins a server, and returns when it is ready.
func (r *rig) serve(p *proxy) (*exec.Cmd, error) {
	cmd := exec.Command(r.binary, "serve", "--db", r.db, "--listen", "127.0.0.1:0", "--janitor-every", r.janitor, "--log-level", "warn", "--artifacts", "none")
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
	_ = cmd.Wait() // it has ended, and said why in the log
	return cmd, fmt.Errorf("the server did not begin: %s", cmd.ProcessState)
}

// specVar makes this program a worker.
const specVar = "HOLDFAST_CHAOS_WORKER"

func (r *rig) worker(spec workerSpec) (*exec.Cmd, error) {
	text, err := json.Marshal(spec)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), specVar+"="+string(text))
	cmd.Stderr = r.log
	return cmd, err
}

// work begins a worker.
func (r *rig) work(spec workerSpec) (*exec.Cmd, error) {
	cmd, err := r.worker(spec)
	if err != nil {
		return nil, err
	}
	return cmd, cmd.Start()
}

// tells begins a worker, and returns when it has said a line.
func (r *rig) tells(spec workerSpec, line string) (*exec.Cmd, error) {
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
	return cmd, fmt.Errorf("the worker ended: %w", cmd.Wait())
}

// close ends everything.
func (r *rig) close() {
	for _, p := range append(r.servers, r.workers...) {
		if p.cmd != nil && p.cmd.ProcessState == nil {
			p.kill()
		}
	}
	r.site.Close()
	if r.t.Failed() {
		if text, err := os.ReadFile(r.log.Name()); err == nil {
			r.t.Logf("the log of the servers:\n%s", text[max(0, len(text)-4000):])
		}
	}
	_ = r.log.Close()
}

// restart begins everything anew, and waits until the workers have read their ledgers.
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
