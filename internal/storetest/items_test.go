package storetest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wallets"
)

// itemsScene takes items of batches and settles several at once, in every state of a batch and of its wallet.
func itemsScene(t *testing.T, p play) (results []string, _ string) {
	e, ctx := engine.Of(p.hf), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	create := func(id string, balance int64, negative bool, parallel int64, costs ...int64) {
		t.Helper()
		_, err := wallets.Put(ctx, e, id, negative)
		must(err)
		if balance > 0 {
			_, err = wallets.Post(ctx, e, wallets.PostArgs{Wallet: id, Delta: balance, Reason: "credit", Reference: "r"})
			must(err)
		}
		items := make([]batchengine.Work, len(costs))
		for i, cost := range costs {
			items[i] = batchengine.Work{Key: fmt.Sprintf("k%d", (i+7)%10), Cost: cost, Input: fmt.Appendf(nil, `{"n": %d}`, i)}
		}
		_, err = batchengine.Create(ctx, e, batchengine.New{ID: id, Wallet: id, Handler: id, MaxConcurrency: parallel, Attempts: 3, Timeout: time.Hour, Items: items})
		must(err)
	}
	take := func(id string, limit int) []batchengine.Taken {
		all, err := batchengine.Take(ctx, e, batchengine.Ask{Handlers: []string{id}, Holder: "me", Lease: time.Minute, Limit: limit})
		short := ""
		for _, x := range all {
			short += fmt.Sprint(x.Key, " ", x.Epoch, " ", string(x.Input), " ", x.Failures, x.Crashes, x.Timeout, x.Artifacts, x.Until.IsZero(), "; ")
		}
		results = append(results, "take "+short+string(fault.CodeOf(err)))
		return all
	}
	settle := func(all ...batchengine.Taken) {
		done := make([]batchengine.Finished, len(all))
		for i, x := range all {
			done[i] = batchengine.Finished{Taken: x, Output: fmt.Appendf(nil, `[%d]`, i)}
		}
		ok, err := batchengine.SettleAll(ctx, e, done)
		results = append(results, formatResult(ok, err))
	}
	state := func(id string) {
		b, err := batchengine.Get(ctx, e, id)
		results = append(results, formatResult(b, err))
	}

	// to the end
	create("plain", 100, false, 4, 1, 0, 2, 3, 4)
	some := take("plain", 3)
	more := take("plain", 3)
	settle(some[2], some[0], some[1])
	settle(some...)
	settle(more...)
	settle(take("plain", 9)...)
	take("plain", 9)
	state("plain")
	// retries
	create("again", 100, false, 9, 5, 5, 5, 5)
	some = take("again", 2)
	_, err := batchengine.Fail(ctx, e, some[0], "no", 0, false)
	must(err)
	_, err = batchengine.Fail(ctx, e, some[1], "no", time.Hour, false)
	must(err)
	settle(append(take("again", 2), some[1])...)
	take("again", 2)
	state("again")
	// funds
	create("poor", 5, false, 9, 2, 2, 2, 0)
	settle(take("poor", 9)...)
	take("poor", 9)
	state("poor")
	create("debt", 1, true, 9, 2, 2, 2)
	settle(take("debt", 2)...)
	create("free", 0, false, 9, 0, 0, 0)
	settle(take("free", 2)...)
	// lost leases, duplicates
	create("late", 100, false, 9, 1, 1, 1, 1, 1)
	some = take("late", 5)
	settle(some[0], some[0])
	p.change(t, "UPDATE {item} SET until = updated_at WHERE batch = 'late' AND key = '"+some[1].Key+"'")
	settle(some[0], some[1])
	p.change(t, "UPDATE {item} SET epoch = 7 WHERE batch = 'late' AND key = '"+some[2].Key+"'")
	settle(some[0], some[2])
	none := some[0]
	none.Key = "none"
	settle(some[0], none)
	none.Batch = "none"
	settle(none, none)
	settle(some[3], some[0])
	state("late")
	// a cancel, a registry that changed
	create("stop", 100, false, 9, 1, 1, 1, 1)
	some = take("stop", 3)
	p.declared(t)
	take("stop", 1)
	p.change(t, "UPDATE {registry} SET revision = 200")
	settle(some[0], some[1])
	_, _, err = batchengine.Cancel(ctx, e, "stop", "")
	must(err)
	take("stop", 9)
	settle(some[2])
	state("stop")
	return results, ""
}

// TestBothDatabasesTakeAndSettleAlike verifies that items are taken and settled with the same results, and leave
// the same items and ledgers, on both databases.
func TestBothDatabasesTakeAndSettleAlike(t *testing.T) {
	t.Parallel()
	columns := regexp.MustCompile(`(charged|cost|state|output|error|failures|epoch|deaths|delta|balance|reason|reference)=\S+`)
	var played [2][]string
	for i, name := range []string{"sqlite", "postgres"} {
		for _, line := range playScene(t, name, false, itemsScene) {
			if table, row, ok := strings.Cut(line, " shard="); ok {
				if line = strings.Join(columns.FindAllString(row, -1), " "); !strings.HasSuffix(table, "item") && !strings.HasSuffix(table, "ledger") {
					continue
				}
			}
			played[i] = append(played[i], line)
		}
		slices.Sort(played[i])
	}
	for i := range max(len(played[0]), len(played[1])) {
		if a, b := lineAt(played[0], i), lineAt(played[1], i); a != b {
			t.Fatalf("SQLite:\n  %s\nPostgreSQL:\n  %s", a, b)
		}
	}
}
