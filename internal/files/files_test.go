package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/fault"
)

// writerVar is the variable that makes the test binary a process that replaces a file.
const writerVar = "HOLDFAST_FILES_WRITER"

func TestMain(m *testing.M) {
	if name := os.Getenv(writerVar); name != "" {
		replaceForever(name)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// document returns a document in which every byte determines the others.
func document(n int) []byte {
	return bytes.Repeat([]byte{'a' + byte(n%26)}, 100_000+n%26)
}

// replaceForever replaces a file under its lock, and prints each completed replacement.
func replaceForever(name string) {
	for n := 0; ; n++ {
		unlock, err := Lock(name + ".lock")
		if err == nil {
			err = Replace(name, document(n))
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		unlock()
		fmt.Println("done", n)
	}
}

// intact returns an error if a document is incomplete or mixed.
func intact(doc []byte) error {
	if len(doc) < 100_000 || !bytes.Equal(doc, document(int(doc[0]-'a'))) {
		return fmt.Errorf("a document of %d bytes is not intact", len(doc))
	}
	return nil
}

// TestKilledWriterLeavesAWholeFile verifies, with a process that is killed (SIGKILL) twenty times while it
// replaces a file, that the file is intact and is the last one reported or newer; that a concurrent reader
// always sees an intact file; that the lock is free at once; and that at most one temporary file is left.
func TestKilledWriterLeavesAWholeFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "folder", "file")
	if err := Replace(name, document(0)); err != nil {
		t.Fatal(err)
	}
	stop, readers := make(chan struct{}), sync.WaitGroup{}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				doc, there, err := Read(name)
				if err == nil && there {
					err = intact(doc)
				}
				if err != nil || !there {
					t.Errorf("reader got exists %t, error %v", there, err)
					return
				}
			}
		})
	}
	for range 20 {
		reported := killed(t, name, 1+rand.IntN(10))
		unlock, err := Lock(name + ".lock")
		if err != nil {
			t.Fatal(err)
		}
		doc, _, err := Read(name)
		if err == nil {
			err = intact(doc)
		}
		if n := int(doc[0] - 'a'); err != nil || n != reported%26 && n != (reported+1)%26 {
			t.Errorf("document %d was reported, but the file has %d, error %v", reported, n, err)
		}
		unlock()
	}
	close(stop)
	readers.Wait()
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) > 3 {
		t.Errorf("files left: %v, error %v", left, err)
	}
}

// killed runs a writer until it has reported the given number of replacements, kills it, and returns the last
// one reported.
func killed(t *testing.T, name string, after int) (reported int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerVar+"="+name)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "done %d", &reported); err != nil {
			t.Fatalf("unexpected output of the writer: %s", lines.Text())
		}
		if after--; after == 0 {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	return reported
}

// TestLockKeepsOthersOut verifies that of many goroutines that lock a file, one at a time has the lock.
func TestLockKeepsOthersOut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	var inside, sum atomic.Int64 // a file lock does not order memory for Go
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				unlock, err := Lock(name)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d holders are inside the lock, want 1", n)
				}
				sum.Add(1)
				runtime.Gosched() // let another goroutine in if the lock does not exclude it
				inside.Add(-1)
				unlock()
			}
		})
	}
	group.Wait()
	if sum.Load() != 400 {
		t.Errorf("%d holders were inside the lock, want 400", sum.Load())
	}
}

// TestFiles verifies missing files, created files, and files that cannot be read or written.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a", "b", "file")
	if doc, there, err := Read(name); doc != nil || there || err != nil {
		t.Errorf("missing file: got %q, exists %t, error %v", doc, there, err)
	}
	for _, text := range []string{"one", "", "three"} {
		if err := Replace(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if doc, there, err := Read(name); string(doc) != text || !there || err != nil {
			t.Errorf("got %q, exists %t, error %v", doc, there, err)
		}
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("file is readable by others: mode %v, error %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(name)); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("folder is readable by others: mode %v, error %v", info.Mode(), err)
	}
	for range 2 {
		if err := Remove(name); err != nil {
			t.Error(err)
		}
	}
	if _, there, _ := Read(name); there {
		t.Error("file still exists")
	}
	if err := Replace(name, nil); err != nil { // at the path of a folder
		t.Fatal(err)
	}
	_, lock := Lock(filepath.Join(name, "lock"))
	_, _, read := Read(filepath.Join(name, "x"))
	for what, err := range map[string]error{
		"replace": Replace(filepath.Join(name, "x"), nil), "folder": MakeDir(filepath.Join(name, "x")), "lock": lock, "read": read,
	} {
		if fault.CodeOf(err) != fault.Unavailable || errors.Unwrap(err) == nil || strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
