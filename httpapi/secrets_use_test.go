package httpapi_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/secrets"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/workflow"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/webhook"
	"github.com/holdfast-go/holdfast/wire"
)

// TestASecretThatIsUsedRemains verifies that a reference to an unknown secret is refused, and that a secret is not deleted while a
// handler, a webhook or a run that has not ended refers to it.
func TestASecretThatIsUsedRemains(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		there := newEcho(t)
		headers := map[string]string{"X-Token": "a ${secret:token} b"}
		handler := wire.PutHandler{Kind: "http", URL: there.URL + "/echo", Headers: headers}
		hook := wire.NewWebhook{URL: there.URL + "/hook", Headers: headers}
		definition := fmt.Sprintf(`{"name":"w","version":"1","steps":[{"name":"wait","type":"event","signal":"go","timeoutMs":3600000},{"name":"do","type":"http","url":"%s/echo","headers":{"X-Token":"${secret:token}"}}]}`, there.URL)
		unknown := func() {
			t.Helper()
			d.want(d.ask("PUT", "handlers/h", handler, nil), 400, fault.Validation)
			d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: there.URL, Secret: "secret:token"}, nil), 400, fault.Validation)
			d.want(d.ask("POST", "webhooks", hook, nil), 400, fault.Validation)
			d.want(d.ask("POST", "webhooks", wire.NewWebhook{URL: there.URL, Secret: "secret:token"}, nil), 400, fault.Validation)
			d.want(d.ask("POST", "workflow-definitions", definition, nil), 422, fault.Validation)
		}
		unknown()
		if s := d.putSecret("token", "a-secret-value", 201); s.Version != 1 || s.Name != "token" || s.CreatedAt == nil || s.OverlapUntil != nil {
			t.Errorf("got %+v", s)
		}
		d.want(d.ask("PUT", "handlers/h", handler, nil), 201, "")
		// it cannot sign
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: there.URL, Secret: "secret:token"}, nil), 400, fault.Validation)
		w := d.hook(hook)
		if w.Headers["X-Token"] != headers["X-Token"] || w.Secret == "" {
			t.Errorf("got webhook %+v", w)
		}
		d.define(definition)
		r := d.start("w@1", `{}`)
		used := func(by ...string) {
			t.Helper()
			p := d.want(d.ask("DELETE", "secrets/token", nil, nil), 409, fault.Conflict)
			if got := fmt.Sprint(p.Fields["usedBy"]); got != fmt.Sprint(by) {
				t.Errorf("used by %s, want %s", got, by)
			}
		}
		used("handler h", "webhook "+w.ID, "definition w@1 with runs that have not ended")
		d.want(d.ask("DELETE", "handlers/h", nil, nil), 204, "")
		used("webhook "+w.ID, "definition w@1 with runs that have not ended")
		d.want(d.ask("DELETE", "webhooks/"+w.ID, nil, nil), 204, "")
		used("definition w@1 with runs that have not ended")
		d.want(d.ask("POST", "workflow-runs/"+r.ID+"/cancel", wire.Command{}, nil), 200, "")
		d.runEnds(r.ID, "CANCELLED")
		d.want(d.ask("DELETE", "secrets/token", nil, nil), 204, "")
		d.want(d.ask("DELETE", "secrets/token", nil, nil), 404, fault.NotFound)
		d.want(d.ask("GET", "secrets/token", nil, nil), 404, fault.NotFound)
		unknown()
		// A handler that becomes one of workers is not signed, and does not keep the secret.
		d.putSecret("token", webhook.NewSecret(), 201)
		d.want(d.ask("PUT", "handlers/w", wire.PutHandler{Kind: "http", URL: there.URL, Secret: "secret:token"}, nil), 201, "")
		d.want(d.ask("PUT", "handlers/w", wire.PutHandler{Kind: "worker"}, nil), 200, "")
		d.want(d.ask("DELETE", "secrets/token", nil, nil), 204, "")
	})
}

