package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
)

var _ batch.ArtifactStore = (*store)(nil)

// store is safe for concurrent use.
type store struct {
	client *client
	folder string // empty, or ends with a slash
}

// valid reports whether a name is a relative path without .. elements, backslashes and NUL.
func valid(name string) bool {
	clean := path.Clean(name)
	return fs.ValidPath(clean) && clean != "." && !strings.ContainsAny(name, "\\\x00") &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

// key returns the object name in the bucket. A slash at the end of a prefix stays.
func (s *store) key(name string) (string, error) {
	if !valid(name) {
		return "", fault.New(fault.Validation, "invalid artifact name %q: use a relative path without .. elements, backslashes or NUL", name)
	}
	key := s.folder + path.Clean(name)
	if strings.HasSuffix(name, "/") {
		key += "/"
	}
	return key, nil
}

// List lists artifacts. It omits the empty objects that some tools create for folders.
func (s *store) List(ctx context.Context, prefix string) ([]string, error) {
	at, err := s.key(prefix)
	if err != nil {
		return nil, err
	}
	keys, err := s.keys(ctx, at)
	if err != nil {
		return nil, failed(ctx, "list", prefix, err)
	}
	var names []string
	for _, key := range keys {
		if !strings.HasSuffix(key, "/") {
			names = append(names, strings.TrimPrefix(key, s.folder))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Delete deletes all artifacts with the prefix. A failure to delete one does not stop the others.
func (s *store) Delete(ctx context.Context, prefix string) error {
	if !strings.HasSuffix(prefix, "/") {
		return fault.New(fault.Validation, "a prefix must end with a slash, got %q", prefix)
	}
	at, err := s.key(prefix)
	if err != nil {
		return err
	}
	keys, err := s.keys(ctx, at)
	if err != nil {
		return failed(ctx, "delete", prefix, err)
	}
	left := s.remove(ctx, keys)
	if err := ctx.Err(); err != nil && len(left) > 0 {
		return failed(ctx, "delete", prefix, err)
	}
	return s.notDeleted(ctx, left)
}

// notDeleted returns the error of a deletion that left objects. It names the first few.
func (s *store) notDeleted(ctx context.Context, left map[string]error) error {
	const few = 10
	var errs []error
	for i, key := range slices.Sorted(maps.Keys(left)) {
		if i == few {
			errs = append(errs, fmt.Errorf("and %d more", len(left)-few))
			break
		}
		errs = append(errs, failed(ctx, "delete", strings.TrimPrefix(key, s.folder), left[key]))
	}
	return errors.Join(errs...)
}

// Open opens an artifact. It requests the object at once, so that a missing object is an error
// here and not in the first Read.
func (s *store) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	key, err := s.key(name)
	if err != nil {
		return nil, err
	}
	r, err := s.client.send(ctx, request{method: http.MethodGet, key: key})
	if err != nil {
		return nil, failed(ctx, "open", name, err)
	}
	return body{ctx, name, r.Body}, nil
}

// body reads an object. Cancelling the context of Open makes Read fail.
type body struct {
	ctx  context.Context
	name string
	io.ReadCloser
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = failed(b.ctx, "read", b.name, err)
	}
	return n, err
}
