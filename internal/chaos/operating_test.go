package chaos

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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

// production is the installation of docs/operating.md, with all its hosts on this machine.
type production struct {
	t        *testing.T
	dir      string            // of the nodes, the load balancer and the commands
	path     string            // with the programs that the commands need
	files    map[string]string // of the page
	commands []string          // of the page
	names    []string          // of the page, each followed by what replaces it here
	servers  [2]*dbServer
	nodes    [3]*process
	urls     [3]string // of the nodes
	url      string    // of the load balancer
	key      string
	log      *os.File
	trusted  *tls.Config
}

// dbServer is a host of the database.
type dbServer struct {
	*pgtest.Cluster
	name, dir, data, port, bouncer string
	owner                          *user.User
}

// TestAFailoverLosesNothing verifies that the files and commands of docs/operating.md make three nodes on a primary and its synchronous
// standby, one of them through PgBouncer, behind a load balancer. The primary is killed while clients write: no acknowledged
// write is lost or applied twice, the holder of a lease keeps it, and the nodes write again without a restart. Then the nodes
// are restarted one by one, and no request through the load balancer fails.
func TestAFailoverLosesNothing(t *testing.T) {
	testlevel.Long(t)
	p := &production{t: t, dir: t.TempDir(), files: map[string]string{}}
	p.read()
	p.setUp()
	p.replicate()
	p.serve()
	admin := p.client(p.url, 0)
	held := p.hold(admin)
	w := p.write()
	w.wait("before the failover")

	p.servers[0].crash(t)
	p.run("promote", p.servers[1])
	w.wait("after the failover")
	p.must(admin.CompleteTask(t.Context(), held.ID, wire.CompleteTask{Epoch: held.Epoch}))

	p.ready()
	w.calm.Store(true)
	for _, n := range p.nodes {
		n.signal(syscall.SIGTERM)
		p.must(nil, n.cmd.Wait())
		p.must(nil, n.start())
		p.ready()
	}
	w.wait("after the restarts")
	w.end(p.client(p.urls[0], 1))
	p.run("check", nil)
}

