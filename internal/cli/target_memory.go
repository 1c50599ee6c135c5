package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// inMemory is a transport to a handler in this process. It needs no port, uses no proxy, and
// streams responses as they are written, so that a feed can be followed.
type inMemory struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (t inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RequestURI, in.RemoteAddr, in.Host = r.URL.RequestURI(), "127.0.0.1:0", "localhost"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	reader, writer := io.Pipe()
	w := &memoryResponse{header: make(http.Header), pipe: writer, begun: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer in.Body.Close()
		w.serve(t.handler, in)
	}()
	body := &memoryBody{PipeReader: reader, cancel: cancel, ended: ended}
	select {
	case <-w.begun:
	case <-ctx.Done():
		body.Close()
		return nil, ctx.Err()
	}
	return &http.Response{Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: -1, Request: r}, nil
}

// memoryBody is the body of a response. Close cancels the handler and waits for it.
type memoryBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	ended  chan struct{}
}

func (b *memoryBody) Close() error {
	b.cancel()
	_ = b.PipeReader.Close()
	<-b.ended
	return nil
}

// memoryResponse is the [http.ResponseWriter] of a handler.
type memoryResponse struct {
	header http.Header
	pipe   *io.PipeWriter

	once   sync.Once
	begun  chan struct{} // closed when status and sent are set
	status int
	sent   http.Header
}

// serve runs the handler. A panic breaks the response off with an error.
func (w *memoryResponse) serve(h http.Handler, r *http.Request) {
	defer func() {
		var err error
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
		w.WriteHeader(http.StatusOK)
		_ = w.pipe.CloseWithError(err)
	}()
	h.ServeHTTP(w, r)
}

func (w *memoryResponse) Header() http.Header { return w.header }

func (w *memoryResponse) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *memoryResponse) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// FlushError sends the header. It implements [http.ResponseController] together with
// SetReadDeadline and SetWriteDeadline. Written data needs no flush: the pipe does not buffer.
func (w *memoryResponse) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// SetReadDeadline does nothing, because the pipe has no slow network.
func (w *memoryResponse) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing, because the pipe has no slow network.
func (w *memoryResponse) SetWriteDeadline(time.Time) error { return nil }
