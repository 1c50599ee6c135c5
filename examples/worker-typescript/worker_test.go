// Package worker tests the TypeScript worker with Node and a real server, on both databases.
package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// node returns the path of Node. If Node is missing, it installs the Debian package.
var node = sync.OnceValues(func() (string, error) {
	find := func() (string, error) { return exec.LookPath("node") }
	path, err := find()
	if err == nil {
		return path, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	failed := pgtest.Install(ctx, "nodejs", func() bool { _, err := find(); return err == nil })
	if path, err = find(); err != nil {
		return "", fmt.Errorf("the TypeScript worker needs Node 18 or later: install it (Debian: nodejs): %w", errors.Join(err, failed))
	}
	return path, nil
})

// built compiles the worker to JavaScript, for older versions of Node, and returns the file.
func built(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	r := api.Build(api.BuildOptions{EntryPoints: []string{"worker.ts"}, Outfile: filepath.Join(dir, "worker.mjs"), Bundle: true, Write: true,
		Platform: api.PlatformNode, Format: api.FormatESModule, Target: api.ES2022})
	for _, m := range append(r.Errors, r.Warnings...) {
		t.Errorf("%+v: %s", m.Location, m.Text)
	}
	return filepath.Join(dir, "worker.mjs")
}

// gateway accepts charges, one per key, and mails. If hang is set, the first charge is
// recorded, and its response never comes.
type gateway struct {
	mu      sync.Mutex
	charges map[string]int // cents, by key
	calls   int
	mails   map[string]string
	hang    bool
	hangs   chan struct{}
	mailed  chan struct{}
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.URL.Path == "/mails" {
		g.mails[key] = string(body)
		fmt.Fprint(w, `{}`)
		g.mailed <- struct{}{}
		return
	}
	var in struct{ Cents int }
	_ = json.Unmarshal(body, &in)
	if in.Cents == 666 {
		w.WriteHeader(http.StatusPaymentRequired)
		return
	}
	g.calls++
	g.charges[key] = in.Cents
	if g.hang {
		g.hang = false
		g.mu.Unlock()
		close(g.hangs)
		<-r.Context().Done()
		g.mu.Lock()
		return
	}
	fmt.Fprintf(w, `{"ref":"ref-%d"}`, len(g.charges))
}

// process is a worker process.
type process struct {
	cmd    *exec.Cmd
	lines  chan string
	errors *bytes.Buffer
}

func start(t *testing.T, file, url, gateway, name string) *process {
	t.Helper()
	path, err := node()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(path, file), lines: make(chan string, 10), errors: new(bytes.Buffer)}
	p.cmd.Env = append(os.Environ(), "HOLDFAST_URL="+url, "GATEWAY_URL="+gateway, "WORKER="+name, "LEASE_MS=60000")
	p.cmd.Stderr = p.errors
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	p.expect(t, "ready")
	return p
}

func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case line := <-p.lines:
		if line == want {
			return
		}
		t.Fatalf("the worker printed %q, want %q: %s", line, want, p.errors)
	case <-time.After(time.Minute):
		t.Fatalf("the worker did not print %q", want)
	}
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: timed out", what)
	}
}

// TestTheWorkerInTypeScript verifies that the worker executes fired steps, that a charge in
// flight when a worker is killed is retried with the same key, that a declined card is not
// charged, that events of a reaction are handled, and that SIGTERM stops the worker cleanly.
func TestTheWorkerInTypeScript(t *testing.T) {
	testlevel.OneGoroutine(t)
	file := built(t)
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		api := httpapi.New(httpapi.Options{NoKeys: true})
		if err := api.Register(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(api)
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = e.Run(ctx) })
		t.Cleanup(func() { api.Stop(); srv.Close(); cancel(); running.Wait() })
		g := &gateway{charges: make(map[string]int), mails: make(map[string]string), hang: true, hangs: make(chan struct{}), mailed: make(chan struct{}, 10)}
		far := httptest.NewServer(g)
		t.Cleanup(far.Close)

		c, err := client.New(srv.URL, client.Options{})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(err)
		config, err := os.ReadFile("invoice.json")
		must(err)
		_, err = c.PutHandler(ctx, "Charge", wire.PutHandler{Kind: "worker", Safety: "journaled", OnUnknown: "retry"})
		must(err)
		_, err = c.PutHandler(ctx, "Mail", wire.PutHandler{Kind: "worker", Safety: "idempotent"})
		must(err)
		_, err = c.PutLifecycle(ctx, "invoice", config)
		must(err)
		_, err = c.PutReaction(ctx, "mail", wire.PutReaction{Events: []string{"overdue"}, Handler: "Mail"})
		must(err)
		for id, cents := range map[string]int{"i-1": 1250, "i-2": 666, "i-3": 0} {
			_, err = c.CreateEntity(ctx, "invoice", wire.NewEntity{ID: new(id), Data: fmt.Appendf(nil, `{"cents":%d}`, cents)})
			must(err)
		}

		first := start(t, file, srv.URL, far.URL, "w1")
		var waiting sync.WaitGroup
		var fired wire.Fired
		waiting.Go(func() {
			fired, err = c.FireStep(ctx, "invoice", "i-1", "charge", wire.Fire{Requester: "admin"}, client.Wait(50*time.Second))
		})
		await(t, "a charge", g.hangs)
		must(first.cmd.Process.Signal(syscall.SIGKILL))
		_ = first.cmd.Wait()
		holdfasttest.Advance(t, e, 2*time.Minute)
		holdfasttest.Round(t, e) // runs the janitor now
		second := start(t, file, srv.URL, far.URL, "w2")
		waiting.Wait()
		must(err)
		if fired.Outcome != "success" || fired.Entity.Status != "paid" || string(fired.Output) == "" || !strings.Contains(string(fired.Entity.Data), `ref-1`) {
			t.Errorf("fire returned %+v, %s, %s", fired, fired.Output, fired.Entity.Data)
		}
		g.mu.Lock()
		if len(g.charges) != 1 || g.calls != 2 {
			t.Errorf("got charges %v in %d calls, want 1 in 2", g.charges, g.calls)
		}
		g.mu.Unlock()

		for id, says := range map[string]string{"i-2": "declined", "i-3": "nothing to charge"} {
			_, err = c.FireStep(ctx, "invoice", id, "charge", wire.Fire{Requester: "admin"}, client.Wait(50*time.Second))
			if fault.CodeOf(err) != fault.ActionInvalid || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", id, err)
			}
		}

		_, err = c.AppendEvents(ctx, "invoice-1", wire.Append{Events: []wire.NewEvent{{Name: "overdue", Data: []byte(`{"days":3}`)}, {Name: "overdue"}}})
		must(err)
		await(t, "a mail", g.mailed)
		await(t, "another mail", g.mailed)
		g.mu.Lock()
		if got := g.mails["mail/invoice-1/0/0"]; len(g.mails) != 2 || got != `{"event":"overdue","data":{"days":3}}` {
			t.Errorf("got mails %v", g.mails)
		}
		g.mu.Unlock()

		must(second.cmd.Process.Signal(syscall.SIGTERM))
		second.expect(t, "stopped")
		if err := second.cmd.Wait(); err != nil || second.errors.Len() > 0 {
			t.Errorf("the worker ended with %v: %s", err, second.errors)
		}
	}, stream.Feed(stream.FeedOptions{}))
}
