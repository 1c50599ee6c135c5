package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/wire"
)

// signIn starts a session with a key, and returns the API as the browser that has its cookie.
func (d *testAPI) signIn(text string) (*testAPI, *http.Cookie) {
	d.t.Helper()
	resp := d.as(text).ask("POST", "session", nil, nil)
	d.want(resp, 201, "")
	all := resp.Cookies()
	if len(all) != 1 {
		d.t.Fatalf("got cookies %v, want one", all)
	}
	return d.browser(all[0].Name + "=" + all[0].Value), all[0]
}

// browser returns the API without a key, with a cookie.
func (d *testAPI) browser(cookie string) *testAPI {
	other := d.as("")
	other.header = d.header.Clone()
	other.header.Set("Cookie", cookie)
	return other
}

// session creates a session directly in the engine.
func (d *testAPI) session(space string, role keys.Role) string {
	d.t.Helper()
	k, _ := d.newKey(space, role, 0)
	_, text := d.sessionOf(k)
	return text
}

func (d *testAPI) sessionOf(k keys.Key) (keys.Session, string) {
	d.t.Helper()
	s, text, err := keys.CreateSession(holdfast.InWorkspace(context.Background(), k.Workspace), engine.Of(d.engine), k, "test")
	if err != nil {
		d.t.Fatal(err)
	}
	return s, text
}

// badSessions returns the texts of sessions that are invalid, by what is wrong.
func (d *testAPI) badSessions(space string, role keys.Role) map[string]string {
	d.t.Helper()
	ctx := holdfast.InWorkspace(context.Background(), space)
	k, _ := d.newKey(space, role, 0)
	gone, _ := d.newKey(space, role, 0)
	old, _ := d.newKey(space, role, 0)
	short, _ := d.newKey(space, role, time.Second)
	stranger, _ := d.newKey("elsewhere", role, 0)
	_, good := d.sessionOf(k)
	_, other := d.sessionOf(k)
	_, foreign := d.sessionOf(stranger)
	ended, endedText := d.sessionOf(k)
	_, revoked := d.sessionOf(gone)
	_, rotated := d.sessionOf(old)
	_, expired := d.sessionOf(short)
	if err := keys.DeleteSession(ctx, engine.Of(d.engine), ended, "test"); err != nil {
		d.t.Fatal(err)
	}
	if _, err := keys.Revoke(ctx, engine.Of(d.engine), gone.ID, "test"); err != nil {
		d.t.Fatal(err)
	}
	if _, _, err := keys.Rotate(ctx, engine.Of(d.engine), old.ID, 0, "test"); err != nil {
		d.t.Fatal(err)
	}
	idEnd := len("hfs_") + len(k.ID) // the key's id begins after the prefix
	return map[string]string{
		"no session":                   "",
		"a cut off session":            good[:len(good)-1],
		"a longer session":             good + "0",
		"a session in capitals":        strings.ToUpper(good),
		"another session's secret":     good[:len(good)-52] + other[len(other)-52:],
		"a session of another key":     "hfs_" + gone.ID + good[idEnd:],
		"a session of a foreign key":   "hfs_" + stranger.ID + good[idEnd:],
		"a foreign session":            "hfs_" + k.ID + foreign[idEnd:],
		"an unknown session":           "hfs_" + k.ID + "_" + strings.Repeat("0", 26) + good[len(good)-53:],
		"a session of an unknown key":  "hfs_" + strings.Repeat("0", 26) + good[idEnd:],
		"an ended session":             endedText,
		"a session of a revoked key":   revoked,
		"a session of a rotated key":   rotated,
		"a session of an expired key":  expired,
		"a session with another start": "hf_" + good[len("hfs_"):],
	}
}

// eachTwoServers runs a test on both databases, with two servers each.
func eachTwoServers(t *testing.T, o httpapi.Options, f func(t *testing.T, one, two *testAPI)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) {
		at := holdfasttest.At(db)
		f(t, newTestAPI(t, holdfasttest.OpenOn(t, at), o), newTestAPI(t, holdfasttest.OpenOn(t, at), o))
	})
}