// TestACallWithoutItsSecretIsNotMade verifies that a call whose secret was deleted is not made, fails with a code before its
// effect, and succeeds once the secret exists again.
func TestACallWithoutItsSecretIsNotMade(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		there := newEcho(t)
		d.putSecret("token", "a-secret-value", 201)
		d.define(fmt.Sprintf(`{"name":"w","version":"1","steps":[{"name":"do","type":"http","method":"POST","safety":"opaque","url":"%s/echo","retry":{"maxAttempts":1},"headers":{"X-Token":"${secret:token}"}}]}`, there.URL))
		d.want(d.ask("DELETE", "secrets/token", nil, nil), 204, "")
		r := d.start("w@1", `{}`)
		r = d.runEnds(r.ID, "FAILED") // not uncertain, although the step is opaque
		if len(there.calls("/echo")) > 0 || r.Error == nil || !strings.Contains(*r.Error, string(fault.SecretUnavailable)) || !strings.Contains(*r.Error, `"token"`) {
			t.Errorf("got %v after %d calls", r.Error, len(there.calls("/echo")))
		}
		d.putSecret("token", "another-secret-value", 201)
		d.want(d.ask("POST", "workflow-runs/"+r.ID+"/retry", wire.Command{}, nil), 200, "")
		d.runEnds(r.ID, "COMPLETED")
		if all := there.calls("/echo"); len(all) != 1 || all[0].Get("X-Token") != "another-secret-value" {
			t.Errorf("got calls %v", all)
		}
	})
}

// TestTheInputOfARunChoosesNoSecret verifies that a reference in a computed header is refused when the step begins, and is not sent.
func TestTheInputOfARunChoosesNoSecret(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		there := newEcho(t)
		d.putSecret("token", "a-secret-value", 201)
		d.define(fmt.Sprintf(`{"name":"w","version":"1","steps":[{"name":"do","type":"http","url":"%s/echo","headers":{"X-Token":"=input.h"}}]}`, there.URL))
		d.define(fmt.Sprintf(`{"name":"task","version":"1","steps":[{"name":"do","type":"http","method":"POST","safety":"idempotent","url":"%s/echo","body":"=input"}]}`, there.URL))
		r := d.start("w@1", `{"h":"${secret:token}"}`)
		if r = d.runEnds(r.ID, "FAILED"); r.Error == nil || !strings.Contains(*r.Error, "refers to a secret") || len(there.calls("/echo")) > 0 {
			t.Errorf("got %v after %d calls", r.Error, len(there.calls("/echo")))
		}
		r = d.start("task@1", `{"h":"${secret:token}"}`) // a body is sent as it is
		d.runEnds(r.ID, "COMPLETED")
		if text := fmt.Sprint(there.calls("/echo")); strings.Contains(text, "a-secret-value") {
			t.Error(text)
		}
		d.want(d.ask("POST", "workflow-definitions", `{"name":"x","version":"1","steps":[{"name":"do","type":"http","url":"=input.url","headers":{"X-Token":"${secret:token}"}}]}`, nil), 422, fault.Validation)
	})
}

// TestARotatedSecretSignsAtOnce verifies that after a rotation the next message is signed with the new value, and during the overlap
// with the previous one too; that a rotation expects its version; and that a value that cannot sign is refused.
func TestARotatedSecretSignsAtOnce(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		to := receive(t, nil)
		first, second, third := webhook.NewSecret(), webhook.NewSecret(), webhook.NewSecret()
		d.putSecret("sign", first, 201)
		w := d.hook(wire.NewWebhook{URL: to.URL, Events: []string{"paid"}, Secret: "secret:sign"})
		if w.Secret != "" || w.SignedWith != "secret:sign" {
			t.Errorf("got webhook %+v", w)
		}
		d.emit("s", "paid")
		signed(t, to.next(t), []string{first}, []string{second, third})
		d.want(d.ask("PUT", "secrets/sign", wire.PutSecret{Value: "not-a-signing-secret"}, nil), 400, fault.Validation)
		d.want(d.ask("PUT", "secrets/sign", wire.PutSecret{Value: second, ExpectedVersion: new(int64)}, nil), 409, fault.Concurrency)
		var s wire.Secret
		d.want(d.ask("PUT", "secrets/sign", wire.PutSecret{Value: second, ExpectedVersion: new(int64(1)), OverlapMs: 3_600_000}, &s), 200, "")
		if s.Version != 2 || s.OverlapUntil == nil {
			t.Errorf("got %+v", s)
		}
		d.emit("s", "paid")
		signed(t, to.next(t), []string{first, second}, []string{third})
		if again := d.putSecret("sign", second, 200); again.Version != 2 || again.OverlapUntil == nil || *again.OverlapUntil != *s.OverlapUntil {
			t.Errorf("the same value again: %+v, before %+v", again, s)
		}
		d.emit("s", "paid")
		signed(t, to.next(t), []string{first, second}, []string{third})
		d.putSecret("sign", third, 200)
		d.emit("s", "paid")
		signed(t, to.next(t), []string{third}, []string{first, second})
		// From the secret with a name to one of its own, with an overlap in which the other can be deleted.
		var own wire.CreatedWebhook
		d.want(d.ask("POST", "webhooks/"+w.ID+"/rotate", wire.RotateWebhook{OverlapMs: 3_600_000}, &own), 200, "")
		d.emit("s", "paid")
		signed(t, to.next(t), []string{third, own.Secret}, []string{first, second})
		d.want(d.ask("DELETE", "secrets/sign", nil, nil), 204, "")
		d.emit("s", "paid")
		signed(t, to.next(t), []string{own.Secret}, []string{third})
	})
}

