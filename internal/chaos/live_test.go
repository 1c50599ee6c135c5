package chaos

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// TestLiveOutlivesKills verifies that a client of GET live whose server is killed with SIGKILL and started again is told each event
// once: those of before, those that another server wrote meanwhile, and those of after.
func TestLiveOutlivesKills(t *testing.T) {
	testlevel.Long(t)
	binary := command(t)
	eachDatabase(t, func(t *testing.T, db string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		r := newRig(t, binary, db, 2, "1s")
		watching, err := client.New(r.urls[0], client.Options{APIKey: r.key})
		if err != nil {
			t.Fatal(err)
		}
		writing, err := client.New(r.urls[1], client.Options{APIKey: r.key})
		if err != nil {
			t.Fatal(err)
		}
		const kills, events = 3, 5
		written, told := 0, make(map[string]int)
		write := func() {
			for range events {
				if _, err := writing.AppendEvents(ctx, fmt.Sprint("s", written%3), wire.Append{Events: []wire.NewEvent{{Name: "paid"}}}); err != nil {
					t.Fatal(err)
				}
				written++
			}
		}
		messages, last := 0, -1
		for m, err := range watching.FollowLive(ctx, "", "streams") {
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Folded) > 0 || m.Reset {
				t.Fatalf("got %+v, want all changes", m)
			}
			for _, c := range m.Changes {
				told[fmt.Sprint(c.Subject, " ", c.Version)]++
			}
			messages++
			switch {
			case messages%4 != 0 && messages < 4*kills:
				write()
			case messages <= 4*kills:
				r.servers[0].kill()
				write()
				if err := r.servers[0].start(); err != nil {
					t.Fatal(err)
				}
				write()
			case len(told) == written && last < 0:
				last = messages + 1 // the next message would repeat events, if any does
			}
			if messages == last {
				break
			}
		}
		if len(told) != written || written < 8*events*kills/2 {
			t.Errorf("%d of %d events were told", len(told), written)
		}
		for name, n := range told {
			if n != 1 {
				t.Errorf("%s was told %d times", name, n)
			}
		}
	})
}
