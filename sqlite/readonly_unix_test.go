//go:build unix

package sqlite_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/sqlite"
)

func init() { jobs["open"] = jobOpen }

// nobody is a user to whom file modes apply. They do not apply to root.
const nobody = 65534

// verdict is the result of the job "open".
type verdict struct {
	Code    fault.Code
	Message string
}

// jobOpen opens an engine, uses it, and prints the result.
func jobOpen(ctx context.Context, path, name string, begin func() error) error {
	if err := begin(); err != nil {
		return err
	}
	var v verdict
	hf, err := holdfast.Open(ctx, sqlite.File(path), quiet)
	if err == nil {
		err = useEverything(ctx, hf, name)
		hf.Close()
	}
	if err != nil {
		v = verdict{fault.CodeOf(err), err.Error()}
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

// TestWhatMayNotBeWrittenIsRefusedAtTheStart verifies that a read-only file, folder, or both are
// refused at the start with an error that names it, and are not changed; and that with write access
// the same file is opened.
func TestWhatMayNotBeWrittenIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	self := worldBinary(t)
	for _, c := range []struct {
		name         string
		file, folder os.FileMode
		codes        []fault.Code
	}{
		{"the file", 0o444, 0o755, []fault.Code{fault.DatabaseReadOnly}},
		{"the folder", 0o644, 0o555, []fault.Code{fault.DatabaseReadOnly, fault.Unavailable}},
		{"both", 0o444, 0o555, []fault.Code{fault.DatabaseReadOnly, fault.Unavailable}},
		{"not even to be read", 0o000, 0o755, []fault.Code{fault.Unavailable, fault.DatabaseDenied, fault.DatabaseReadOnly}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := worldPath(t)
			makeDatabase(t, path)
			giveTo(t, path, c.file, c.folder)
			before := snapshot(t, filepath.Dir(path))
			got := openAsNobody(t, self, path, "denied")
			testkit.WantCode(t, fault.New(got.Code, "%s", got.Message), got.Code, path)
			if !slices.Contains(c.codes, got.Code) {
				t.Errorf("got %s, want one of %v: %s", got.Code, c.codes, got.Message)
			}
			t.Log(got.Message)
			wantSame(t, filepath.Dir(path), before)
			giveTo(t, path, 0o644, 0o755)
			if got := openAsNobody(t, self, path, "allowed"); got.Code != "" {
				t.Errorf("with all permissions: got %s", got.Message)
			}
		})
	}
}

// TestAFileThatCannotBeCreatedIsRefused verifies that a database that cannot be created, because
// its folder is read-only, is refused with an error that names it.
func TestAFileThatCannotBeCreatedIsRefused(t *testing.T) {
	t.Parallel()
	self, path := worldBinary(t), worldPath(t)
	giveTo(t, filepath.Dir(path), 0o555, 0o755)
	got := openAsNobody(t, self, path, "none")
	testkit.WantCode(t, fault.New(got.Code, "%s", got.Message), fault.Unavailable, path)
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was created")
	}
}

// worldPath returns a path in a folder that every user can enter, unlike that of t.TempDir.
func worldPath(t *testing.T) string {
	t.Helper()
	root := ""
	if os.Geteuid() == 0 {
		root = "/tmp"
	}
	dir, err := os.MkdirTemp(root, "holdfast-readonly-")
	if err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(dir, "data")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Chmod(inner, 0o755)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(inner, "app.db")
}

// giveTo makes nobody the owner of a file and its folder, if possible, and sets their modes.
func giveTo(t *testing.T, path string, file, folder os.FileMode) {
	t.Helper()
	for p, mode := range map[string]os.FileMode{path: file, filepath.Dir(path): folder} {
		if os.Geteuid() == 0 {
			if err := os.Chown(p, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
}

func openAsNobody(t *testing.T, self, path, name string) (v verdict) {
	t.Helper()
	c := startChild(t, "open", path, name, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args, cmd.Dir = self, []string{self}, "/"
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
	})
	c.Send("go")
	if err := json.Unmarshal([]byte(c.Wait()), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// worldBinary copies this test binary to a place where every user can run it.
func worldBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return self
	}
	path := filepath.Join(filepath.Dir(filepath.Dir(worldPath(t))), "test-binary")
	// Another program makes the copy: while a process has a file open for writing, a child that it
	// forks at that moment keeps the file from being executed.
	if out, err := exec.Command("cp", self, path).CombinedOutput(); err != nil {
		t.Fatalf("copy the test binary: %v: %s", err, out)
	}
	return path
}

// TestTheFilesAreTheirOwnersAlone verifies that only their owner can read the file of a database
// and the log beside it.
func TestTheFilesAreTheirOwnersAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	hf, err := holdfast.Open(t.Context(), sqlite.File(path), holdfast.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer hf.Close()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, want 0600: %v", f, info.Mode(), err)
		}
	}
}