// TestASessionOnTwoServers verifies the life of a session on two servers over one database: it starts on one, is the key on
// both, and ends on both.
func TestASessionOnTwoServers(t *testing.T) {
	eachTwoServers(t, httpapi.Options{Version: "v1"}, func(t *testing.T, d, second *testAPI) {
		k, text := d.newKey("acme", keys.Operate, 0)
		var made, got wire.Session
		d.want(d.as(text).ask("POST", "session", nil, &made), 201, "")
		us, cookie := d.signIn(text)
		if cookie.Name != "holdfast" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.MaxAge != 12*3600 || cookie.Secure || cookie.Domain != "" {
			t.Errorf("got cookie %v", cookie)
		}
		there := second.browser("holdfast=" + cookie.Value)
		for _, x := range []*testAPI{us, there} {
			resp := x.ask("GET", "session", nil, &got)
			x.want(resp, 200, "")
			if got.Workspace != "acme" || got.Role != "operate" || strings.Join(got.Requesters, ",") != "*" || got.Key == nil || got.Key.ID != k.ID || got.Key.Name != k.Name ||
				got.ExpiresAt == nil || got.Now == nil || got.ExpiresAt.Sub(got.Now.Time) > 12*time.Hour || got.ExpiresAt.Sub(got.Now.Time) < 11*time.Hour || !got.Login || got.Version != "v1" {
				t.Errorf("got session %s", textOf(resp))
			}
		}
		if *made.Key != *got.Key || made.ExpiresAt == nil || made.Workspace != got.Workspace {
			t.Errorf("sign-in returned %+v, want as GET: %+v", made, got)
		}
		us.want(us.ask("POST", "session", nil, nil), 403, fault.Forbidden)
		us.want(us.ask("GET", "session", nil, nil, "X-Holdfast-Workspace", "other"), 403, fault.Forbidden)
		// The actor and the idempotency scope are those of the key.
		append1 := wire.Append{Events: []wire.NewEvent{{Name: "n"}}}
		us.want(us.ask("POST", "streams/s/events", append1, nil, "Idempotency-Key", "k1"), 201, "")
		replay := d.as(text).ask("POST", "streams/s/events", append1, nil, "Idempotency-Key", "k1")
		us.want(replay, 201, "")
		var events wire.List[wire.Event]
		us.want(us.ask("GET", "streams/s/events", nil, &events), 200, "")
		if replay.Header.Get("Idempotency-Replayed") != "true" || len(events.Items) != 1 || events.Items[0].Actor != "key:"+k.ID {
			t.Errorf("got replay header %q, events %+v", replay.Header.Get("Idempotency-Replayed"), events.Items)
		}
		// A key in the headers counts, also an invalid one.
		_, admin := d.newKey("other", keys.Admin, 0)
		us.want(us.ask("GET", "session", nil, &got, "Authorization", "Bearer "+admin), 200, "")
		if got.Workspace != "other" || got.ExpiresAt != nil {
			t.Errorf("with a key and a cookie: got %+v, want the key", got)
		}
		us.want(us.ask("GET", "session", nil, nil, "X-Api-Key", "x"), 401, fault.Auth)
		for range 2 { // the second time it has ended
			resp := us.ask("DELETE", "session", nil, nil)
			us.want(resp, 204, "")
			if all := resp.Cookies(); len(all) != 1 || all[0].Name != "holdfast" || all[0].Value != "" || all[0].MaxAge != -1 || all[0].Path != "/" {
				t.Errorf("got cookies %v, want it cleared", all)
			}
			us.want(us.ask("GET", "session", nil, nil), 401, fault.Auth)
		}
		d.want(d.ask("DELETE", "session", nil, nil), 204, "")
		second.api.EmptyRing()
		there.want(there.ask("GET", "session", nil, nil), 401, fault.Auth)
		var audit wire.List[wire.AuditEntry]
		_, boss := d.newKey("acme", keys.Admin, 0)
		d.want(d.as(boss).ask("GET", "audit?actor=key:"+k.ID, nil, &audit), 200, "")
		names := ""
		for _, e := range audit.Items {
			names += e.Action + " "
		}
		if names != "session.delete session.create session.create " {
			t.Errorf("got audit %q", names)
		}
		noSecret(t, d, cookie.Value)
	})
}

// noSecret checks that the secret of a session is in no column.
func noSecret(t *testing.T, d *testAPI, text string) {
	t.Helper()
	m := &matrix{testAPI: d}
	secret, id := text[len(text)-52:], strings.Split(text, "_")[2]
	found := false
	for table, rows := range m.stored("") {
		for _, row := range rows {
			found = found || strings.Contains(row, id)
			for i := 0; i+12 <= len(secret); i++ {
				if strings.Contains(row, secret[i:i+12]) {
					t.Errorf("table %s has a part of the secret: %s", table, row)
				}
			}
		}
	}
	if !found {
		t.Error("the dump does not have the session's id")
	}
}

