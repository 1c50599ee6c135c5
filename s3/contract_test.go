package s3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
)

// A bucket and a folder of files behave the same as artifact stores.
func TestBothStoresKeepTheContract(t *testing.T) {
	stores := map[string]func(*testing.T) batch.ArtifactStore{
		"files": func(t *testing.T) batch.ArtifactStore {
			s, err := batch.FileStore(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		"s3":           func(t *testing.T) batch.ArtifactStore { return serve(t).open(t, "") },
		"s3 in folder": func(t *testing.T) batch.ArtifactStore { return serve(t).open(t, "/some/folder/") },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			for _, b := range contract {
				t.Run(b.name, func(t *testing.T) { b.test(t, open(t)) })
			}
		})
	}
}

var contract = []struct {
	name string
	test func(*testing.T, batch.ArtifactStore)
}{
	{"what is put is read", putAndRead},
	{"the last one put stays", replaced},
	{"odd names stay as they are", oddNames},
	{"what is missing does not exist", missing},
	{"a list is in order", listed},
	{"a deletion leaves siblings", siblings},
	{"a deletion goes again", deletedAgain},
	{"an artifact that breaks off is not kept", brokenOff},
	{"names that lead elsewhere are refused", refused},
	{"a context that has ended stops", ended},
}

func putAndRead(t *testing.T, s batch.ArtifactStore) {
	for name, size := range map[string]int{"none": 0, "some": 5, "edge": 1 << 20, "more": 1<<20 + 1, "parts": 17<<20 + 7} {
		want := pattern(size)
		// A reader without Seek and without a length.
		if err := s.Put(t.Context(), "a/"+name, io.MultiReader(bytes.NewReader(want))); err != nil {
			t.Fatal(err)
		}
		if got := read(t, s, "a/"+name); got != string(want) {
			t.Errorf("%s: put %d bytes, read %d different bytes", name, size, len(got))
		}
	}
}

func replaced(t *testing.T, s batch.ArtifactStore) {
	put(t, s, "a/b", "a long one")
	put(t, s, "a/b", "short")
	if got := read(t, s, "a/b"); got != "short" {
		t.Errorf("got %q, want short", got)
	}
}

func oddNames(t *testing.T, s batch.ArtifactStore) {
	names := []string{
		"a/ space in it ", "a/ünïcödé/日本語", "a/100%", "a/%2F%20", "a/x+y", "a/q?x=1&y=2", "a/#h;v=1",
		`a/<"'&>`, "a/=62:*", "a/~.-_", "a/...", "a/.hidden",
	}
	for _, name := range names {
		put(t, s, name, name)
	}
	for _, name := range names {
		if got := read(t, s, name); got != name {
			t.Errorf("%q contains %q", name, got)
		}
	}
	slices.Sort(names)
	wantList(t, s, "a/", names...)
	if err := s.Delete(t.Context(), "a/ünïcödé/"); err != nil {
		t.Error(err)
	}
	wantList(t, s, "a/", slices.DeleteFunc(names, func(n string) bool { return strings.Contains(n, "日") })...)
	if err := s.Delete(t.Context(), "a/"); err != nil {
		t.Error(err)
	}
	wantList(t, s, "a/")
}

func missing(t *testing.T, s batch.ArtifactStore) {
	put(t, s, "a/bc", "x")
	for _, name := range []string{"a/b", "nothing", "a/bcd"} {
		if _, err := s.Open(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want fs.ErrNotExist", name, err)
		}
	}
}

func listed(t *testing.T, s batch.ArtifactStore) {
	for _, name := range []string{"a/z", "a/b/2", "a/b/1", "a/B", "b/1"} {
		put(t, s, name, "x")
	}
	wantList(t, s, "a/", "a/B", "a/b/1", "a/b/2", "a/z")
	wantList(t, s, "a/b/", "a/b/1", "a/b/2")
	wantList(t, s, "c/")
}