func (p *production) must(_ any, err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// steps are the blocks of commands of the page.
var steps = []string{"roles", "standby", "synchronous", "keys", "users", "promote", "restart", "check"}

// read reads the files and the commands of the page.
func (p *production) read() {
	page, err := docstest.Read(os.DirFS("../.."), "docs/operating.md")
	p.must(page, err)
	for _, b := range page.Blocks {
		switch file := b.Comments["file"]; {
		case b.Comments["run by"] != "TestAFailoverLosesNothing":
		case file != "":
			p.files[file] = b.Text
		default:
			p.commands = append(p.commands, b.Text)
		}
	}
	if len(p.commands) != len(steps) {
		p.t.Fatalf("the page has %d blocks of commands, want %d", len(p.commands), len(steps))
	}
}

// setUp makes what the page presupposes: hosts with PostgreSQL, certificates, and programs.
func (p *production) setUp() {
	var err error
	p.log, err = os.Create(filepath.Join(p.dir, "log"))
	p.must(p.log, err)
	p.t.Cleanup(func() {
		if text, err := os.ReadFile(p.log.Name()); err == nil && p.t.Failed() {
			p.t.Logf("the end of the log:\n%s", text[max(0, len(text)-8000):])
		}
		_ = p.log.Close()
	})
	psql, err := pgtest.Program(p.t.Context(), "psql")
	p.must(psql, err)
	p.path = strings.Join([]string{filepath.Dir(build(p.t)), filepath.Dir(psql), os.Getenv("PATH"), "/usr/sbin"}, ":")
	for i := range p.servers {
		p.servers[i] = newDBServer(p.t)
	}
	db1, db2 := p.servers[0], p.servers[1]
	p.names = []string{"/etc/postgresql/tls", db1.dir, "/var/lib/postgresql/15/main", db2.data, "/etc/holdfast", p.dir, "/etc/haproxy", p.dir,
		"10.0.0.0/16", "127.0.0.1/32", "= '*'", "= '127.0.0.1'", "SECRET_KEY", strings.Repeat("07", 32)}
	for i, db := range p.servers {
		p.names = append(p.names, fmt.Sprintf("db%d.internal:5432", i+1), "127.0.0.1:"+db.port, fmt.Sprintf("db%d.internal:6432", i+1), "127.0.0.1:"+db.bouncer)
	}
	for i := range p.nodes {
		at := "127.0.0.1:" + freePort(p.t)
		p.urls[i] = "https://" + at
		p.names = append(p.names, fmt.Sprintf("node%d.internal:7070", i+1), at)
	}
	port := freePort(p.t)
	p.url = "https://localhost:" + port
	p.names = append(p.names, "https://holdfast.internal", p.url, ":443", ":"+port, "holdfast.internal", "localhost")

	authority := testkit.NewAuthority(p.t)
	ca := readFile(p.t, authority.Write(p.dir))
	cert, key := authority.Issue(p.dir, "localhost")
	for name, text := range map[string]string{"ca.pem": ca, "server.pem": readFile(p.t, cert), "server-key.pem": readFile(p.t, key)} {
		p.must(nil, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
		db1.put(p.t, filepath.Join(db1.dir, name), text)
	}
	p.must(nil, os.WriteFile(filepath.Join(p.dir, "holdfast.pem"), []byte(readFile(p.t, cert)+readFile(p.t, key)), 0o600))
	p.trusted = &tls.Config{RootCAs: x509.NewCertPool()}
	p.trusted.RootCAs.AppendCertsFromPEM([]byte(ca))
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := pgtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// local replaces names of the page: more, and then those that are the same in all of it.
func (p *production) local(text string, more ...string) string {
	return strings.NewReplacer(p.names...).Replace(strings.NewReplacer(more...).Replace(text))
}

// file returns the text of a file of the page.
func (p *production) file(name string, more ...string) string {
	p.t.Helper()
	text, ok := p.files[name]
	if !ok {
		p.t.Fatalf("the page has no file %s", name)
	}
	return p.local(text, more...)
}

// run runs commands of the page, on a host of the database if there is one, and returns what they print.
func (p *production) run(step string, on *dbServer, more ...string) string {
	p.t.Helper()
	text := p.local(p.commands[slices.Index(steps, step)], more...)
	cmd := exec.Command("sh", "-euc", text)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "PATH="+p.path)
	if on != nil {
		cmd.Env = append(cmd.Env, "PGHOST=127.0.0.1", "PGUSER=postgres", "PGPORT="+on.port)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("%s: %v: %s%s", text, err, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String())
}

// daemon starts a program that writes to the log, and kills it when the test ends.
func (p *production) daemon(name string, args ...string) {
	p.t.Helper()
	path, err := pgtest.Command(p.t.Context(), name, name)
	p.must(path, err)
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	p.must(nil, cmd.Start())
	p.t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
}

// replicate makes the first server the primary, and the second one its synchronous standby.
func (p *production) replicate() {
	db1, db2 := p.servers[0], p.servers[1]
	conf := filepath.Join(db1.data, "postgresql.conf")
	db1.put(p.t, conf, readFile(p.t, conf)+p.file("/etc/postgresql/15/main/conf.d/holdfast.conf")+"unix_socket_directories = '"+db1.dir+"'\n")
	db1.put(p.t, filepath.Join(db1.data, "pg_hba.conf"), p.file("/etc/postgresql/15/main/pg_hba.conf")+"host all postgres 127.0.0.1/32 trust\n")
	p.must(nil, db1.Restart())
	p.run("roles", db1)
	pooler, err := docstest.Read(os.DirFS("../.."), "docs/postgresql.md")
	p.must(pooler, err)
	for _, b := range pooler.Blocks {
		if b.Lang == "sql" {
			p.must(nil, pgtest.Exec(p.t.Context(), db1.URL(), strings.ReplaceAll(b.Text, "ROLE app", "ROLE holdfast_app")))
		}
	}

	p.must(nil, db2.Stop("fast"))
	p.must(nil, os.RemoveAll(db2.data))
	p.run("standby", db2)
	db2.own(p.t)
	conf = filepath.Join(db2.data, "postgresql.conf")
	db2.put(p.t, conf, readFile(p.t, conf)+fmt.Sprintf("port = %s\ncluster_name = '%s'\nunix_socket_directories = '%s'\n", db2.port, db2.name, db2.dir))
	p.must(nil, db2.Restart())
	testkit.Eventually(p.t, "the standby is synchronous", func() bool { return strings.HasSuffix(p.run("synchronous", db1), "db2|sync") })
}

// serve starts the nodes, the last of them through PgBouncer, and the load balancer.
func (p *production) serve() {
	p.key = p.run("keys", nil)
	p.key = p.key[strings.LastIndex(p.key, "\n")+1:]
	for _, db := range p.servers {
		p.run("users", db, "/etc/pgbouncer", db.dir)
		db.own(p.t)
		ini := filepath.Join(db.dir, "pgbouncer.ini")
		db.put(p.t, ini, p.file("/etc/pgbouncer/pgbouncer.ini", "/etc/pgbouncer", db.dir, "/var/run/postgresql", db.dir, "5432", db.port, "6432", db.bouncer, "= *", "= 127.0.0.1"))
		args := []string{ini}
		if os.Geteuid() == 0 { // PgBouncer refuses to run as root
			args = []string{"--user", db.owner.Username, ini}
		}
		p.daemon("pgbouncer", args...)
	}
	environment := p.file("/etc/holdfast/environment")
	p.must(nil, os.WriteFile(filepath.Join(p.dir, "environment"), []byte(environment), 0o600))
	for i := range p.nodes {
		if i == 2 {
			environment = strings.ReplaceAll(p.files["/etc/holdfast/environment"], "internal:5432", "internal:6432")
			environment = p.local(environment, "/ca.pem'", "/ca.pem&default_query_exec_mode=cache_describe'")
		}
		dir := filepath.Join(p.dir, fmt.Sprint("node", i+1))
		p.must(nil, os.Mkdir(dir, 0o700))
		p.must(nil, os.WriteFile(filepath.Join(dir, "environment"), []byte(environment), 0o600))
		yaml := p.file("/etc/holdfast/holdfast.yaml", "0.0.0.0:7070", strings.TrimPrefix(p.urls[i], "https://"))
		p.must(nil, os.WriteFile(filepath.Join(dir, "holdfast.yaml"), []byte(yaml), 0o600))
		p.nodes[i] = &process{name: filepath.Base(dir), begin: func(*process) (*exec.Cmd, error) {
			cmd := exec.Command("sh", "-c", "set -a; . ./environment; exec holdfast serve")
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), "PATH="+p.path), p.log, p.log
			return cmd, cmd.Start()
		}}
		p.must(nil, p.nodes[i].start())
		p.t.Cleanup(p.nodes[i].kill)
	}
	p.must(nil, os.WriteFile(filepath.Join(p.dir, "haproxy.cfg"), []byte(p.file("/etc/haproxy/haproxy.cfg")), 0o600))
	p.daemon("haproxy", "-db", "-f", filepath.Join(p.dir, "haproxy.cfg"))
	p.ready()
	var pooled int
	p.servers[0].query(p.t, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'holdfast_app' AND client_addr IS NULL", &pooled)
	if pooled == 0 {
		p.t.Error("no node uses PgBouncer")
	}
}

// ready waits until all nodes are ready.
func (p *production) ready() {
	for i := range p.nodes {
		p.run("restart", nil, "node1.", fmt.Sprintf("node%d.", i+1))
	}
}

func (p *production) client(url string, attempts int) *client.Client {
	p.t.Helper()
	c, err := client.New(url, client.Options{APIKey: p.key, TLS: p.trusted, MaxAttempts: attempts})
	p.must(c, err)
	p.t.Cleanup(c.Close)
	return c
}

// hold starts a run and claims its task.
func (p *production) hold(c *client.Client) wire.Task {
	ctx := p.t.Context()
	p.must(c.PutHandler(ctx, "Slow", wire.PutHandler{Kind: "worker", Safety: "idempotent"}))
	p.must(c.PutDefinition(ctx, json.RawMessage(`{"name":"slow","version":"1","steps":[{"name":"a","type":"task","handler":"Slow"}]}`)))
	p.must(c.StartRun(ctx, wire.StartRun{DefinitionID: "slow@1"}))
	wait := wire.Millis(30_000)
	got, err := c.ClaimTasks(ctx, wire.ClaimTasks{Worker: "w", Handlers: []string{"Slow"}, WaitMs: &wait, LeaseMs: wire.Ms(5 * time.Minute)})
	p.must(got, err)
	if len(got.Tasks) != 1 {
		p.t.Fatalf("got %d tasks, want 1", len(got.Tasks))
	}
	return got.Tasks[0]
}

// newDBServer starts a PostgreSQL with data of its own.
func newDBServer(t *testing.T) *dbServer {
	t.Helper()
	c, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := &dbServer{Cluster: c, bouncer: freePort(t)}
	s.query(t, "SELECT current_setting('data_directory'), current_setting('cluster_name'), current_setting('port')", &s.data, &s.name, &s.port)
	s.dir = filepath.Dir(s.data)
	info, err := os.Stat(s.data)
	if err != nil {
		t.Fatal(err)
	}
	if s.owner, err = user.LookupId(fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *dbServer) query(t *testing.T, sql string, into ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql).Scan(into...); err != nil {
		t.Fatal(err)
	}
}

// put writes a file that belongs to the owner of the server.
func (s *dbServer) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.own(t)
}

// own gives all files of the server to its owner.
func (s *dbServer) own(t *testing.T) {
	t.Helper()
	uid, _ := strconv.Atoi(s.owner.Uid)
	gid, _ := strconv.Atoi(s.owner.Gid)
	err := filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, uid, gid)
		}
		if errors.Is(err, fs.ErrNotExist) { // the server removes files
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// crash kills all processes of the server.
func (s *dbServer) crash(t *testing.T) {
	t.Helper()
	var pids []int
	s.query(t, "SELECT array_agg(pid) FROM pg_stat_activity", &pids)
	first, _, _ := strings.Cut(readFile(t, filepath.Join(s.data, "postmaster.pid")), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range append([]int{postmaster}, pids...) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// writers write through the nodes, and through the load balancer.
type writers struct {
	p    *production
	all  []*writer
	stop context.CancelFunc
	done sync.WaitGroup
	calm atomic.Bool // no request through the load balancer may fail
}

// writer appends numbers to a stream. Through the load balancer, it sends each with a key, until it is acknowledged.
type writer struct {
	stream string
	c      *client.Client
	keyed  bool
	acked  []bool // by number
	n      atomic.Int64
	codes  map[fault.Code]int
}

func (p *production) write() *writers {
	ctx, stop := context.WithCancel(context.Background())
	w := &writers{p: p, stop: stop}
	p.t.Cleanup(func() { stop(); w.done.Wait() })
	for i := range 2 {
		for _, url := range p.urls {
			w.all = append(w.all, &writer{stream: fmt.Sprint("direct-", len(w.all)), c: p.client(url, 1)})
		}
		w.all = append(w.all, &writer{stream: fmt.Sprint("balanced-", i), c: p.client(p.url, 0), keyed: true})
	}
	for _, x := range w.all {
		x.codes = map[fault.Code]int{}
		w.done.Go(func() { w.run(ctx, x) })
	}
	return w
}

func (w *writers) run(ctx context.Context, x *writer) {
	for n := 0; ctx.Err() == nil; n++ {
		in := wire.Append{Events: []wire.NewEvent{{Name: "placed", Data: json.RawMessage(strconv.Itoa(n))}}}
		var o []client.Option
		if x.keyed {
			o = append(o, client.Key(fmt.Sprint(x.stream, "/", n)))
		}
		for acked := false; ; {
			calm := w.calm.Load()
			_, err := x.c.AppendEvents(ctx, x.stream, in, o...)
			if acked = err == nil; acked {
				x.n.Add(1)
			} else if ctx.Err() == nil {
				x.codes[fault.CodeOf(err)]++
				pause(ctx, 10*time.Millisecond)
				if calm && x.keyed {
					w.p.t.Errorf("a request through the load balancer: %v", err)
				}
			}
			if acked || !x.keyed || ctx.Err() != nil {
				x.acked = append(x.acked, acked)
				break
			}
		}
	}
}

// wait waits until each writer has got further acknowledgments.
func (w *writers) wait(when string) {
	w.p.t.Helper()
	enough := make([]int64, len(w.all))
	for i, x := range w.all {
		enough[i] = x.n.Load() + 20
	}
	for i, x := range w.all {
		testkit.Eventually(w.p.t, x.stream+" "+when, func() bool { return x.n.Load() >= enough[i] })
	}
}

// end stops the writers, and verifies what is stored.
func (w *writers) end(c *client.Client) {
	t := w.p.t
	w.stop()
	w.done.Wait()
	codes := map[fault.Code]int{}
	for _, x := range w.all {
		stored := make([]int, len(x.acked))
		for e, err := range c.ReadStream(t.Context(), x.stream, client.StreamRange{}) {
			w.p.must(nil, err)
			var n int
			w.p.must(nil, json.Unmarshal(e.Data, &n))
			stored[n]++
		}
		for n, times := range stored {
			if x.acked[n] && times == 0 {
				t.Errorf("%s: the acknowledged write %d is lost", x.stream, n)
			}
			if times > 1 {
				t.Errorf("%s: the write %d was applied %d times", x.stream, n, times)
			}
		}
		for code, n := range x.codes {
			codes[code] += n
			if code != fault.Unavailable && code != fault.OutcomeUnknown {
				t.Errorf("%s: %d requests failed with %s", x.stream, n, code)
			}
		}
	}
	t.Logf("failed requests: %v", codes)
}