// TestASessionEndsWithItsKey verifies that a revoked, expired or rotated key ends its sessions, and a session its own time,
// on a server that has cached it.
func TestASessionEndsWithItsKey(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		ctx := holdfast.InWorkspace(t.Context(), "acme")
		revoked, revokedText := d.newKey("acme", keys.Read, 0)
		rotated, rotatedText := d.newKey("acme", keys.Read, 0)
		_, expiredText := d.newKey("acme", keys.Read, time.Hour)
		_, lasting := d.newKey("acme", keys.Read, 0)
		sessions := make(map[string]*testAPI)
		for what, text := range map[string]string{"revoked": revokedText, "rotated": rotatedText, "expired": expiredText, "lasting": lasting} {
			sessions[what], _ = d.signIn(text)
		}
		expect := func(when string, want map[string]int) {
			t.Helper()
			d.api.EmptyRing()
			for what, one := range sessions {
				if resp := one.ask("GET", "session", nil, nil); resp.StatusCode != want[what] {
					t.Errorf("%s, session of the %s key: got status %d, want %d", when, what, resp.StatusCode, want[what])
				}
			}
		}
		var got wire.Session
		sessions["expired"].ask("GET", "session", nil, &got)
		if left := got.ExpiresAt.Sub(got.Now.Time); left > time.Hour {
			t.Errorf("the session lasts %s, longer than its key", left)
		}
		expect("at first", map[string]int{"revoked": 200, "rotated": 200, "expired": 200, "lasting": 200})
		if _, err := keys.Revoke(ctx, engine.Of(d.engine), revoked.ID, "bob"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := keys.Rotate(ctx, engine.Of(d.engine), rotated.ID, 30*time.Minute, "bob"); err != nil {
			t.Fatal(err)
		}
		expect("after the revocation", map[string]int{"revoked": 401, "rotated": 200, "expired": 200, "lasting": 200})
		holdfasttest.Advance(t, d.engine, 31*time.Minute)
		expect("after the overlap", map[string]int{"revoked": 401, "rotated": 401, "expired": 200, "lasting": 200})
		holdfasttest.Advance(t, d.engine, 30*time.Minute)
		expect("after the expiry of a key", map[string]int{"revoked": 401, "rotated": 401, "expired": 401, "lasting": 200})
		holdfasttest.Advance(t, d.engine, 11*time.Hour)
		expect("after 12 hours", map[string]int{"revoked": 401, "rotated": 401, "expired": 401, "lasting": 401})
		engine.Of(d.engine).Round(t.Context())
		if n, err := keys.PruneSessions(t.Context(), engine.Of(d.engine)); n != 0 || err != nil {
			t.Errorf("the janitor left %d expired sessions, error %v", n, err)
		}
	})
}

// TestTheCookieOverHTTPS verifies the cookie of a server behind a proxy that serves HTTPS, and of one that serves it.
func TestTheCookieOverHTTPS(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{})
	_, text := d.newKey("default", keys.Read, 0)
	srv := httptest.NewTLSServer(d.api)
	t.Cleanup(srv.Close)
	for what, try := range map[string]struct {
		url, proto string
		client     *http.Client
	}{
		"a proxy":      {d.url, "https", http.DefaultClient},
		"two proxies":  {d.url, "HTTPS, http", http.DefaultClient},
		"the server":   {srv.URL, "", srv.Client()},
		"plain behind": {srv.URL, "http", srv.Client()},
	} {
		send := func(method, header, value string) *http.Response {
			r, err := http.NewRequest(method, try.url+"/api/v1/session", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set(header, value)
			if try.proto != "" {
				r.Header.Set("X-Forwarded-Proto", try.proto)
			}
			resp, err := try.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp
		}
		all := send("POST", "Authorization", "Bearer "+text).Cookies()
		if len(all) != 1 || all[0].Name != "__Host-holdfast" || !all[0].Secure || !all[0].HttpOnly || all[0].SameSite != http.SameSiteStrictMode || all[0].Path != "/" || all[0].Domain != "" {
			t.Fatalf("%s: got cookies %v", what, all)
		}
		if resp := send("GET", "Cookie", "__Host-holdfast="+all[0].Value); resp.StatusCode != 200 {
			t.Errorf("%s: got status %d", what, resp.StatusCode)
		}
		if resp := send("GET", "Cookie", "holdfast="+all[0].Value); resp.StatusCode != 401 {
			t.Errorf("%s: a cookie that plain HTTP could set got status %d", what, resp.StatusCode)
		}
		cleared := send("DELETE", "Cookie", "__Host-holdfast="+all[0].Value).Cookies()
		if len(cleared) != 1 || cleared[0].Name != "__Host-holdfast" || !cleared[0].Secure || cleared[0].MaxAge != -1 {
			t.Errorf("%s: sign-out set %v", what, cleared)
		}
	}
}

