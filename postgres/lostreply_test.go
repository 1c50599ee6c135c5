package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// breaker stands between an engine and its server and breaks one connection at
// a chosen moment: when the client has sent the marker.
type breaker struct {
	listener net.Listener
	server   string
	wg       sync.WaitGroup

	marker atomic.Pointer[[]byte]
	// deliver says whether the server still gets what held the marker. Its
	// answer is awaited, so that it has done what it was asked to, and thrown
	// away.
	deliver atomic.Bool
	broken  atomic.Int32
}

// newBreaker listens for the test, and returns itself and the URL through it.
func newBreaker(t *testing.T, base string) (*breaker, string) {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	b := &breaker{server: u.Host}
	if b.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	b.wg.Go(b.accept)
	t.Cleanup(func() { b.listener.Close(); b.wg.Wait() })
	u.Host = b.listener.Addr().String()
	return b, u.String()
}

func (b *breaker) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", b.server)
		if err != nil {
			client.Close()
			continue
		}
		b.wg.Go(func() { b.serve(client, server) })
	}
}

// serve copies both ways, and swallows the answer to the marker.
func (b *breaker) serve(client, server net.Conn) {
	var swallow atomic.Bool
	answered := make(chan struct{})
	b.wg.Go(func() {
		defer close(answered)
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || swallow.Load() {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	defer server.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if marker := b.marker.Load(); marker != nil && bytes.Contains(buffer[:n], *marker) {
			b.marker.Store(nil)
			b.broken.Add(1)
			swallow.Store(true)
			if b.deliver.Load() {
				_, _ = server.Write(buffer[:n])
				<-answered
			}
			client.Close()
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// arm makes the next message with the marker the last one.
func (b *breaker) arm(marker string, deliver bool) {
	text := []byte(marker)
	b.deliver.Store(deliver)
	b.marker.Store(&text)
}

// Verifies that a write whose answer is lost is told to be of unknown outcome,
// whether the server had it or not, by itself or at the COMMIT of an update,
// and is never repeated: it is there once if the server had it, and not
// otherwise. The engine works on.
func TestALostAnswerIsAnUnknownOutcomeAndNeverRepeated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, marker string
		deliver      bool
		events       int
		write        func(context.Context, *holdfast.Engine) error
	}{
		{"a command that arrived", "precious", true, 1, appendOnce},
		{"a command that did not arrive", "precious", false, 0, appendOnce},
		{"a commit that arrived", "commit\x00", true, 1, updateOnce},
		{"a commit that did not arrive", "commit\x00", false, 0, updateOnce},
	} {
		for _, pooled := range []string{"cache_statement", "cache_describe", "exec"} {
			t.Run(c.name+", "+pooled, func(t *testing.T) {
				t.Parallel()
				direct := fresh(t)
				b, through := newBreaker(t, direct)
				hf := openEngine(t, postgres.URL(as(t, through, "", "", "default_query_exec_mode="+pooled)))
				for range 2 { // so that the stream exists and everything is prepared
					mustAppend(t, hf, "s", stream.Any)
				}
				b.arm(c.marker, c.deliver)
				if err := c.write(t.Context(), hf); !errors.Is(err, holdfast.ErrOutcomeUnknown) {
					t.Errorf("the error is %v", err)
				}
				if b.broken.Load() != 1 {
					t.Fatalf("%d connections were broken", b.broken.Load())
				}
				if names := wantGapless(t, hf, "s"); len(names)-2 != c.events {
					t.Errorf("it is there %d times, not %d", len(names)-2, c.events)
				}
				mustAppend(t, hf, "s", stream.Any)
			})
		}
	}
}

func appendOnce(ctx context.Context, hf *holdfast.Engine) error {
	_, err := stream.Append(ctx, hf, "s", stream.Any, event("precious"))
	return err
}

func updateOnce(ctx context.Context, hf *holdfast.Engine) error {
	return hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, "s", stream.Any, event("precious"))
		return err
	})
}

// Verifies that an update whose connection breaks before its COMMIT is run
// again, and is there once.
func TestAnUpdateThatBreaksBeforeItsCommitRunsAgain(t *testing.T) {
	t.Parallel()
	for _, deliver := range []bool{true, false} {
		direct := fresh(t)
		b, through := newBreaker(t, direct)
		hf := openEngine(t, postgres.URL(through))
		mustAppend(t, hf, "warm", stream.Any)
		b.arm("precious", deliver)
		if err := updateOnce(t.Context(), hf); err != nil {
			t.Errorf("delivered %v: %v", deliver, err)
		}
		if names := wantGapless(t, hf, "s"); len(names) != 1 || b.broken.Load() != 1 {
			t.Errorf("delivered %v: it is there %d times after %d breaks", deliver, len(names), b.broken.Load())
		}
	}
}

// Verifies that a read whose answer is lost is simply asked again.
func TestAReadWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	direct := fresh(t)
	b, through := newBreaker(t, direct)
	hf := openEngine(t, postgres.URL(through))
	mustAppend(t, hf, "precious", stream.None)
	b.arm("precious", true)
	all, err := stream.Read(t.Context(), hf, "precious", 0, 0)
	if err != nil || len(all) != 1 || b.broken.Load() != 1 {
		t.Errorf("%d events after %d breaks: %v", len(all), b.broken.Load(), err)
	}
}
