package chaos

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// mostMiB is the memory limit of a server under any load.
const mostMiB = 300

// TestMemoryIsBounded verifies that the memory of a server stays bounded while many callers send
// and request as much as they may.
func TestMemoryIsBounded(t *testing.T) {
	testlevel.Long(t)
	t.Setenv("GOGC", "100") // as by default: the runner of the tests sets another value, with which a server uses more memory
	binary := build(t)
	onDatabases(t, testlevel.OneDatabase(t), func(t *testing.T, db string) {
		b := &flooder{rig: newRig(t, binary, db, 1, "1h")}
		b.at = "http://" + b.proxies[0].Server() + "/api/v1/" // not through the proxy, which would copy all data
		b.Client.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
		t.Cleanup(b.CloseIdleConnections)
		t.Run("streams of events", b.streams)
		t.Run("bodies", b.bodies)
		t.Run("pages", b.pages)
		t.Run("slow clients", b.slow)
		t.Run("documents", b.documents)
		t.Run("many values", b.values)
		t.Run("YAML", b.yaml)
		t.Run("streams of large events", b.largeStreams)
	})
}

// flooder sends large and many requests.
type flooder struct {
	*rig
	http.Client
	at string
}

// send sends a request and returns the status and the length of the response.
func (b *flooder) send(ctx context.Context, method, path, kind, body, key string) (status int, size int64, err error) {
	r, err := http.NewRequestWithContext(ctx, method, b.at+path, strings.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set("Content-Type", kind)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := b.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	size, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, size, err
}

// all sends a request from several callers at once, and checks the status and the minimum size of
// the responses. A caller that finds no room asks again, as the response tells it.
func (b *flooder) all(t *testing.T, callers, status int, least int64, method, path, kind, body string, keyed bool) {
	t.Helper()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			key := ""
			if keyed {
				key = fmt.Sprint(t.Name(), path, i)
			}
			got, size, err := b.send(t.Context(), method, path, kind, body, key)
			for got == http.StatusServiceUnavailable && status < 300 { // no room within the longest wait, which a busy machine reaches
				got, size, err = b.send(t.Context(), method, path, kind, body, key)
			}
			if err != nil || got != status || size < least {
				t.Errorf("%s %s: got status %d with %d bytes, error %v, want %d with at least %d", method, path, got, size, err, status, least)
			}
		})
	}
	all.Wait()
	b.within(t)
}

// within checks that the peak memory of the server is within the limit.
func (b *flooder) within(t *testing.T) {
	t.Helper()
	peak := b.peakMiB(t)
	t.Logf("peak memory of the server: %d MiB", peak)
	if peak > mostMiB {
		t.Errorf("the server used %d MiB, want at most %d", peak, mostMiB)
	}
}

const megabyte = 1_000_000

var largeText = `{"text":"` + strings.Repeat("x", megabyte-20) + `"}`

// bodies appends events of 1 MB from several callers at once.
func (b *flooder) bodies(t *testing.T) {
	b.all(t, 8, http.StatusCreated, megabyte-100, "POST", "streams/beside/events", "application/json", `{"events":[{"name":"n","data":`+largeText+`}]}`, true)
}

// pages reads events of 1 MB: 64 callers read the first page at once, and one caller reads all
// pages.
func (b *flooder) pages(t *testing.T) {
	events := testlevel.Pick(0, 5, 1000)
	c, err := client.New(b.urls[0], client.Options{APIKey: b.key})
	if err != nil {
		t.Fatal(err)
	}
	for range events {
		if _, err := c.AppendEvents(t.Context(), "large", wire.Append{Events: []wire.NewEvent{{Name: "n", Data: []byte(largeText)}}}); err != nil {
			t.Fatal(err)
		}
	}
	least := int64(min(events, 8) * (megabyte - 100))
	b.all(t, 64, http.StatusOK, least, "GET", "streams/large/events?limit=1000", "", "", false)
	b.all(t, 8, http.StatusOK, least, "GET", "events?limit=1000", "", "", false)
	seen := 0
	for e, err := range c.ReadStream(t.Context(), "large", client.StreamRange{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Version != int64(seen) {
			t.Fatalf("got version %d after %d events", e.Version, seen)
		}
		seen++
	}
	if seen != events {
		t.Errorf("got %d of %d events", seen, events)
	}
	b.within(t)
}

// slow requests pages from clients that do not read the responses. They must not block other
// clients.
func (b *flooder) slow(t *testing.T) {
	const clients, atOnce = 16, 4
	begun := make(chan error, clients)
	for range clients {
		c, err := net.Dial("tcp", b.proxies[0].Server())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "GET /api/v1/streams/large/events?limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", b.key); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := c.Read(make([]byte, 1))
			begun <- err
		}()
	}
	for range atOnce {
		if err := <-begun; err != nil {
			t.Fatal(err)
		}
	}
	b.all(t, atOnce, http.StatusOK, megabyte, "GET", "streams/large/events?limit=1000", "", "", false)
}

