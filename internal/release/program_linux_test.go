package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// TestTheReleasedProgram verifies the program itself: it is not larger than the bound, knows its version, and runs in the
// image as its user, where it creates its database and becomes ready.
//
// It is built like that of a release, except for paths in it, so that it shares what the other tests have compiled.
func TestTheReleasedProgram(t *testing.T) {
	testlevel.Long(t)
	r := small()
	r.Binaries = nil
	target := Target{"linux", runtime.GOARCH}
	path := filepath.Join(t.TempDir(), "holdfast")
	c := exec.Command("go", "build", "-buildvcs=false", "-ldflags", r.linked(), "-o", path, "./cmd/holdfast")
	c.Dir, c.Env = string(root), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	b, err := load(t.Context(), target, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d modules, %d bytes of licenses", len(b.Content), len(b.Info.Deps), len(b.Licenses))
	if len(b.Content) > maxSize {
		t.Errorf("the program has %d bytes, want at most %d: docs/decisions/057-release.md says what was removed before", len(b.Content), maxSize)
	}
	if out, err := exec.Command(path, "version").Output(); err != nil || !bytes.Contains(out, []byte(r.Version)) || !bytes.Contains(out, []byte(r.Commit)) || !bytes.Contains(out, []byte(runtime.Version())) {
		t.Errorf("holdfast version: %v: %s", err, out)
	}
	r.Binaries = []Binary{b}
	image, err := r.image(r.Binaries)
	if err != nil {
		t.Fatal(err)
	}
	files, config := layerOf(t, image, target.Arch, r.Version)
	runImage(t, files, config)
}

// runImage unpacks the layer of an image, and runs a command to create a key and then the server in it, as the user of the image
// and with nothing but the layer as its files.
func runImage(t *testing.T, files map[string]entry, config containerConfig) {
	if os.Getuid() != 0 {
		t.Attr(testlevel.NoteAttr, "the test does not run as root, so the program of the image ran as this user and not as 65532, and with the files of this machine")
	}
	dir := t.TempDir()
	for _, e := range files {
		at := filepath.Join(dir, e.name)
		if strings.HasSuffix(e.name, "/") {
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		} else if err := os.WriteFile(at, e.content, e.mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range files {
		at := filepath.Join(dir, e.name)
		if os.Getuid() == 0 {
			if err := os.Chown(at, e.owner, e.owner); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(at, e.mode.Perm()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, config.Entrypoint[0], args...)
		c.Env, c.Dir = config.Env, config.WorkingDir
		if os.Getuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
		} else {
			c.Path, c.Dir = filepath.Join(dir, config.Entrypoint[0]), filepath.Join(dir, config.WorkingDir)
			c.Env = append(c.Env, "HOLDFAST_DB=sqlite:holdfast.db")
		}
		return c
	}
	if out, err := command("keys", "create", "--role", "admin").CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("hf_")) {
		t.Fatalf("keys create: %v: %s", err, out)
	}
	server := command(append(config.Cmd, "--listen", "0.0.0.0:0")...)
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "holdfast ready url=http://[::]:")
	if !ok {
		t.Fatalf("the server printed %q: %v", line, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Process.Pid))
	if err != nil || os.Getuid() == 0 && !bytes.Contains(status, []byte("\nUid:\t65532\t65532\t65532\t65532\n")) {
		t.Errorf("the server runs as another user: %v: %s", err, status)
	}
	response, err := http.Get("http://127.0.0.1:" + url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"status":"ready"`)) || !bytes.Contains(text, []byte(`"version":"v1.2.3-rc.1"`)) {
		t.Errorf("/readyz: %s: %s: %v", response.Status, text, err)
	}
}
