package batch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
)

// ArtifactStore stores the artifacts of batch items: files whose names begin with the item's
// prefix. The artifacts of an item that failed or was cancelled are deleted.
type ArtifactStore interface {
	// Delete deletes every artifact whose name begins with a prefix, which ends with a slash. Delete may be called
	// more than once for a prefix: if there are no such artifacts, it returns nil.
	Delete(ctx context.Context, prefix string) error
	// Put stores an artifact, replacing any artifact with the same name.
	Put(ctx context.Context, name string, r io.Reader) error
	// Open opens an artifact for reading, or returns [fs.ErrNotExist].
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns the names that begin with a prefix, which ends with a slash. The names are sorted.
	List(ctx context.Context, prefix string) ([]string, error)
}

// Artifacts returns a part that gives an engine an artifact store. The engine assigns a prefix to each item of the
// batches that it creates. If an item fails or is cancelled, the engine deletes the artifacts under its prefix. All
// engines on a database must use the same store. An engine can have only one store. If you pass a second store,
// [holdfast.Open] returns [holdfast.ErrConflict]; if you pass a nil store, [holdfast.ErrValidation].
func Artifacts(s ArtifactStore) holdfast.Part { return artifactsPart{s} }

type artifactsPart struct{ store ArtifactStore }

// Register is called by [holdfast.Open].
func (p artifactsPart) Register(_ context.Context, e *holdfast.Engine) error {
	k := maintenanceOf(e)
	if p.store == nil {
		return fault.New(fault.Validation, "batch.Artifacts needs a store, got nil: pass one")
	}
	if k.artifacts != nil {
		return fault.New(fault.Conflict, "an engine can have only one artifact store: pass batch.Artifacts to holdfast.Open only once")
	}
	k.artifacts, k.kinds.Artifacts = p.store, true
	k.remote.DeleteArtifacts = p.store.Delete
	return nil
}

// FileStore returns a store in a folder. If several nodes use the store, they must share the folder. The folder is
// created when the first artifact is stored.
func FileStore(root string) (ArtifactStore, error) {
	root, err := filepath.Abs(root)
	return files{root}, err
}

type files struct{ root string }

// path returns the file of an artifact. A name that leads out of the folder is
// [fault.Validation].
func (f files) path(name string) (string, error) {
	plain := strings.TrimSuffix(name, "/")
	if !fs.ValidPath(plain) || plain == "." || strings.ContainsAny(name, "\\\x00") {
		return "", fault.New(fault.Validation, "invalid artifact name %q: use a relative path without empty, . or .. elements, backslashes or NUL", name)
	}
	return filepath.Join(f.root, filepath.FromSlash(plain)), nil
}

func (f files) Delete(ctx context.Context, prefix string) error {
	if !strings.HasSuffix(prefix, "/") {
		return fault.New(fault.Validation, "a prefix must end with a slash, got %q", prefix)
	}
	at, err := f.path(prefix)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return os.RemoveAll(at)
}

func (f files) Put(ctx context.Context, name string, r io.Reader) (err error) {
	at, err := f.path(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	// The rename makes the write atomic: readers see the whole artifact or the one before.
	tmp, err := os.CreateTemp(filepath.Dir(at), ".put-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = io.Copy(tmp, reader{ctx, r})
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), at)
}

// reader stops when its context ends.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

func (f files) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	at, err := f.path(name)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return os.Open(at)
}

func (f files) List(ctx context.Context, prefix string) (names []string, err error) {
	at, err := f.path(prefix)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(at, func(p string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case e.IsDir() || strings.HasPrefix(e.Name(), ".put-"):
			return nil
		}
		rel, err := filepath.Rel(f.root, p)
		names = append(names, filepath.ToSlash(rel))
		return err
	})
	slices.Sort(names)
	return names, err
}