// TestNoSessionWithoutKeys verifies what a server without keys says about the caller.
func TestNoSessionWithoutKeys(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{NoKeys: true})
	d.want(d.ask("POST", "session", nil, nil), 409, fault.Conflict)
	var got wire.Session
	d.want(d.ask("GET", "session", nil, &got), 200, "")
	if got.Login || got.Key != nil || got.Role != "admin" || got.Workspace != "default" || got.ExpiresAt != nil || got.Now == nil {
		t.Errorf("got %+v", got)
	}
	d.want(d.ask("DELETE", "session", nil, nil), 204, "")
}

// varying matches what differs between two identical requests.
var varying = regexp.MustCompile(`"(requestId|id|secret|at|createdAt|updatedAt|until|since|now|expiresAt|operation|token)":("[^"]*"|null)`)

// TestASessionMayWhatItsKeyMay verifies for every role that each route permits a session what it permits its key, and that
// some of them respond the same.
func TestASessionMayWhatItsKeyMay(t *testing.T) {
	eachTestAPI(t, httpapi.Options{SecretKeys: sealing}, func(t *testing.T, d *testAPI) {
		d.running()
		same := map[string]bool{"getSession": true, "listEntities": true, "listRuns": true, "listBatches": true, "listHandlers": true, "getWallet": true, "fireStep": true, "startRun": true, "decideApproval": true, "completeTask": true}
		for _, role := range allRoles {
			k, text := d.newKey("default", role, 0)
			one := d.as(text)
			browser, _ := d.signIn(text)
			for _, r := range d.api.Routes() {
				byKey := one.example(r, unknownIDs(r))
				if r.Path == "session" && r.Method != "GET" {
					continue // they differ on purpose
				}
				bySession := browser.example(r, unknownIDs(r))
				denied := func(status int) bool { return status == 401 || status == 403 }
				if denied(byKey.StatusCode) != denied(bySession.StatusCode) || bySession.StatusCode == 401 {
					t.Errorf("%s %s: key %s got status %d, its session %d", role, r.ID, k.ID, byKey.StatusCode, bySession.StatusCode)
				}
				if same[r.ID] || !r.May(role) {
					a, b := varying.ReplaceAllString(textOf(byKey), ""), varying.ReplaceAllString(textOf(bySession), "")
					if byKey.StatusCode != bySession.StatusCode || a != b {
						t.Errorf("%s %s: key %s got %d %.300s, its session %d %.300s", role, r.ID, k.ID, byKey.StatusCode, a, bySession.StatusCode, b)
					}
				}
			}
		}
	}, invoices(nil))
}

// TestRateLimitOfASession verifies that a session shares the rate limit of its key.
func TestRateLimitOfASession(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{})
	_, text, err := keys.Create(t.Context(), engine.Of(d.engine), keys.CreateArgs{Name: "slow", Role: keys.Read, Rate: 1, By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	browser, _ := d.signIn(text) // the first of two
	browser.want(browser.ask("GET", "session", nil, nil), 200, "")
	d.want(d.as(text).ask("GET", "session", nil, nil), 429, fault.RateLimited)
	browser.want(browser.ask("GET", "session", nil, nil), 429, fault.RateLimited)
}

// TestAnotherSiteCannotUseASession verifies for every route that changes something that a page of another site is refused,
// although the browser would send a valid cookie, and that a page of the server itself is not.
func TestAnotherSiteCannotUseASession(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t, invoices(nil)), httpapi.Options{SecretKeys: sealing})
	d.running()
	_, text := d.newKey("default", keys.Admin, 0)
	browser, cookie := d.signIn(text)
	n := 0
	for _, r := range d.api.Routes() {
		if r.Method == "GET" {
			continue
		}
		n++
		for _, headers := range [][]string{
			{"Origin", "https://evil.example"},
			{"Origin", "null"},
			{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site", "Origin", strings.Replace(d.url, "127.0.0.1", "other.127.0.0.1", 1)},
		} {
			resp := browser.example(r, unknownIDs(r), headers...)
			if resp.StatusCode != 403 || len(resp.Cookies()) > 0 {
				t.Errorf("%s with %v: got status %d %s", r.ID, headers, resp.StatusCode, textOf(resp))
			}
		}
		for _, headers := range [][]string{{"Sec-Fetch-Site", "same-origin", "Origin", d.url}, {"Origin", d.url}} {
			if resp := browser.example(r, unknownIDs(r), headers...); r.Path != "session" && (resp.StatusCode == 401 || resp.StatusCode == 403) {
				t.Errorf("%s with %v: got status %d %s", r.ID, headers, resp.StatusCode, textOf(resp))
			}
		}
		if r.ID == "deleteSession" { // it has ended
			browser, cookie = d.signIn(text)
		}
	}
	if n < 40 {
		t.Errorf("tried %d routes", n)
	}
	// No response allows another origin to read it.
	resp := browser.ask("GET", "session", nil, nil, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site")
	for name := range resp.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("got header %s", name)
		}
	}
	if cookie.SameSite != http.SameSiteStrictMode {
		t.Error("the browser would send the cookie from another site")
	}
}

