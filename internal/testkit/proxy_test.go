package testkit

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestFates verifies, for each fate of a request, what the server receives and what the client
// observes.
func TestFates(t *testing.T) {
	for fate, want := range map[Action]struct{ got, observed string }{
		Pass:           {"whole", "answered"},
		Cut:            {"nothing", "cut"},
		CutHalf:        {"half", "cut"},
		LoseResponse:   {"whole", "cut"},
		Hang:           {"nothing", "silence"},
		DeliverAndHang: {"whole", "silence"},
	} {
		t.Run(fmt.Sprint(int(fate)), func(t *testing.T) {
			got := make(chan string, 2)
			server := serveLines(t, got)
			_, through := NewProxy(t, "tcp://"+server, func([]byte) Action { return fate }, nil)
			client, err := net.Dial("tcp", strings.TrimPrefix(through, "tcp://"))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			fmt.Fprint(client, "abc\n")
			if observed := observe(client, time.Second); observed != want.observed {
				t.Errorf("client observes %s, want %s", observed, want.observed)
			}
			client.Close()
			if fate == Hang {
				got <- "" // the server never sees that the client is gone
			}
			if all := map[string]string{"": "nothing", "ab": "half", "abc\n": "whole"}[<-got]; all != want.got {
				t.Errorf("server gets %s, want %s", all, want.got)
			}
		})
	}
}

// serveLines responds to the first line of each connection and sends the received data to got.
func serveLines(t *testing.T, got chan<- string) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var all bytes.Buffer
				for b := make([]byte, 8); !bytes.HasSuffix(all.Bytes(), []byte("\n")); {
					n, err := c.Read(b)
					all.Write(b[:n])
					if err != nil {
						break
					}
				}
				got <- all.String()
				fmt.Fprint(c, "answer")
				_, _ = c.Read(make([]byte, 1))
			}()
		}
	}()
	return l.Addr().String()
}

// observe returns what a client observes within a time: a response, silence or a closed
// connection.
func observe(c net.Conn, within time.Duration) string {
	_ = c.SetReadDeadline(time.Now().Add(within))
	n, err := c.Read(make([]byte, 8))
	switch e, ok := err.(net.Error); {
	case n > 0:
		return "answered"
	case ok && e.Timeout():
		return "silence"
	}
	return "cut"
}

// TestAServerMayMoveAndLoseAnswers verifies that a proxy uses the current address of its
// server, that responses have fates too, and that hung connections stay silent.
func TestAServerMayMoveAndLoseAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	defer server.Close()
	var lose atomic.Bool
	p, through := NewProxy(t, "http://", nil, func([]byte) Action {
		if lose.Load() {
			return Cut
		}
		return Pass
	})
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Second}
	defer client.CloseIdleConnections()
	get := func() string {
		resp, err := client.Get(through)
		if err != nil {
			return "failed"
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return string(text)
	}
	results := []string{get()}
	p.SetServer(server.Listener.Addr().String())
	results = append(results, get())
	lose.Store(true)
	results = append(results, get())
	lose.Store(false)
	results = append(results, get())
	p.HangAll()
	results = append(results, get())
	if got := strings.Join(results, " "); got != "failed here failed here failed" {
		t.Errorf("got results %s", got)
	}
}
