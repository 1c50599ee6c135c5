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
	// partSize is how much of a big artifact is in memory at a time. A service takes 10000
	// parts, so that the biggest artifact has 156 GiB.
	partSize = 16 << 20
	// small is up to which size an artifact goes in one request, without a part's memory.
	small = 1 << 20
)

// Put keeps the artifact when all of it has arrived. Until then, and if it fails, what had
// the name is still there.
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

// putSmall sends the sum of what it puts along with it. The library would sign it as a
// stream, which for an empty artifact has no length: services refuse that.
func (s *store) putSmall(ctx context.Context, key string, b []byte) error {
	sum := sha256.Sum256(b)
	_, err := s.client.PutObject(ctx, s.bucket, key, bytes.NewReader(b), int64(len(b)), "", hex.EncodeToString(sum[:]),
		minio.PutObjectOptions{DisableContentSha256: true})
	return err
}

// source is what an artifact is read from. It ends with its context, and an error of it is
// never taken for the end: the library ends an object at an [io.ErrUnexpectedEOF], and
// passes over an error that comes with the last byte of a part.
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
	return n, fmt.Errorf("read the artifact: %w", s.err)
}
