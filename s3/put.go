package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

const (
	// partSize is the size of a part of a large artifact, which is buffered in memory. A smaller artifact is sent in
	// one request.
	partSize = 16 << 20
	// maxParts is the number of parts that a service accepts, so an artifact can have at most 156 GiB.
	maxParts = 10000
	// small is the size below which an artifact needs no buffer of a whole part.
	small = 1 << 20
	// abortTimeout limits the removal of the parts of an upload that failed.
	abortTimeout = 10 * time.Second
)

// Put stores an artifact once all of it has arrived. Until then the previous artifact with the name stays. After an error
// with the code [fault.Unavailable], or the end of ctx, the previous or the new artifact is stored, because the response of the service may
// have been lost, but never a part of one. After other errors it is the previous one.
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
		return s.putWhole(ctx, key, head.Bytes())
	case nil:
	default:
		return err
	}
	part := make([]byte, partSize)
	n, end, err := fill(part, io.MultiReader(&head, r))
	if err != nil {
		return err
	}
	if end {
		return s.putWhole(ctx, key, part[:n])
	}
	return s.putParts(ctx, key, part, r)
}

// fill reads until the buffer is full or the reader ends, which it reports.
func fill(buffer []byte, r io.Reader) (n int, end bool, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = r.Read(buffer[n:])
		n += more
	}
	if err == io.EOF {
		return n, true, nil
	}
	return n, false, err
}

// putWhole sends an artifact in one request.
func (s *store) putWhole(ctx context.Context, key string, b []byte) error {
	return s.client.call(ctx, request{method: http.MethodPut, key: key, header: contentType(), body: b}, nil)
}

// contentType returns the header for the content of an object, of which nothing is known. Without it, services use types of
// their own.
func contentType() http.Header { return http.Header{"Content-Type": {"application/octet-stream"}} }

// upload is an object that is sent in parts.
type upload struct {
	client *client
	key    string
	id     string
	parts  []part
}

type part struct {
	PartNumber int
	ETag       string
}

// putParts sends an artifact in parts, of which buffer has the first. If it fails, the parts are removed, even if ctx is
// cancelled.
func (s *store) putParts(ctx context.Context, key string, buffer []byte, r io.Reader) error {
	u := upload{client: s.client, key: key}
	if err := u.begin(ctx); err != nil {
		return err
	}
	err := u.send(ctx, buffer, r)
	if err == nil {
		err = u.complete(ctx)
	}
	if err != nil {
		abort, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		// If this fails, a rule of the bucket removes the parts.
		_ = u.client.call(abort, u.request(http.MethodDelete, nil, nil), nil)
	}
	return err
}

// request returns a request about the upload.
func (u *upload) request(method string, query url.Values, body []byte) request {
	if query == nil {
		query = make(url.Values)
	}
	query.Set("uploadId", u.id)
	return request{method: method, key: u.key, query: query, body: body}
}

func (u *upload) begin(ctx context.Context) error {
	var begun struct {
		XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
		UploadID string   `xml:"UploadId"`
	}
	err := u.client.call(ctx, request{method: http.MethodPost, key: u.key, query: url.Values{"uploads": {""}}, header: contentType()}, &begun)
	if err == nil && begun.UploadID == "" {
		err = errors.New("the service began an upload without an id")
	}
	u.id = begun.UploadID
	return err
}

// send sends the part in the buffer, and then the rest of r in parts of the same size.
func (u *upload) send(ctx context.Context, buffer []byte, r io.Reader) error {
	for n, end := len(buffer), false; ; {
		if n > 0 {
			if err := u.sendPart(ctx, buffer[:n]); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
		var err error
		if n, end, err = fill(buffer, r); err != nil {
			return err
		}
	}
}

func (u *upload) sendPart(ctx context.Context, b []byte) error {
	number := len(u.parts) + 1
	if number > maxParts {
		return fault.New(fault.Validation, "an artifact must have at most %d bytes", maxParts*partSize)
	}
	got, err := u.client.send(ctx, u.request(http.MethodPut, url.Values{"partNumber": {strconv.Itoa(number)}}, b))
	if err != nil {
		return err
	}
	stored := part{PartNumber: number, ETag: got.Header.Get("ETag")}
	if err := got.Body.Close(); err != nil {
		return err
	}
	if stored.ETag == "" {
		return errors.New("the service did not confirm a part of the upload")
	}
	u.parts = append(u.parts, stored)
	return nil
}

func (u *upload) complete(ctx context.Context) error {
	list, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []part
	}{Part: u.parts})
	if err != nil {
		return err
	}
	var completed struct {
		XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
	}
	return u.client.call(ctx, u.request(http.MethodPost, nil, list), &completed)
}

// source wraps the reader of an artifact. It fails when its context is cancelled, and stores its
// error, so that an error is never taken for the end, nor for an error of the service.
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