func siblings(t *testing.T, s batch.ArtifactStore) {
	for _, name := range []string{"a/b/1", "a/b/c/2", "a/bc/1", "a/b.txt", "a/B/1", "b/1", "c/a/b/1"} {
		put(t, s, name, "x")
	}
	if err := s.Delete(t.Context(), "a/b/"); err != nil {
		t.Fatal(err)
	}
	wantList(t, s, "a/", "a/B/1", "a/b.txt", "a/bc/1")
	wantList(t, s, "b/", "b/1")
	wantList(t, s, "c/", "c/a/b/1")
}

func deletedAgain(t *testing.T, s batch.ArtifactStore) {
	put(t, s, "a/b/1", "x")
	for range 3 {
		if err := s.Delete(t.Context(), "a/b/"); err != nil {
			t.Error(err)
		}
		wantList(t, s, "a/b/")
	}
	put(t, s, "a/b/1", "again")
	if got := read(t, s, "a/b/1"); got != "again" {
		t.Errorf("got %q, want again", got)
	}
}

func brokenOff(t *testing.T, s batch.ArtifactStore) {
	put(t, s, "a/old", "old")
	for _, cause := range []error{errors.New("no more"), io.ErrUnexpectedEOF} {
		for _, size := range []int{0, 10, 1 << 20, 2 << 20, 16 << 20} {
			for _, name := range []string{"a/old", "a/new"} {
				half := io.MultiReader(bytes.NewReader(pattern(size)), iotest.ErrReader(cause))
				// The error is returned with the last bytes, not after them.
				if err := s.Put(t.Context(), name, iotest.DataErrReader(half)); !errors.Is(err, cause) {
					t.Errorf("%s, broken off after %d bytes with %v: got %v", name, size, cause, err)
				}
			}
		}
	}
	wantList(t, s, "a/", "a/old")
	if got := read(t, s, "a/old"); got != "old" {
		t.Errorf("got %d bytes, want the old content", len(got))
	}
}

func refused(t *testing.T, s batch.ArtifactStore) {
	put(t, s, "a/b", "x")
	invalid := func(what, name string, err error) {
		t.Helper()
		if !errors.Is(err, fault.Of(fault.Validation)) {
			t.Errorf("%s %q: %v", what, name, err)
		}
	}
	for _, name := range []string{"", ".", "/", "..", "../a", "/a", "a/../../b", `a\b`, "a\x00b", "a\xff"} {
		invalid("put", name, s.Put(t.Context(), name, strings.NewReader("x")))
		_, err := s.Open(t.Context(), name)
		invalid("open", name, err)
		_, err = s.List(t.Context(), name)
		invalid("list", name, err)
	}
	for _, prefix := range []string{"", "a", "a/b", "/", "./", "../", "../a/", "/a/", `a\/`, "a\x00/"} {
		invalid("delete", prefix, s.Delete(t.Context(), prefix))
	}
	wantList(t, s, "a/", "a/b")
}

func ended(t *testing.T, s batch.ArtifactStore) {
	put(t, s, "a/b", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ctx, "a/c", strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("put: got %v, want context.Canceled", err)
	}
	if _, err := s.List(ctx, "a/"); !errors.Is(err, context.Canceled) {
		t.Errorf("list: got %v, want context.Canceled", err)
	}
	if err := s.Delete(ctx, "a/"); !errors.Is(err, context.Canceled) {
		t.Errorf("delete: got %v, want context.Canceled", err)
	}
	wantList(t, s, "a/", "a/b")
}

// pattern returns n bytes with a period that is not a divisor of the part size.
func pattern(n int) []byte {
	block := make([]byte, 1<<16+1)
	for i := range block {
		block[i] = byte(i ^ i>>8)
	}
	return bytes.Repeat(block, n/len(block)+1)[:n]
}

func put(t *testing.T, s batch.ArtifactStore, name, text string) {
	t.Helper()
	if err := s.Put(t.Context(), name, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s batch.ArtifactStore, name string) string {
	t.Helper()
	r, err := s.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(got)
}

func wantList(t *testing.T, s batch.ArtifactStore, prefix string, want ...string) {
	t.Helper()
	if got, err := s.List(t.Context(), prefix); err != nil || !slices.Equal(got, want) {
		t.Errorf("list of %s: got %q, %v, want %q", prefix, got, err, want)
	}
}
