package httpapi_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/wire"
)

// TestTheTimesOfAnErrorHaveMilliseconds verifies that the times of an error, in its members, in its text and in the list
// of refused steps, have the format of all times: RFC 3339 in UTC with milliseconds.
func TestTheTimesOfAnErrorHaveMilliseconds(t *testing.T) {
	format := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	inText := regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]*(Z|[+-]\d\d:\d\d)`)
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		d.want(d.ask("POST", "lifecycles/invoice/entities/i/claims", wire.NewClaim{StepKey: "close", Requester: "admin"}, nil), 201, "")
		p := d.want(d.ask("POST", "lifecycles/invoice/entities/i/claims", wire.NewClaim{StepKey: "close", Requester: "admin"}, nil), 409, fault.ClaimFailed)
		for _, name := range []string{"since", "until"} {
			if at, _ := p.Fields[name].(string); !format.MatchString(at) {
				t.Errorf("%s is %v", name, p.Fields[name])
			}
		}
		if at := inText.FindString(p.Detail); !format.MatchString(at) {
			t.Errorf("the text has the time %q: %s", at, p.Detail)
		}
		testkit.Eventually(t, "the refusal is listed", func() bool {
			var all wire.List[wire.Attempt]
			d.want(d.ask("GET", "lifecycles/invoice/entities/i/attempts", nil, &all), 200, "")
			if len(all.Items) == 0 {
				return false
			}
			text, _ := json.Marshal(all.Items[0].Detail)
			for _, at := range inText.FindAllString(string(text), -1) {
				if !format.MatchString(at) {
					t.Errorf("the list of refusals has the time %q: %s", at, text)
				}
			}
			return strings.Contains(string(text), "since")
		})
	}, invoices(nil))
}