// documents reads one document of 1 MB from many callers at once.
func (b *flooder) documents(t *testing.T) {
	b.all(t, 1, http.StatusOK, 0, "PATCH", "scopes/notes/large", "application/json", largeText, true)
	b.all(t, 64, http.StatusOK, megabyte-100, "GET", "scopes/notes/large", "", "", false)
}

// values sends JSON that takes much more memory decoded than as text.
func (b *flooder) values(t *testing.T) {
	for i, value := range []string{`{"a":1}`, "1"} {
		data := strings.Repeat(value+",", (megabyte-100)/(len(value)+1)) + "1"
		b.all(t, 8, http.StatusCreated, megabyte-100, "POST", fmt.Sprintf("streams/values-%d/events", i), "application/json", `{"events":[{"name":"n","data":{"a":[`+data+`]}}]}`, true)
	}
}

// yaml sends definitions with too many values, and with almost too many.
func (b *flooder) yaml(t *testing.T) {
	for _, text := range []string{"a: [" + strings.Repeat("[],", 300_000) + "]", "a:\n" + strings.Repeat("- b: c\n", 15_000)} {
		b.all(t, 8, http.StatusUnprocessableEntity, 0, "POST", "workflow-definitions", "application/yaml", text, false)
	}
}

// streams follows event streams from a thousand clients and waits until each has received an
// event. The number of database connections must not grow.
func (b *flooder) streams(t *testing.T) {
	const clients = 1000
	b.publish(t, strings.Repeat("x", 200_000)) // clients of events read it first
	before := b.files(t)
	b.followed(t, clients, []string{"events", "feed", "scopes/notes/small"}, func() { b.publish(t, "last") }, func() {
		if n := b.files(t); n > before+clients+20 {
			t.Errorf("server has %d open files and connections with %d clients; without them it had %d", n, clients, before)
		}
	})
}

// largeStreams follows events of 1 MB from many clients at once.
func (b *flooder) largeStreams(t *testing.T) {
	b.followed(t, 64, []string{"feed"}, func() {
		b.bodies(t)
		b.publish(t, "last")
	}, func() {})
}

// publish appends an event and changes a scope, so that each followed stream has a message with
// the text.
func (b *flooder) publish(t *testing.T, text string) {
	t.Helper()
	for path, body := range map[string]string{"POST streams/told/events": `{"events":[{"name":"n","data":{"text":"` + text + `"}}]}`, "PATCH scopes/notes/small": `{"text":"` + text + `"}`} {
		method, path, _ := strings.Cut(path, " ")
		if status, _, err := b.send(t.Context(), method, path, "application/json", body, ""); err != nil || status >= 300 {
			t.Errorf("%s: got status %d, error %v", path, status, err)
		}
	}
}

// followed starts clients that follow streams. It calls begun when all of them follow, and
// received when all have received the message "last".
func (b *flooder) followed(t *testing.T, clients int, paths []string, begun, received func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var follows, sees, ends sync.WaitGroup
	follows.Add(clients)
	sees.Add(clients)
	for i := range clients {
		ends.Go(func() {
			began, saw := sync.OnceFunc(follows.Done), sync.OnceFunc(sees.Done)
			if err := b.follow(ctx, paths[i%len(paths)], began, saw); ctx.Err() == nil {
				t.Errorf("a client was disconnected: %v", err)
			}
			began()
			saw()
		})
	}
	follows.Wait()
	begun()
	sees.Wait()
	received()
	stop()
	ends.Wait()
	b.within(t)
}

// follow reads a stream of events until ctx ends.
func (b *flooder) follow(ctx context.Context, path string, began, saw func()) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.at+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set("Accept", "text/event-stream")
	resp, err := b.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	began()
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "data:") && strings.Contains(line, `{"text":"last"}`) {
			saw()
		}
	}
}

// files returns the number of open files and connections of the server.
func (b *flooder) files(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.servers[0].cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// peakMiB returns the peak memory of the server.
func (b *flooder) peakMiB(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.servers[0].cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Fatal("no VmHWM in /proc")
	return 0
}
