package chaos

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// Verifies that a server whose callers each ask for pages of a thousand events of 1 MB answers them within 300 MiB of memory,
// and that who follows the pages gets all.
func TestLargePagesTakeLittleMemory(t *testing.T) {
	testlevel.Long(t)
	binary := build(t)
	eachDatabase(t, func(t *testing.T, db string) { largePages(t, newRig(t, binary, db, 1, "1h")) })
}

func largePages(t *testing.T, r *rig) {
	const callers, most = 4, 300
	events := testlevel.Pick(0, 64, 1000)
	c, err := client.New(r.urls[0], client.Options{Key: r.key})
	if err != nil {
		t.Fatal(err)
	}
	data := []byte(`{"text":"` + strings.Repeat("x", 1_000_000) + `"}`)
	for range events {
		if _, err := c.AppendEvents(t.Context(), "large", wire.Append{Events: []wire.NewEvent{{Name: "n", Data: data}}}); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			seen := 0
			for p := (client.Page{Limit: 1000}); ; {
				l, err := c.ReadStreamPage(t.Context(), "large", client.StreamRange{}, p)
				if err != nil {
					t.Error(err)
					return
				}
				seen += len(l.Items)
				if l.Next == nil {
					break
				}
				p.Cursor = *l.Next
			}
			if seen != events {
				t.Errorf("a caller was shown %d of %d events", seen, events)
			}
		})
	}
	all.Wait()
	peak := peakMiB(t, r.servers[0].cmd.Process.Pid)
	t.Logf("%d events of 1 MB, %d callers: the server's memory was %d MiB at the most", events, callers, peak)
	if peak > most {
		t.Errorf("the server took %d MiB, and %d is the most", peak, most)
	}
}

// peakMiB is how much memory a process had at the most.
func peakMiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
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
