package reactions_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
)

// TestEachWorkspaceHasItsTurn verifies that every workspace gets its turn, however much
// is due in one of them: a take gets as much from each, due notices of each are
// collected, and a round that cannot name all workspaces continues with the others.
func TestEachWorkspaceHasItsTurn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		const much, others = 50, 40
		names := []string{"r", "q"}
		var spaces []string
		for i := range others {
			spaces = append(spaces, fmt.Sprintf("w%03d", i))
		}
		for _, w := range append([]string{"big"}, spaces...) {
			ctx := store.InWorkspace(t.Context(), w)
			for _, name := range names {
				if _, err := reactions.Register(ctx, engine.Of(hf), define(name, "")); err != nil {
					t.Fatal(err)
				}
			}
			n := 1
			if w == "big" {
				n = much
			}
			for i := range n {
				if _, err := stream.Append(ctx, hf, fmt.Sprint("s", i), stream.Any, stream.Event{Name: "x"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		var r lease.Round
		seen := make(map[lease.Turn]int)
		rounds := 0
		for ; len(seen) < len(names)*(others+1); rounds++ {
			turns, err := r.Next(t.Context(), engine.Of(hf), reactions.Turns, 0, names, nil)
			if err != nil || rounds > 10 {
				t.Fatalf("%d of %d had their turn in %d rounds, %v", len(seen), len(names)*(others+1), rounds, err)
			}
			for _, x := range turns {
				seen[x]++
			}
		}
		if rounds < 2 {
			t.Error("one round served all, want several")
		}
		turns, err := new(lease.Round).Next(t.Context(), engine.Of(hf), reactions.Turns, 0, []string{"r"}, spaces[1:])
		if err != nil || !slices.Equal(turns, []lease.Turn{{Name: "r", Workspace: "big"}, {Name: "r", Workspace: "w000"}}) {
			t.Fatalf("got turns %+v, error %v", turns, err)
		}
		if _, err := new(reactions.Collector).Next(t.Context(), engine.Of(hf), store.Partition{}, turns); err != nil {
			t.Fatal(err)
		}
		a := reactions.TakeArgs{Holder: "me", Limit: 10, Share: 5, All: true}
		for _, x := range turns {
			a.Reactions = append(a.Reactions, reactions.Wanted{Name: x.Name, Workspace: x.Workspace, Lease: time.Minute})
		}
		leases, err := reactions.Take(t.Context(), engine.Of(hf), a)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		for _, l := range leases {
			got[l.Workspace]++
		}
		if got["big"] != 5 || got["w000"] != 1 || len(got) != 2 {
			t.Errorf("took %v", got)
		}
	})
}
