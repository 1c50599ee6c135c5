package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/wire"
)

// restricted creates a key with restrictions, and returns the API with it.
func (d *testAPI) restricted(role keys.Role, r keys.Restrictions) *testAPI {
	d.t.Helper()
	_, text, err := keys.Create(d.t.Context(), engine.Of(d.engine), keys.CreateArgs{Name: "restricted", Role: role, Requesters: []string{"*"}, Restrictions: r, By: "test"})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.as(text)
}

// own are the routes that only networks restrict.
var own = []string{"createSession", "getSession", "deleteSession"}

// TestEveryRouteByGroup verifies for every route and every group that a key of the group may use the routes of the group, and no others.
func TestEveryRouteByGroup(t *testing.T) {
	eachTestAPI(t, httpapi.Options{SecretKeys: sealing}, func(t *testing.T, d *testAPI) {
		d.running()
		var groups []string
		for _, r := range d.api.Routes() {
			if !slices.Contains(groups, r.Group) {
				groups = append(groups, r.Group)
			}
		}
		slices.Sort(groups)
		if !slices.Equal(groups, keys.Groups) {
			t.Fatalf("the tags of the routes are %q, and the groups %q", groups, keys.Groups)
		}
		needsMore := []string{"createKey", "rotateKey", "listRequests", "getRequest", "readActivity", "readTimeline", "listRaces", "startBulk", "listBulks"}
		for _, group := range groups {
			one := d.restricted(keys.Admin, keys.Restrictions{RouteGroups: []string{group}})
			for _, r := range d.api.Routes() {
				resp := one.example(r, unknownIDs(r))
				if slices.Contains(own, r.ID) || r.Group == group && !slices.Contains(needsMore, r.ID) {
					if resp.StatusCode == 401 || resp.StatusCode == 403 || resp.StatusCode >= 500 {
						t.Errorf("a key of the group %s got status %d for %s: %s", group, resp.StatusCode, r.ID, textOf(resp))
					}
					continue
				}
				one.want(resp, 403, fault.Forbidden)
			}
		}
		for _, x := range []struct {
			groups []string
			path   string
			status int
		}{
			{[]string{"streams", "visibility"}, "timeline?stream=x", 200},
			{[]string{"streams", "visibility"}, "races", 200},
			{[]string{"streams", "visibility"}, "feed", 200},
			{[]string{"streams", "visibility"}, "streams/$run%2Fx/events", 200},
			{[]string{"streams"}, "streams/$run%2Fx/events", 403},
			{[]string{"streams"}, "streams/$run%2Fx", 403},
			{[]string{"streams"}, "events/search?stream=$run/x&name=n", 403},
			{[]string{"streams"}, "streams/x/events", 200},
		} {
			if resp := d.restricted(keys.Admin, keys.Restrictions{RouteGroups: x.groups}).ask("GET", x.path, nil, nil); resp.StatusCode != x.status {
				t.Errorf("%s with the groups %q: got status %d %s", x.path, x.groups, resp.StatusCode, textOf(resp))
			}
		}
		bulk := wire.NewBulk{Action: "run.retry", Filter: &wire.BulkFilter{}, DryRun: true}
		one := d.restricted(keys.Operate, keys.Restrictions{RouteGroups: []string{"bulk", "runs"}})
		one.want(one.ask("POST", "bulk", bulk, nil), 200, "")
		for _, action := range []string{"reaction.skip", "operation.release"} {
			bulk.Action = action
			one.want(one.ask("POST", "bulk", bulk, nil), 403, fault.Forbidden)
		}
		bulk.Action, bulk.DryRun = "run.retry", false
		var made wire.StartedBulk
		one.want(one.ask("POST", "bulk", bulk, &made), 202, "")
		other := d.restricted(keys.Operate, keys.Restrictions{RouteGroups: []string{"bulk", "reactions", "operations"}})
		for _, x := range []struct{ method, path string }{{"GET", ""}, {"GET", "/members"}, {"POST", "/cancel"}} {
			path := "bulk/" + made.Bulk.ID + x.path
			other.want(other.ask(x.method, path, nil, nil), 403, fault.Forbidden)
			if resp := one.ask(x.method, path, nil, nil); resp.StatusCode == 403 {
				t.Errorf("%s: got status %d %s", path, resp.StatusCode, textOf(resp))
			}
		}
		one.want(one.ask("GET", "bulk", nil, nil), 403, fault.Forbidden)
		all := d.restricted(keys.Read, keys.Restrictions{RouteGroups: []string{"bulk", "runs", "reactions", "operations"}})
		all.want(all.ask("GET", "bulk", nil, nil), 200, "")
		boss := d.restricted(keys.Admin, keys.Restrictions{})
		boss.want(boss.ask("POST", "streams/s/events", wire.Append{Events: []wire.NewEvent{{Name: "n"}}}, nil, "Idempotency-Key", "my-request"), 201, "")
		for _, x := range []struct {
			who   *testAPI
			found int
		}{{boss, 1}, {d.restricted(keys.Admin, keys.Restrictions{RouteGroups: []string{"visibility"}}), 0}} {
			var got wire.Matches
			x.who.want(x.who.ask("GET", "search?q=my-request", nil, &got), 200, "")
			if len(got.Matches) != x.found {
				t.Errorf("found %+v, want %d", got.Matches, x.found)
			}
		}
	}, invoices(nil))
}

