package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"
)

const (
	// partSize is the size of a part of a large artifact, which is buffered in memory. A service
	// accepts 10000 parts, so an artifact can have at most 156 GiB.
	partSize = 16 << 20
	// small is the size below which an artifact is sent in one request, without the buffer of a
	// part.
	small = 1 << 20
)

// Put stores an artifact once all of it has arrived. Until then, and if it fails, the previous
// artifact with the name stays.
func (s *store) Put(ctx context.Context, name string, r io.Reader) error {
	key, err := s.key(name)
	if err != nil {
		return err
	}
	src := &source{ctx: ctx, r: r}
	err = s.put(ctx, key, src)
	if src.err != nil {
		return fmt.Errorf("put %q: %w", name, src.err)
	}
	return failed(ctx, "put", name, err)
}

func (s *store) put(ctx context.Context, key string, r io.Reader) error {
	var head bytes.Buffer
	switch _, err := io.CopyN(&head, r, small); err {
	case io.EOF:
		return s.putSmall(ctx, key, head.Bytes())
	case nil:
		_, err := s.client.Client.PutObject(ctx, s.bucket, key, io.MultiReader(&head, r), -1, minio.PutObjectOptions{PartSize: partSize})
		return err
	default:
		return err
	}
}

// putSmall sends the checksum of the artifact in the request. The library would sign the body
// as a stream, which has no length for an empty artifact: services refuse that.
func (s *store) putSmall(ctx context.Context, key string, b []byte) error {
	sum := sha256.Sum256(b)
	_, err := s.client.PutObject(ctx, s.bucket, key, bytes.NewReader(b), int64(len(b)), "", hex.EncodeToString(sum[:]),
		minio.PutObjectOptions{DisableContentSha256: true})
	return err
}

// source wraps the reader of an artifact. It fails when its context is cancelled, and stores its
// error, so that an error is never taken for the end: the library ends an object at an
// [io.ErrUnexpectedEOF], and ignores an error that comes with the last byte of a part.
type source struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (n int, err error) {
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	if s.err == nil {
		n, err = s.r.Read(p)
		if err == nil || err == io.EOF {
			return n, err
		}
		s.err = err
	}
	return n, fmt.Errorf("cannot read the artifact: %w", s.err)
}