// TestHeadersAreChecked verifies which headers a handler and a webhook may have.
func TestHeadersAreChecked(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		d.putSecret("token", "a-secret-value", 201)
		for name, value := range map[string]string{"Host": "x", "content-type": "x", "Webhook-Id": "x", "Idempotency-Key": "x", "Authorization": "Bearer abc", "Cookie": "a=b", "X y": "x", "X": "",
			"A": "line\nbreak", "B": "${secret:token", "C": "${secret:}", "D": "secret:token", "E": "ü", "F": "${secret:a/b}", "G": " x"} {
			p := d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: "https://example.com", Headers: map[string]string{name: value}}, nil), 400, fault.Validation)
			if want := "/headers/" + name; p.Fields["pointer"] != want {
				t.Errorf("got pointer %v, want %s", p.Fields["pointer"], want)
			}
			d.want(d.ask("POST", "webhooks", wire.NewWebhook{URL: "https://example.com", Headers: map[string]string{name: value}}, nil), 400, fault.Validation)
		}
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "worker", Headers: map[string]string{"X": "x"}}, nil), 400, fault.Validation)
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: "https://example.com/?key=${secret:token}"}, nil), 400, fault.Validation)
		d.want(d.ask("POST", "webhooks", wire.NewWebhook{URL: "https://example.com/?key=${secret:token}"}, nil), 400, fault.Validation)
		var h wire.Handler
		want := map[string]string{"X-A": "1", "Authorization": "Basic ${secret:token}"}
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: "https://example.com", Headers: map[string]string{"x-a": "1", "authorization": "Basic ${secret:token}"}}, nil), 201, "")
		d.want(d.ask("GET", "handlers/h", nil, &h), 200, "")
		if !maps.Equal(h.Headers, want) {
			t.Errorf("got headers %v, want %v", h.Headers, want)
		}
		for _, value := range []string{"short", strings.Repeat("x", 4097), "a value\nof lines", " begins-with-a-space", "ünicode-value"} {
			if p := d.want(d.ask("PUT", "secrets/token", wire.PutSecret{Value: value}, nil), 400, fault.Validation); strings.Contains(p.Detail, value) {
				t.Errorf("the error has the value: %s", p.Detail)
			}
		}
		for _, name := range []string{"a%20b", "%24x", "-x", strings.Repeat("x", 101)} {
			d.want(d.ask("PUT", "secrets/"+name, wire.PutSecret{Value: "a-secret-value"}, nil), 400, fault.Validation)
		}
	})
}

