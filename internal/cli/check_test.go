package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// TestCheckListsViolations verifies the output for a database with a violation, and the
// exit code 1.
func TestCheckListsViolations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.db")
	breakStream(t, path)
	run := func(format string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := newProgram(nil, &stdout, &stderr).run(t.Context(), []string{"check", "--db", "sqlite:" + path, "-o", format}); code != 1 {
			t.Errorf("exit code is %d, want 1", code)
		}
		return stdout.String(), stderr.String()
	}
	out, complaint := run("table")
	for _, want := range []string{
		"streams         1\n", "overdue leases  0\n", "violations      1\n", "INVARIANT  WORKSPACE  SUBJECT   WHAT\n",
		"I17        default    stream s  the version is 1, but there are 1 events instead of 2: versions are missing\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in output\n%s", want, out)
		}
	}
	if !strings.HasPrefix(complaint, "holdfast: 1 violation found: ") || strings.Count(complaint, "\n") != 1 {
		t.Errorf("got stderr %q", complaint)
	}
	out, _ = run("json")
	var r holdfast.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Checked["streams"] != 1 || len(r.Violations) != 1 || r.Violations[0].Invariant != "I17" {
		t.Errorf("got JSON %+v (error %v):\n%s", r, err, out)
	}
}

// breakStream makes a database with a stream that lacks its first event.
func breakStream(t *testing.T, path string) {
	t.Helper()
	hf, err := holdfast.Open(t.Context(), sqlite.File(path), holdfast.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer hf.Close()
	err = hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := stream.Append(ctx, tx, "s", stream.None, stream.Event{Name: "a"}, stream.Event{Name: "b"}); err != nil {
			return err
		}
		_, err := sqlite.Raw(tx).ExecContext(ctx, `DELETE FROM holdfast_event WHERE version = 0`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestADatabaseFromBeforeTheFirstReleaseIsRefused verifies that every command refuses such
// a database with one line and exit code 1.
func TestADatabaseFromBeforeTheFirstReleaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	hf, err := holdfast.Open(t.Context(), sqlite.File(path), holdfast.Config{})
	if err != nil {
		t.Fatal(err)
	}
	err = hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, err := sqlite.Raw(tx).ExecContext(ctx, `UPDATE holdfast_migration SET name = 'ground', sum = 'of the first of many'`)
		return err
	})
	if err := errors.Join(err, hf.Close()); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"migrate", "check", "serve --listen 127.0.0.1:0", "serve --listen 127.0.0.1:0 --no-migrate", "dev --listen 127.0.0.1:0"} {
		var stdout, stderr bytes.Buffer
		code := newProgram(nil, &stdout, &stderr).run(t.Context(), append(strings.Fields(command), "--db", "sqlite:"+path))
		if code != 1 || stdout.Len() != 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), "created before the first release") ||
			!strings.HasSuffix(stderr.String(), "(DATABASE_FOREIGN)\n") {
			t.Errorf("%s: exit code is %d:\n%s%s", command, code, stdout.String(), stderr.String())
		}
	}
}
