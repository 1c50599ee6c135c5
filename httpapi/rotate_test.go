package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/wire"
)

// TestARotatedKeyRepeatsItsRequests verifies that a rotated key gets the stored responses of its
// predecessors, and they get its own while they are valid, for each way in which requests are
// stored; and that another key gets none of them.
func TestARotatedKeyRepeatsItsRequests(t *testing.T) {
	eachTestAPI(t, elsewhereWithKeys, func(t *testing.T, d *testAPI) {
		made, text := d.newKey("default", keys.Admin, 0)
		_, other := d.newKey("default", keys.Admin, 0)
		chain, another := []*testAPI{d.as(text)}, d.as(other)
		for range 2 {
			var next wire.CreatedKey
			another.want(another.ask("POST", "keys/"+made.ID+"/rotate", wire.RotateKey{OverlapMs: 3_600_000}, &next), 201, "")
			made.ID = next.ID
			chain = append(chain, d.as(next.Secret))
		}
		another.want(another.ask("PUT", "reactions/r", wire.PutReaction{Events: []string{"n"}}, nil), 201, "")
		for i, first := range chain {
			id := fmt.Sprint("i", i)
			another.want(another.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(id)}, nil), 201, "")
			another.append("s"+id, 1)
			for _, q := range []struct {
				method, path string
				body         any
				status       int
			}{
				{"POST", "streams/t/events", exampleBodies["appendEvents"], 201},
				{"PUT", "handlers/h" + id, exampleBodies["putHandler"], 201},
				{"POST", "reactions/r/claim", wire.ClaimLeases{By: "w", LeaseMs: 60_000}, 200},
				{"POST", "lifecycles/invoice/entities/" + id + "/steps/close", exampleBodies["fireStep"], 200},
			} {
				resp := first.ask(q.method, q.path, q.body, nil, keyHeader, id)
				first.want(resp, q.status, "")
				for n, by := range chain {
					again := by.ask(q.method, q.path, q.body, nil, keyHeader, id)
					by.want(again, q.status, "")
					if again.Header.Get("Idempotency-Replayed") != "true" {
						t.Errorf("%s of key %d was executed again under key %d of the chain: got %s, want %s", q.path, i, n, textOf(again), textOf(resp))
					}
				}
				another.want(another.ask(q.method, q.path, q.body, nil, keyHeader, id), 409, fault.Conflict)
			}
		}
	}, invoices(nil))
}
