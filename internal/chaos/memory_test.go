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

// mostMiB is how much memory a server takes at the most, whatever it is asked for, and by however many.
const mostMiB = 300

// Verifies that the memory of a server stays bounded under callers that each send or ask for as much as they may, all at once.
func TestMemoryIsBounded(t *testing.T) {
	testlevel.Long(t)
	binary := build(t)
	eachDatabase(t, func(t *testing.T, db string) {
		b := &bomber{rig: newRig(t, binary, db, 1, "1h")}
		b.at = "http://" + b.proxies[0].Server() + "/api/v1/" // not through the proxy, which would copy it all
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

// bomber asks for much.
type bomber struct {
	*rig
	http.Client
	at string
}

// ask sends a request, and returns its answer's status and length.
func (b *bomber) ask(ctx context.Context, method, path, kind, body, key string) (status int, size int64, err error) {
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

// all has callers ask at once, and wants their answers to have a status and a size at least.
func (b *bomber) all(t *testing.T, callers, status int, least int64, method, path, kind, body string, keyed bool) {
	t.Helper()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			key := ""
			if keyed {
				key = fmt.Sprint(t.Name(), path, i)
			}
			got, size, err := b.ask(t.Context(), method, path, kind, body, key)
			if err != nil || got != status || size < least {
				t.Errorf("%s %s: %d with %d bytes, %v; wanted %d with %d", method, path, got, size, err, status, least)
			}
		})
	}
	all.Wait()
	b.within(t)
}

// within wants the server to have taken no more than it may until now.
func (b *bomber) within(t *testing.T) {
	t.Helper()
	peak := b.peakMiB(t)
	t.Logf("the server's memory was %d MiB at the most", peak)
	if peak > mostMiB {
		t.Errorf("the server took %d MiB, and %d is the most", peak, mostMiB)
	}
}

const megabyte = 1_000_000

var largeText = `{"text":"` + strings.Repeat("x", megabyte-20) + `"}`

// bodies appends events of 1 MB, many at once.
func (b *bomber) bodies(t *testing.T) {
	b.all(t, 8, http.StatusCreated, megabyte-100, "POST", "streams/beside/events", "application/json", `{"events":[{"name":"n","data":`+largeText+`}]}`, true)
}

// pages reads events of 1 MB: one caller all of them, page by page, and 64 at once the first page.
func (b *bomber) pages(t *testing.T) {
	events := testlevel.Pick(0, 5, 1000)
	c, err := client.New(b.urls[0], client.Options{Key: b.key})
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
			t.Fatalf("version %d came after %d events", e.Version, seen)
		}
		seen++
	}
	if seen != events {
		t.Errorf("%d of %d events were shown", seen, events)
	}
	b.within(t)
}

// slow has clients ask for pages and not read them. They keep nobody from a page.
func (b *bomber) slow(t *testing.T) {
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

// documents reads one document of 1 MB, many at once.
func (b *bomber) documents(t *testing.T) {
	b.all(t, 1, http.StatusOK, 0, "PATCH", "scopes/notes/large", "application/json", largeText, true)
	b.all(t, 64, http.StatusOK, megabyte-100, "GET", "scopes/notes/large", "", "", false)
}

// values sends JSON that takes much more memory as values than as text.
func (b *bomber) values(t *testing.T) {
	for i, value := range []string{`{"a":1}`, "1"} {
		data := strings.Repeat(value+",", (megabyte-100)/(len(value)+1)) + "1"
		b.all(t, 8, http.StatusCreated, megabyte-100, "POST", fmt.Sprintf("streams/values-%d/events", i), "application/json", `{"events":[{"name":"n","data":{"a":[`+data+`]}}]}`, true)
	}
}

// yaml sends definitions with too many values, and with almost as many.
func (b *bomber) yaml(t *testing.T) {
	for _, text := range []string{"a: [" + strings.Repeat("[],", 300_000) + "]", "a:\n" + strings.Repeat("- b: c\n", 15_000)} {
		b.all(t, 8, http.StatusUnprocessableEntity, 0, "POST", "workflow-definitions", "application/yaml", text, false)
	}
}

// streams has a thousand clients follow what happens, and waits until each was told of an event. The connections to the database
// are as many as before.
func (b *bomber) streams(t *testing.T) {
	const clients = 1000
	b.tell(t, strings.Repeat("x", 200_000)) // which clients of events read first
	before := b.files(t)
	b.followed(t, clients, []string{"events", "feed", "scopes/notes/small"}, func() { b.tell(t, "last") }, func() {
		if n := b.files(t); n > before+clients+20 {
			t.Errorf("the server has %d files and connections open, with %d clients; before them it had %d", n, clients, before)
		}
	})
}

// largeStreams has clients follow events of 1 MB, at once.
func (b *bomber) largeStreams(t *testing.T) {
	b.followed(t, 64, []string{"feed"}, func() {
		b.bodies(t)
		b.tell(t, "last")
	}, func() {})
}

// tell changes what clients follow, so that each stream has a message with the text.
func (b *bomber) tell(t *testing.T, text string) {
	t.Helper()
	for path, body := range map[string]string{"POST streams/told/events": `{"events":[{"name":"n","data":{"text":"` + text + `"}}]}`, "PATCH scopes/notes/small": `{"text":"` + text + `"}`} {
		method, path, _ := strings.Cut(path, " ")
		if status, _, err := b.ask(t.Context(), method, path, "application/json", body, ""); err != nil || status >= 300 {
			t.Errorf("%s: %d, %v", path, status, err)
		}
	}
}

// followed has clients follow, calls begun when all do, and told when all have seen what that says last.
func (b *bomber) followed(t *testing.T, clients int, paths []string, begun, told func()) {
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
				t.Errorf("a client was cut off: %v", err)
			}
			began()
			saw()
		})
	}
	follows.Wait()
	begun()
	sees.Wait()
	told()
	stop()
	ends.Wait()
	b.within(t)
}

// follow reads a stream of events until ctx ends.
func (b *bomber) follow(ctx context.Context, path string, began, saw func()) error {
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

// files is how many files and connections the server has open.
func (b *bomber) files(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.servers[0].cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// peakMiB is how much memory the server had at the most.
func (b *bomber) peakMiB(t *testing.T) int {
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