// TestEveryRouteByLifecycle verifies for every route that a key of a lifecycle may use those about that lifecycle, and no others.
func TestEveryRouteByLifecycle(t *testing.T) {
	eachTestAPI(t, httpapi.Options{SecretKeys: sealing}, func(t *testing.T, d *testAPI) {
		d.running()
		boss := d.restricted(keys.Admin, keys.Restrictions{})
		mine, others := d.restricted(keys.Admin, keys.Restrictions{Lifecycles: []string{"invoice"}}), d.restricted(keys.Admin, keys.Restrictions{Lifecycles: []string{"parcel", "invoices"}})
		named := []string{"getLifecycle", "getLifecycleDiagram", "countEntities", "listEntities", "createEntity", "getEntity", "readEntityHistory", "readEntityTimeline", "listRefusals", "fireStep", "claimStep"}
		byID := []string{"renewClaim", "settleClaim", "releaseClaim", "journalEffect", "getOperation", "resolveOperation", "releaseOperation", "withdrawOperation", "acknowledgeContradictions"}
		for _, r := range d.api.Routes() {
			resp := mine.example(r, unknownIDs(r))
			switch {
			case slices.Contains(named, r.ID), slices.Contains(own, r.ID):
				if resp.StatusCode == 401 || resp.StatusCode == 403 || resp.StatusCode >= 500 {
					t.Errorf("%s: got status %d %s", r.ID, resp.StatusCode, textOf(resp))
				}
			case slices.Contains(byID, r.ID):
				mine.want(resp, 404, fault.NotFound)
			default:
				mine.want(resp, 403, fault.Forbidden)
			}
			if !slices.Contains(own, r.ID) && !slices.Contains(byID, r.ID) {
				others.want(others.example(r, unknownIDs(r)), 403, fault.Forbidden)
			}
		}
		var made wire.Claimed
		boss.want(boss.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "")
		boss.want(boss.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], &made), 201, "")
		token, operation := "claims/"+made.Claim.Token, "operations/"+made.Entity.Claim.Operation
		ids := func(name string) string {
			return map[string]string{"token": made.Claim.Token, "id": made.Entity.Claim.Operation}[name]
		}
		for _, r := range d.api.Routes() {
			if slices.Contains(byID, r.ID) {
				others.want(others.example(r, ids), 403, fault.Forbidden)
			}
		}
		mine.want(mine.ask("GET", operation, nil, nil), 200, "")
		mine.want(mine.ask("POST", token+"/renew", wire.Renew{}, nil), 200, "")
		mine.want(mine.ask("POST", token+"/settle", wire.Settle{Outcome: "success", Events: []wire.SettleEvent{{Stream: "s", Name: "n"}}}, nil), 403, fault.Forbidden)
		mine.want(mine.ask("POST", token+"/settle", wire.Settle{Outcome: "success"}, nil), 200, "")
		claims := d.restricted(keys.Operate, keys.Restrictions{RouteGroups: []string{"claims"}})
		claims.want(claims.ask("POST", token+"/settle", wire.Settle{Outcome: "success", Events: []wire.SettleEvent{{Stream: "s", Name: "n"}}}, nil), 403, fault.Forbidden)
		boss.want(boss.ask("POST", "workflow-definitions", `{"name":"d","version":"1","steps":[{"name":"may","type":"approval","prompt":"?"}]}`, nil), 201, "")
		run := boss.start("d@1", `{}`)
		mine.want(mine.ask("GET", "operations/"+run.ID+"/0/0", nil, nil), 404, fault.NotFound)
	}, invoices(nil))
}

