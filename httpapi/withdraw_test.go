package httpapi_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// TestAnOperationIsWithdrawn verifies that an operator can withdraw an operation whose worker does
// not come, and that its handler can then be removed from the config, and deleted.
func TestAnOperationIsWithdrawn(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		var fired wire.Fired
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, &fired), 202, "")
		d.want(d.ask("DELETE", "handlers/Do", nil, nil), 409, fault.Conflict)
		var done wire.Resolved
		d.want(d.ask("POST", "operations/"+fired.Operation+"/withdraw", wire.Withdraw{Reason: "no such worker"}, &done), 200, "")
		if done.Operation != nil {
			t.Errorf("got operation %+v, want none", done.Operation)
		}
		d.want(d.ask("POST", "operations/"+fired.Operation+"/withdraw", nil, nil), 404, fault.NotFound)
		var now wire.Entity
		d.want(d.ask("GET", "lifecycles/job/entities/j", nil, &now), 200, "")
		if now.Status != "new" || now.Claim != nil {
			t.Errorf("got entity %+v, want status new, unclaimed", now)
		}
		plain := strings.Replace(jobConfig, `, "action": "Do"`, ``, 1)
		d.want(d.ask("PUT", "lifecycles/job", plain, nil), 200, "")
		d.want(d.ask("DELETE", "handlers/Do", nil, nil), 204, "")
	})
}
