package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

func TestMain(m *testing.M) {
	testscript.Main(leakFree{m}, map[string]func(){
		"holdfast": func() { os.Exit(Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)) },
	})
}

// leakFree runs the tests and then checks for leaked goroutines.
type leakFree struct{ m *testing.M }

func (l leakFree) Run() int {
	code := l.m.Run()
	pgtest.CloseIdle()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// scripts returns the scripts of testdata. With the race detector each of their hundreds of
// processes takes 250 ms to start, so only some scripts run.
func scripts(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatalf("found %d scripts, error %v", len(all), err)
	}
	return testlevel.Some(t, all)
}

// TestScripts runs the scripts of testdata, which also document the commands. The commands that
// the scripts have in addition to those of testscript are the methods of [scene].
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files:               scripts(t),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each exit takes a second
			env.Setenv("GOGC", os.Getenv("GOGC"))     // scripts do not inherit the environment
			env.Values[sceneKey{}] = &scene{running: make(map[string]*process)}
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "long" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return testlevel.Current() >= testlevel.Check, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    withScene((*scene).exits),
			"start":    withScene((*scene).start),
			"await":    withScene((*scene).await),
			"signal":   withScene((*scene).signal),
			"ended":    withScene((*scene).ended),
			"get":      withScene((*scene).get),
			"capture":  withScene((*scene).capture),
			"until":    withScene((*scene).until),
			"hold":     withScene((*scene).hold),
			"release":  withScene((*scene).release),
			"occupy":   withScene((*scene).occupy),
			"postgres": withScene((*scene).postgres),
			"sqlite":   withScene((*scene).sqlite),
		},
	})
}

type sceneKey struct{}

// scene has the processes and connections of one script.
type scene struct {
	running map[string]*process
	held    net.Conn
}

func withScene(f func(*scene, *testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command cannot be negated")
		}
		f(ts.Value(sceneKey{}).(*scene), ts, args)
	}
}

// exits CODE PROGRAM ARG… runs a program that must exit with this code.
func (s *scene) exits(ts *testscript.TestScript, args []string) {
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Check(err)
		}
		code = exit.ExitCode()
	}
	if want, err := strconv.Atoi(args[0]); err != nil || want != code {
		ts.Fatalf("exit code is %d, want %s", code, args[0])
	}
}

// start NAME PROGRAM ARG… starts a server and waits until it is ready. $NAME is then its URL.
func (s *scene) start(ts *testscript.TestScript, args []string) {
	p, err := startProcess(ts, args[1], args[2:]...)
	ts.Check(err)
	s.running[args[0]] = p
	ts.Defer(p.kill)
	line, ok := p.stdout.await("holdfast ready url=")
	if !ok {
		ts.Fatalf("the server exited before it was ready:\n%s", p.stderr.String())
	}
	ts.Setenv(args[0], strings.TrimPrefix(line, "holdfast ready url="))
}

// sqlite FILE SQL executes statements on a SQLite file, as another program does.
func (s *scene) sqlite(ts *testscript.TestScript, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), args[1])
	ts.Check(errors.Join(err, db.Close()))
}

func (s *scene) process(ts *testscript.TestScript, name string) *process {
	p, ok := s.running[name]
	if !ok {
		ts.Fatalf("no process named %s was started", name)
	}
	return p
}

// await NAME TEXT waits until a server writes a line with the text to stdout or, with a
// third argument "stderr", to its log.
func (s *scene) await(ts *testscript.TestScript, args []string) {
	from := s.process(ts, args[0]).stdout
	if len(args) > 2 && args[2] == "stderr" {
		from = s.process(ts, args[0]).stderr
	}
	if _, ok := from.await(args[1]); !ok {
		ts.Fatalf("the server exited without %q:\n%s", args[1], from.String())
	}
}

// signal NAME TERM|INT sends a signal.
func (s *scene) signal(ts *testscript.TestScript, args []string) {
	which := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt}[args[1]]
	ts.Check(s.process(ts, args[0]).cmd.Process.Signal(which))
}

// ended NAME CODE waits until a server exits with this code. Its output is then available
// to stdout and stderr.
func (s *scene) ended(ts *testscript.TestScript, args []string) {
	p := s.process(ts, args[0])
	code := p.wait()
	io.WriteString(ts.Stdout(), p.stdout.String())
	io.WriteString(ts.Stderr(), p.stderr.String())
	if want, err := strconv.Atoi(args[1]); err != nil || want != code {
		ts.Fatalf("exit code is %d, want %s:\n%s", code, args[1], p.stderr.String())
	}
}

// get URL writes the response to stdout: its status, content type and body.
func (s *scene) get(ts *testscript.TestScript, args []string) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(args[0])
	ts.Check(err)
	defer resp.Body.Close()
	fmt.Fprintf(ts.Stdout(), "%d %s\n", resp.StatusCode, resp.Header.Get("Content-Type"))
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
}

// capture NAME REGEXP sets $NAME to the first group of a match in stdout.
func (s *scene) capture(ts *testscript.TestScript, args []string) {
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("stdout has no %q:\n%s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], found[1])
}

// until REGEXP PROGRAM ARG… runs a program repeatedly until its stdout matches.
func (s *scene) until(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	for begun := clock.Now(); clock.Since(begun) < time.Minute; _ = clock.Wait(context.Background(), 20*time.Millisecond) {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("stdout never matched %q:\n%s", args[0], ts.ReadFile("stdout"))
}

// hold URL starts a request without sending its body, so that it stays in flight.
func (s *scene) hold(ts *testscript.TestScript, args []string) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(args[0], "http://"))
	ts.Check(err)
	ts.Defer(func() { conn.Close() })
	_, err = io.WriteString(conn, "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n")
	ts.Check(err)
	s.held = conn
}

// release sends the body of the held request and writes the response to stdout.
func (s *scene) release(ts *testscript.TestScript, _ []string) {
	_, err := io.WriteString(s.held, "x")
	ts.Check(err)
	_, err = io.Copy(ts.Stdout(), s.held)
	ts.Check(err)
}

// occupy listens on a free port. $OCCUPIED is its address.
func (s *scene) occupy(ts *testscript.TestScript, _ []string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { ln.Close() })
	ts.Setenv("OCCUPIED", ln.Addr().String())
}

// postgres creates an empty database. $POSTGRES is its URL.
func (s *scene) postgres(ts *testscript.TestScript, _ []string) {
	ctx, cancel := scriptContext()
	defer cancel()
	url, drop, err := pgtest.Database(ctx, pgtest.Options{})
	ts.Check(err)
	ts.Defer(drop)
	ts.Setenv("POSTGRES", url)
}
