package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/sqlite"
)

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"postgres://ada:sesame@db/app":               "postgres://ada:***@db/app",
		"postgres://ada:se/sa?m@e@db:5432/app?a=b":   "postgres://ada:***@db:5432/app?a=b",
		"postgres://:sesame@db":                      "postgres://:***@db",
		"postgres://ada@db/app":                      "postgres://ada@db/app",
		"postgres://db/app?password=sesame&a=b":      "postgres://db/app?password=***&a=b",
		"host=db password=sesame user=ada":           "host=db password=*** user=ada",
		"host=db password = 'open se\\'same' user=a": "host=db password = *** user=a",
		"host=db sslpassword=sesame":                 "host=db sslpassword=***",
		"http://127.0.0.1:7070/readyz":               "http://127.0.0.1:7070/readyz",
		"no secret: here":                            "no secret: here",
	} {
		if got := redact(in); got != want {
			t.Errorf("redact(%q) is %q, want %q", in, got, want)
		}
	}
}

// Passwords are redacted in messages, attributes, errors and groups.
func TestLogHasNoPasswords(t *testing.T) {
	const url = "postgres://ada:sesame@db/app"
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log := newLog(&out, "info", format)
		log.Info("open "+url, "url", url, "error", errors.New(url), slog.Group("in", "url", url))
		log.Debug("not at this level")
		if strings.Contains(out.String(), "sesame") || strings.Contains(out.String(), "not at") || strings.Count(out.String(), "***") != 4 {
			t.Errorf("got log %s", out.String())
		}
	}
}

// Durations in the log have a unit, in both formats.
func TestLogHasReadableDurations(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		newLog(&out, "info", format).Info("slow", "took", 1500*time.Millisecond, slog.Group("in", "every", 2*time.Minute))
		if !strings.Contains(out.String(), "1.5s") || !strings.Contains(out.String(), "2m0s") {
			t.Errorf("got log %s", out.String())
		}
	}
}

func TestCheckListen(t *testing.T) {
	for _, good := range []string{"127.0.0.1:0", "127.8.9.1:7070", "[::1]:7070", "localhost:65535"} {
		if err := checkListen(good, "no"); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "7070", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", ":7070", "0.0.0.0:7070", "[::]:7070", "10.0.0.1:7070", "localhost.example.org:7070", "[::ffff:10.0.0.1]:1"} {
		if err := checkListen(bad, "no"); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%s: got error %v, want a validation error", bad, err)
		}
	}
}

func TestDatabaseForms(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite:a.db": "sqlite", "sqlite:/var/lib/a": "sqlite", "a.db": "sqlite", "./x/a.sqlite": "sqlite", `C:\a.sqlite3`: "sqlite",
		"postgres://h/d": "postgres", "postgresql://h/d": "postgres", "host=h dbname=d.db": "postgres", "postgres://h/d.db": "postgres",
		"": "", "a": "", "a.txt": "", "file:a.db": "", "mysql://h/d.db": "", "sqlite:": "", "sqlite://a.db": "", "postgres:a": "",
	} {
		db, err := databaseFlags{DB: text, Schema: "s"}.open()
		got := ""
		switch {
		case err != nil && fault.CodeOf(err) != fault.Validation:
			t.Errorf("%q: %v", text, err)
		case err == nil:
			got = "postgres"
			if _, ok := db.(*sqlite.Database); ok {
				got = "sqlite"
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestEdits(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"abc", ""}: 3, {"db", "db"}: 0,
		{"log_level", "log-level"}: 1, {"lisen", "listen"}: 1, {"kitten", "sitting"}: 3,
	} {
		if got := edits(pair[0], pair[1]); got != want {
			t.Errorf("distance of %q and %q is %d, want %d", pair[0], pair[1], got, want)
		}
	}
}

// The first signal cancels the context, and the second calls exit.
func TestSignals(t *testing.T) {
	exited := make(chan int, 1)
	ctx, stop := untilSignal(t.Context(), func(code int) { exited <- code })
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := <-exited; code != 1 {
		t.Errorf("exit code is %d, want 1", code)
	}
	stop()
}

// onReady is a stdout that calls a function with each line.
type onReady func(string) error

func (f onReady) Write(p []byte) (int, error) { return len(p), f(string(p)) }

// The server runs in this process, where goleak sees leaked goroutines.
func TestServeInProcess(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var errs bytes.Buffer
	p := newProgram(nil, onReady(func(line string) error {
		if !strings.HasPrefix(line, "holdfast ready url=http://127.0.0.1:") {
			t.Errorf("got output %q, want the ready line", line)
		}
		stop()
		return nil
	}), &errs)
	if code := p.run(ctx, []string{"dev", "--listen", "127.0.0.1:0"}); code != 0 {
		t.Errorf("exit code is %d, want 0:\n%s", code, errs.String())
	}
}

// A stop before the server is ready is not an error.
func TestStoppedBeforeReady(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errs bytes.Buffer
	s := server{program: newProgram(nil, &out, &errs), databaseFlags: databaseFlags{DB: "a.db"}, serverFlags: serverFlags{Listen: "127.0.0.1:0"}}
	if err := s.run(ctx); err != nil || out.Len() != 0 {
		t.Errorf("run returned %v and wrote %q, want nothing", err, out.String())
	}
}

// A server that cannot print the ready line stops with an error.
func TestStdoutIsGone(t *testing.T) {
	t.Chdir(t.TempDir())
	var errs bytes.Buffer
	p := newProgram(nil, onReady(func(string) error { return io.ErrClosedPipe }), &errs)
	if code := p.run(t.Context(), []string{"dev", "--listen", "127.0.0.1:0"}); code != 1 {
		t.Errorf("exit code is %d, want 1", code)
	}
	if !strings.Contains(errs.String(), "holdfast: "+io.ErrClosedPipe.Error()) {
		t.Errorf("got stderr %q", errs.String())
	}
}

// An error of afterReady stops the server.
func TestStoryFails(t *testing.T) {
	t.Chdir(t.TempDir())
	s := server{
		program:       newProgram(nil, io.Discard, io.Discard),
		databaseFlags: databaseFlags{DB: "a.db"}, serverFlags: serverFlags{Listen: "127.0.0.1:0"},
		afterReady: func(context.Context, *holdfast.Engine, string) error {
			return fault.New(fault.Internal, "this must not be")
		},
	}
	err := s.run(t.Context())
	if exitCode(err) != 1 || !strings.Contains(message(err), "must not be") {
		t.Errorf("got error %v", err)
	}
}

// A setting with the same name is the same for every command.
func TestSettingsAgree(t *testing.T) {
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	known := settings(k.Model.Node)
	for _, command := range k.Model.Children {
		for _, f := range command.Flags {
			if !isSetting(f) {
				continue
			}
			other := known[f.Name]
			if other.Target.Type() != f.Target.Type() || other.Default != f.Default || other.Enum != f.Enum || other.Help != f.Help {
				t.Errorf("%s --%s differs from the setting of another command", command.Name, f.Name)
			}
		}
	}
	for _, name := range []string{"listen", "db", "log-level", "log-format", "schema", "shutdown-timeout", "no-migrate"} {
		if known[name] == nil {
			t.Errorf("setting %s does not exist", name)
		}
	}
}
