package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// inMemory is the way to a handler in this process: no port, no proxy, and answers
// that come as they are written, so that a feed can be followed.
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
	w := &memoryAnswer{header: make(http.Header), pipe: writer, begun: make(chan struct{})}
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

// memoryBody is the body of an answer. Closing it ends the handler, and waits for it.
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

// memoryAnswer takes what a handler writes.
type memoryAnswer struct {
	header http.Header
	pipe   *io.PipeWriter

	once   sync.Once
	begun  chan struct{} // closed when status and sent are set
	status int
	sent   http.Header
}

// serve runs the handler. One that ends in a panic breaks the answer off.
func (w *memoryAnswer) serve(h http.Handler, r *http.Request) {
	defer func() {
		var err error
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler broke off: %v", p)
		}
		w.WriteHeader(http.StatusOK)
		_ = w.pipe.CloseWithError(err)
	}()
	h.ServeHTTP(w, r)
}

func (w *memoryAnswer) Header() http.Header { return w.header }

func (w *memoryAnswer) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *memoryAnswer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// FlushError, SetReadDeadline and SetWriteDeadline are for [http.ResponseController].
// What is written has arrived, and nobody is slow.
func (w *memoryAnswer) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// SetReadDeadline does nothing.
func (w *memoryAnswer) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (w *memoryAnswer) SetWriteDeadline(time.Time) error { return nil }