// TestOldKeysCanBeRemoved verifies that Reseal encrypts all secrets with the first key, beside rotations of them, so that the old key
// is not needed any more; and that a value that cannot be decrypted is left as it is.
func TestOldKeysCanBeRemoved(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		to := receive(t, nil)
		d.putSecret("token", "a-secret-value", 201)
		d.want(d.ask("PUT", "secrets/token", wire.PutSecret{Value: "a-later-value", OverlapMs: 3_600_000}, nil), 200, "")
		d.want(d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: "https://example.com"}, nil), 201, "")
		w := d.hook(wire.NewWebhook{URL: to.URL})
		d.want(d.ask("POST", "webhooks/"+w.ID+"/rotate", wire.RotateWebhook{OverlapMs: 3_600_000}, nil), 200, "")
		d.want(d.ask("PUT", "secrets/token", wire.PutSecret{Value: "of-another-workspace"}, nil, "X-Holdfast-Workspace", "other"), 201, "")
		box := func(keys ...[]byte) *seal.Box {
			b, err := seal.New(keys...)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		next := make([]byte, seal.KeySize)
		e, ctx := engine.Of(d.engine), t.Context()
		if done, err := secrets.Reseal(ctx, e, box(next)); err == nil || done != (secrets.Resealed{Failed: 6}) {
			t.Errorf("without the old key: %+v, %v", done, err)
		}
		for _, want := range []int{6, 0} {
			if done, err := secrets.Reseal(ctx, e, box(next, sealingKey)); err != nil || done != (secrets.Resealed{Resealed: want}) {
				t.Errorf("resealed %+v, %v, want %d", done, err, want)
			}
		}
		for in, want := range map[string]string{"default": "a-later-value", "other": "of-another-workspace"} {
			opened, err := secrets.Open(holdfast.InWorkspace(ctx, in), e, box(next), map[string]string{"H": "${secret:token}"})
			if err != nil || opened.Headers["H"] != want {
				t.Errorf("opened %v, %v, want %s", opened.Headers, err, want)
			}
		}
		if _, err := secrets.Open(holdfast.InWorkspace(ctx, "default"), e, box(sealingKey), map[string]string{"H": "${secret:token}"}); fault.CodeOf(err) != fault.SecretUnavailable {
			t.Errorf("with the old key only: %v", err)
		}
	})
}

// TestAStoredInputOpensNoSecret verifies that a task cannot name a handler of Holdfast itself, even in a definition of an earlier
// version; and that a stored input whose references or host are not those of the definition is not sent when its run is retried.
func TestAStoredInputOpensNoSecret(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		there := newEcho(t)
		d.putSecret("token", "a-secret-value", 201)
		const task = `{"name":"task","version":"1","steps":[{"name":"do","type":"task","handler":"$http","input":"=input"}]}`
		d.want(d.ask("POST", "workflow-definitions", task, nil), 422, fault.Validation)
		def, _ := workflow.Parse([]byte(task))
		if _, err := runengine.Define(holdfast.InWorkspace(t.Context(), "default"), engine.Of(d.engine), def); err != nil {
			t.Fatal(err)
		}
		call := func(headers, secrets string) string {
			return fmt.Sprintf(`{"method":"POST","url":"%s/echo","headers":%s,"secrets":%s}`, there.URL, headers, secrets)
		}
		const header = `{"X-Token":"${secret:token}"}`
		own := fmt.Sprintf(`{"headers":["X-Token"],"origin":%q}`, there.URL)
		if r := d.runEnds(d.start("task@1", call(header, own)).ID, "FAILED"); r.Error == nil || !strings.Contains(*r.Error, "is reserved") {
			t.Errorf("got %v", r.Error)
		}

		d.define(fmt.Sprintf(`{"name":"w","version":"1","steps":[{"name":"do","type":"http","method":"POST","safety":"idempotent","url":"=\"%s/\" + input.path","retry":{"maxAttempts":1},"headers":{"X-Token":"${secret:token}"}}]}`, there.URL))
		if r := d.runEnds(d.start("w@1", `{"path":"a/../echo"}`).ID, "FAILED"); r.Error == nil || !strings.Contains(*r.Error, "nothing was sent") {
			t.Errorf("got %v", r.Error)
		}
		r := d.runEnds(d.start("w@1", `{"path":"fail"}`).ID, "FAILED")
		for what, set := range map[string]string{
			"of an earlier version":  "type = 'http', input = '" + call(header, "null") + "'",
			"with another header":    "type = 'http', input = '" + call(`{"X-Token":"a","X-Other":"${secret:token}"}`, own) + "'",
			"to another host":        "type = 'http', input = '" + call(header, `{"headers":["X-Token"],"origin":"https://example.com"}`) + "'",
			"of a task with a field": "type = 'task', input = '" + call(header, own) + "'",
		} {
			err := d.engine.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
				n, err := storetest.Exec(ctx, tx, "UPDATE holdfast_step SET "+set+" WHERE run = $1", r.ID)
				if err == nil && n != 1 {
					err = fmt.Errorf("changed %d steps", n)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			d.want(d.ask("POST", "workflow-runs/"+r.ID+"/retry", wire.Command{}, nil), 200, "")
			if r = d.runEnds(r.ID, "FAILED"); r.Error == nil || !strings.Contains(*r.Error, "nothing was sent: ") {
				t.Errorf("a call %s: got %v", what, r.Error)
			}
		}
		if all := there.calls("/echo"); len(all) > 0 {
			t.Errorf("got calls %v", all)
		}
	})
}