// TestRestrictionsOfKeys verifies that the restrictions of a key are shown, checked, audited and kept by its rotation, that a session of the
// key has them, and that the key cannot get rid of them.
func TestRestrictionsOfKeys(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		_, text := d.newKey("default", keys.Admin, 0)
		boss := d.as(text)
		for what, x := range map[string]struct {
			key     wire.NewKey
			says    string
			pointer string
		}{
			"an unknown group":        {wire.NewKey{Role: "read", RouteGroups: []string{"run"}}, "the groups are approvals, batches", "/routeGroups"},
			"a group twice":           {wire.NewKey{Role: "read", RouteGroups: []string{"runs", "runs"}}, "twice", "/routeGroups"},
			"no network":              {wire.NewKey{Role: "read", From: []string{"10.0.0.0/33"}}, "is not a network", "/from"},
			"a network with a host":   {wire.NewKey{Role: "read", From: []string{"10.1.2.3/8"}}, "write 10.0.0.0/8", "/from"},
			"a mapped network":        {wire.NewKey{Role: "read", From: []string{"::ffff:10.0.0.0/104"}}, "IPv4 notation", "/from"},
			"an address with a zone":  {wire.NewKey{Role: "read", From: []string{"fe80::1%eth0"}}, "is not a network", "/from"},
			"handlers and lifecycles": {wire.NewKey{Role: "worker", Handlers: []string{"h"}, Lifecycles: []string{"l"}}, "both lifecycles and handlers", "/lifecycles"},
			"all lifecycles":          {wire.NewKey{Role: "read", Lifecycles: []string{"*"}}, "omit lifecycles", "/lifecycles"},
			"no lifecycle":            {wire.NewKey{Role: "read", Lifecycles: []string{""}}, "is empty", "/lifecycles"},
			"too many networks":       {wire.NewKey{Role: "read", From: slices.Repeat([]string{"10.0.0.1"}, 101)}, "at most 100", "/from"},
		} {
			p := boss.want(boss.ask("POST", "keys", x.key, nil), 400, fault.Validation)
			if !strings.Contains(p.Detail, x.says) || p.Fields["pointer"] != x.pointer {
				t.Errorf("%s: got %q at %v, want %q at %s", what, p.Detail, p.Fields["pointer"], x.says, x.pointer)
			}
		}
		var made, next wire.CreatedKey
		new := wire.NewKey{Role: "admin", RouteGroups: []string{"keys", "lifecycles"}, Lifecycles: []string{"invoice"}, From: []string{"127.0.0.1", "::1", "2001:db8::/32"}}
		boss.want(boss.ask("POST", "keys", new, &made), 201, "")
		check := func(k wire.Key) {
			t.Helper()
			if !slices.Equal(k.RouteGroups, new.RouteGroups) || !slices.Equal(k.Lifecycles, new.Lifecycles) || !slices.Equal(k.From, []string{"127.0.0.1/32", "::1/128", "2001:db8::/32"}) {
				t.Errorf("got %+v", k)
			}
		}
		check(made.Key)
		boss.want(boss.ask("POST", "keys/"+made.ID+"/rotate", wire.RotateKey{OverlapMs: 60_000}, &next), 201, "")
		check(next.Key)
		var shown wire.Key
		boss.want(boss.ask("GET", "keys/"+next.ID, nil, &shown), 200, "")
		check(shown)
		var list wire.List[wire.Key]
		boss.want(boss.ask("GET", "keys", nil, &list), 200, "")
		check(list.Items[slices.IndexFunc(list.Items, func(k wire.Key) bool { return k.ID == made.ID })])
		boss.want(boss.ask("DELETE", "keys/"+made.ID, nil, &shown), 200, "")
		check(shown)
		for _, path := range []string{"audit?action=key.create", "streams/$key%2F" + made.ID + "/events"} {
			if text := textOf(boss.ask("GET", path, nil, nil)); strings.Count(text, "2001:db8::/32") == 0 || !strings.Contains(text, `"lifecycles"`) {
				t.Errorf("%s does not have the restrictions: %s", path, text)
			}
		}
		one := d.as(next.Secret)
		browser, _ := d.signIn(next.Secret)
		for _, who := range []*testAPI{one, browser} {
			who.want(who.ask("GET", "lifecycles/invoice/entities", nil, nil), 200, "")
			who.want(who.ask("GET", "streams", nil, nil), 403, fault.Forbidden)
			who.want(who.ask("GET", "lifecycles", nil, nil), 403, fault.Forbidden)
			who.want(who.ask("POST", "keys", wire.NewKey{Role: "read"}, nil), 403, fault.Forbidden)
		}
		resp, err := d.client.Do(d.request("GET", "/metrics", next.Secret))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 403 {
			t.Errorf("got status %d for the metrics", resp.StatusCode)
		}
		manager, other := d.restricted(keys.Admin, keys.Restrictions{RouteGroups: []string{"keys"}}), next.ID
		manager.want(manager.ask("GET", "keys", nil, nil), 200, "")
		manager.want(manager.ask("POST", "keys/"+other+"/rotate", wire.RotateKey{}, nil), 403, fault.Forbidden)
		var self wire.Session
		manager.want(manager.ask("GET", "session", nil, &self), 200, "")
		var again wire.CreatedKey
		manager.want(manager.ask("POST", "keys/"+self.Key.ID+"/rotate", wire.RotateKey{OverlapMs: 60_000}, &again), 201, "")
		if !slices.Equal(again.RouteGroups, []string{"keys"}) {
			t.Errorf("the key that replaces itself has the groups %q", again.RouteGroups)
		}
	}, invoices(nil))
}

// TestNetworksOfAKey verifies from which addresses a key, and a session of it, may be used.
func TestNetworksOfAKey(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{})
	one := d.restricted(keys.Read, keys.Restrictions{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("127.0.0.1/32")}})
	_, cookie := d.signIn(one.key)
	for addr, status := range map[string]int{
		"10.1.2.3:5": 200, "[::ffff:10.1.2.3]:5": 200, "[2001:db8::1]:5": 200, "11.0.0.1:5": 403, "[2001:db9::1]:5": 403, "[::10.1.2.3]:5": 403, "[fe80::1%eth0]:5": 403, "": 403, "@": 403, "10.1.2.3": 403,
	} {
		for _, header := range []string{"Bearer " + one.key, ""} {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/session", nil)
			r.RemoteAddr = addr
			r.Header.Set("X-Forwarded-For", "10.1.2.3")
			if header != "" {
				r.Header.Set("Authorization", header)
			} else {
				r.AddCookie(cookie)
			}
			w := httptest.NewRecorder()
			if d.api.ServeHTTP(w, r); w.Code != status {
				t.Errorf("from %q: got status %d %s, want %d", addr, w.Code, w.Body, status)
			}
		}
	}
}