// TestDevRefusesOtherHosts verifies that a server without keys refuses every path under a host name that is not loopback,
// which a page could make resolve to this machine.
func TestDevRefusesOtherHosts(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{NoKeys: true})
	paths := []string{"/", "/index.html", "/assets/app.js", "/healthz", "/readyz", "/metrics", "/api/v1/openapi.json", "/api/v1/nothing"}
	for _, r := range d.api.Routes() {
		paths = append(paths, "/api/v1/"+pathOf(r, unknownIDs(r)))
	}
	for _, path := range paths {
		for host, refused := range map[string]bool{"evil.example": true, "evil.example:8080": true, "127.0.0.1.evil.example": true, "localhost.evil.example": true, "192.168.0.1": true, "": true,
			"localhost": false, "127.0.0.1:8080": false, "[::1]:8080": false} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", path, nil)
			r.Host = host
			d.api.ServeHTTP(w, r)
			if (w.Code == 403) != refused {
				t.Errorf("GET %s of host %q: got status %d %s", path, host, w.Code, w.Body)
			}
		}
	}
}

// TestAStreamEndsWithItsSession verifies that an event stream of a session ends after its key is revoked, although nothing
// happens on it.
func TestAStreamEndsWithItsSession(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		d.running()
		k, text := d.newKey("default", keys.Read, 0)
		_, cookie := d.signIn(text)
		open := make(map[string]*http.Response)
		for _, path := range []string{"live?watch=runs", "feed"} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", d.url+"/api/v1/"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", "text/event-stream")
			r.AddCookie(cookie)
			if open[path], err = http.DefaultClient.Do(r); err != nil || open[path].StatusCode != 200 {
				t.Fatalf("%s: got %v, error %v", path, open[path], err)
			}
		}
		if _, err := keys.Revoke(t.Context(), engine.Of(d.engine), k.ID, "bob"); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for path, resp := range open {
			body := textOf(resp) // until the end
			_ = resp.Body.Close()
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("%s ended after %s: %s", path, took, body)
			}
		}
	})
}

// TestTheUseOfAKeyIsShown verifies that a key has the time of its last use, recorded by the maintenance.
func TestTheUseOfAKeyIsShown(t *testing.T) {
	eachTestAPI(t, httpapi.Options{}, func(t *testing.T, d *testAPI) {
		k, text := d.newKey("default", keys.Read, 0)
		_, adminText := d.newKey("default", keys.Admin, 0)
		admin := d.as(adminText)
		var got wire.Key
		admin.want(admin.ask("GET", "keys/"+k.ID, nil, &got), 200, "")
		if got.LastUsedAt != nil {
			t.Errorf("unused API key was last used at %v", got.LastUsedAt)
		}
		browser, _ := d.signIn(text)
		browser.want(browser.ask("GET", "session", nil, nil), 200, "")
		engine.Of(d.engine).Round(t.Context())
		var all wire.List[wire.Key]
		resp := admin.ask("GET", "keys", nil, &all)
		admin.want(resp, 200, "")
		if len(all.Items) != 2 || all.Items[0].LastUsedAt == nil || all.Items[1].LastUsedAt == nil || all.Items[0].LastUsedAt.Before(all.Items[0].CreatedAt.Time) {
			t.Errorf("got %s", textOf(resp))
		}
	})
}