// TestAFormerSecretThatCannotSignIsSkipped verifies that messages are signed with the present secret only if the former one is not a
// signing secret or cannot be decrypted.
func TestAFormerSecretThatCannotSignIsSkipped(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		to := receive(t, nil)
		first := webhook.NewSecret()
		d.putSecret("sign", "cannot-sign", 201)
		d.want(d.ask("PUT", "secrets/sign", wire.PutSecret{Value: first, OverlapMs: 3_600_000}, nil), 200, "")
		w := d.hook(wire.NewWebhook{URL: to.URL, Events: []string{"paid"}, Secret: "secret:sign"})
		damage := func(text string) {
			t.Helper()
			err := d.engine.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
				n, err := storetest.Exec(ctx, tx, text)
				if err == nil && n != 1 {
					err = fmt.Errorf("changed %d rows", n)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		sent := func(secrets ...string) {
			t.Helper()
			d.emit("s", "paid")
			signed(t, to.next(t), secrets, nil)
		}
		sent(first)
		damage("UPDATE holdfast_named_secret SET former = 'x.y'")
		sent(first)
		var own wire.CreatedWebhook
		d.want(d.ask("POST", "webhooks/"+w.ID+"/rotate", wire.RotateWebhook{OverlapMs: 3_600_000}, &own), 200, "")
		sent(first, own.Secret)
		for _, former := range []string{"secret:gone", "x.y", "secret:unsigned"} {
			if former == "secret:unsigned" {
				d.putSecret("unsigned", "cannot-sign", 201)
			}
			damage("UPDATE holdfast_webhook SET former = '" + former + "'")
			sent(own.Secret)
		}
	})
}

// TestASignerCanSign verifies that a request that lets something be signed with a secret is refused if a transaction gives the
// secret a value that cannot sign meanwhile.
func TestASignerCanSign(t *testing.T) {
	eachHooked(t, func(t *testing.T, d *testAPI) {
		w := d.hook(wire.NewWebhook{URL: "http://127.0.0.1:1"})
		box, err := seal.New(sealingKey)
		if err != nil {
			t.Fatal(err)
		}
		const reference = "secret:sign"
		for path, use := range map[string]func() *http.Response{
			"handlers": func() *http.Response {
				return d.ask("PUT", "handlers/h", wire.PutHandler{Kind: "http", URL: "http://127.0.0.1:1", Secret: reference}, nil)
			},
			"webhooks": func() *http.Response {
				return d.ask("POST", "webhooks", wire.NewWebhook{URL: "http://127.0.0.1:1", Secret: reference}, nil)
			},
			"rotate": func() *http.Response {
				return d.ask("POST", "webhooks/"+w.ID+"/rotate", wire.RotateWebhook{Secret: reference}, nil)
			},
		} {
			d.ask("PUT", "secrets/sign", wire.PutSecret{Value: webhook.NewSecret()}, nil)
			used := make(chan *http.Response, 1)
			err := engine.Of(d.engine).Update(holdfast.InWorkspace(t.Context(), "default"), func(ctx context.Context, tx *store.Tx) error {
				_, _, err := secrets.Put(ctx, tx, box, secrets.PutArgs{Name: "sign", Value: "cannot-sign", By: "test"}, func() error { return nil })
				go func() { used <- use() }()
				if strings.HasSuffix(t.Name(), "postgres") { // on SQLite, transactions follow each other anyway
					testkit.Eventually(t, "the request waits", func() bool { return waitsForLock(t, d.engine) })
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if r := <-used; r.StatusCode != 400 {
				t.Errorf("%s: got status %d, want 400", path, r.StatusCode)
			}
		}
	})
}

// waitsForLock reports whether a transaction waits for a lock of another one.
func waitsForLock(t *testing.T, e *holdfast.Engine) (waits bool) {
	err := e.Update(context.WithoutCancel(t.Context()), func(ctx context.Context, tx holdfast.Tx) error {
		return postgres.Raw(tx).QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name <> 'holdfast groups')`).Scan(&waits)
	})
	if err != nil {
		t.Error(err)
	}
	return waits
}
