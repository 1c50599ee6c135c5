package httpapi_test

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

// TestALedgerIsReadBackward verifies that a ledger is read from its newest row to its first, in pages of any size, over HTTP and in Go, and
// that the last page says that it is the last, and that the ledger of a wallet that does not exist is an error.
func TestALedgerIsReadBackward(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		d.want(d.ask("PUT", "wallets/w", `{}`, nil), 200, "")
		for i := range 5 {
			d.want(d.ask("POST", "wallets/w/credit", fmt.Sprintf(`{"points":%d,"reference":"r%d"}`, i+1, i), nil), 200, "")
		}
		for limit := 1; limit < 7; limit++ {
			got, cursor := "", ""
			for range 6 {
				var l wire.List[wire.LedgerEntry]
				d.want(d.ask("GET", fmt.Sprintf("wallets/w/ledger?backward=true&limit=%d%s", limit, cursor), nil, &l), 200, "")
				for _, e := range l.Items {
					got += fmt.Sprint(e.ID, ":", e.Delta, " ")
				}
				if l.Next == nil {
					break
				}
				cursor = "&cursor=" + url.QueryEscape(*l.Next)
			}
			if got != "5:5 4:4 3:3 2:2 1:1 " {
				t.Errorf("limit %d: read %s", limit, got)
			}
		}
		all, err := holdfast.Collect(batch.ReadLedgerBackward(t.Context(), d.engine, "w", 0))
		if err != nil || len(all) != 5 || all[0].Delta != 5 || all[4].Delta != 1 {
			t.Errorf("read %+v, %v", all, err)
		}
		if all, err := holdfast.Collect(batch.ReadLedgerBackward(t.Context(), d.engine, "w", 2)); err != nil || len(all) != 2 || all[0].Number != 2 || all[1].Number != 1 {
			t.Errorf("read %+v, %v from row 2", all, err)
		}
		if all, err := holdfast.Collect(batch.ReadLedgerBackward(t.Context(), d.engine, "none", 0)); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("read %+v, %v of a wallet that does not exist", all, err)
		}
	})
}
