package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/wire"
)

// change makes a change of a scope, and checks the response: the state ("" for null), and the ETag,
// which is the version exactly if there is a state.
func (d *testAPI) change(method, path string, body any, version int64, changed bool, state string, headers ...string) *http.Response {
	d.t.Helper()
	var got wire.ChangedScope
	resp := d.ask(method, path, body, &got, headers...)
	d.want(resp, 200, "")
	tag := fmt.Sprintf("%q", fmt.Sprint(version))
	if state == "" {
		state, tag = "null", ""
	}
	if got.Version != version || got.Changed != changed || !strictjson.Equal(got.State, []byte(state)) || resp.Header.Get("ETag") != tag {
		d.t.Fatalf("%s %s returned %s with ETag %s, want version %d, changed %v, %s", method, path, textOf(resp), resp.Header.Get("ETag"), version, changed, state)
	}
	return resp
}

// scopeIs checks the state of a scope.
func (d *testAPI) scopeIs(path string, version int64, state string, headers ...string) {
	d.t.Helper()
	var got wire.Scope
	resp := d.ask("GET", path, nil, &got, headers...)
	d.want(resp, 200, "")
	if got.Version != version || !strictjson.Equal(got.State, []byte(state)) || resp.Header.Get("ETag") != fmt.Sprintf("%q", fmt.Sprint(version)) {
		d.t.Fatalf("%s is %s with ETag %s, want version %d and %s", path, textOf(resp), resp.Header.Get("ETag"), version, state)
	}
}

func TestEveryVerbOfScopes(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at = "scopes/cart/c1"
		d.want(d.ask("GET", at, nil, nil), 404, fault.NotFound)
		d.change("PATCH", at, `{"user":"ada","total":1,"deep":{"a":1,"b":2}}`, 0, true, `{"user":"ada","total":1,"deep":{"a":1,"b":2}}`)
		d.change("PATCH", at, `{"user":null,"deep":{"a":null,"c":[1]}}`, 1, true, `{"total":1,"deep":{"b":2,"c":[1]}}`)
		var told wire.List[wire.Event]
		d.want(d.ask("GET", "streams/$scope%2Fcart%2Fc1/events", nil, &told), 200, "")
		if len(told.Items) != 2 || told.Items[1].Name != "patch" || told.Items[1].Actor != "dev" {
			t.Errorf("got history %+v", told.Items)
		}
		d.change("PATCH", at, `{"deep":null,"total":1}`, 2, true, `{"total":1}`)
		d.change("PATCH", at, `{"total":1,"gone":null}`, 2, false, `{"total":1}`)
		d.change("POST", at+"/inc", `{"field":"total","by":-3}`, 3, true, `{"total":-2}`)
		d.change("POST", at+"/inc", `{"field":"visits"}`, 4, true, `{"total":-2,"visits":1}`)
		d.change("POST", at+"/inc", `{"field":"visits","by":0}`, 4, false, `{"total":-2,"visits":1}`)
		d.change("PATCH", at, `{"total":null,"visits":null}`, 5, true, `{}`)
		d.change("POST", at+"/push", `{"field":"items","value":{"x":1}}`, 6, true, `{"items":[{"x":1}]}`)
		d.change("POST", at+"/push", `{"field":"items","value":null}`, 7, true, `{"items":[{"x":1},null]}`)
		d.change("PATCH", at, `{"items":null}`, 8, true, `{}`)
		d.change("PUT", at+"/records/by/k1", `null`, 9, true, `{"by":{"k1":null}}`)
		d.change("PUT", at+"/records/by/k2", ` "text" `, 10, true, `{"by":{"k1":null,"k2":"text"}}`)
		d.change("PUT", at+"/records/by/k2", `"text"`, 10, false, `{"by":{"k1":null,"k2":"text"}}`)
		d.change("DELETE", at+"/records/by/k1", nil, 11, true, `{"by":{"k2":"text"}}`)
		d.change("DELETE", at+"/records/by/k1", nil, 11, false, `{"by":{"k2":"text"}}`)
		d.scopeIs(at, 11, `{"by":{"k2":"text"}}`)
		head := d.ask("HEAD", at, nil, nil)
		if head.StatusCode != 200 || head.Header.Get("ETag") != `"11"` || textOf(head) != "" {
			t.Errorf("HEAD returned status %d %v", head.StatusCode, head.Header)
		}
		d.change("DELETE", at, nil, 12, true, "")
		d.change("DELETE", at, nil, -1, false, "")
		d.change("DELETE", at+"/records/by/k2", nil, -1, false, "")
		d.want(d.ask("GET", at, nil, nil), 404, fault.NotFound)
		d.change("POST", at+"/inc", `{"field":"n","by":9}`, 13, true, `{"n":9}`) // no version is reused
	})
}

// TestNamesOfScopesInThePath verifies that names in the path are decoded correctly, also with
// slashes and dots.
func TestNamesOfScopesInThePath(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		var got wire.Scope
		for i, id := range []string{"a%2Fb", "a%252Fb", "%2E%2E", "%F0%9F%98%80", "a%20b", "records", "x'%22%5C$."} {
			at := "scopes/user/" + id
			d.change("PUT", at+"/records/f%2Fg/%2E", fmt.Sprint(i), 0, true, fmt.Sprintf(`{"f/g":{".":%d}}`, i))
			d.scopeIs(at, 0, fmt.Sprintf(`{"f/g":{".":%d}}`, i))
		}
		d.want(d.ask("GET", "scopes/user/a%2Fb", nil, &got), 200, "")
		if got.ID != "a/b" || got.Kind != "user" {
			t.Errorf("got kind %s, id %s, want user a/b", got.Kind, got.ID)
		}
		for path, want := range map[string]int{
			"scopes/a%2Fb/c": 400, "scopes/user/" + strings.Repeat("x", 256): 400, "scopes/user/a%00b": 400, "scopes/user/%ff": 400, "scopes/user/a%0ab": 400,
			"scopes/user/a/b": 404, "scopes/user/": 404, "scopes/user/..": 404,
		} {
			if resp := d.raw("GET /api/v1/" + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); resp.StatusCode != want {
				t.Errorf("%.40s: got status %d, want %d", path, resp.StatusCode, want)
			}
		}
		d.want(d.ask("PUT", "scopes/user/u/records/"+strings.Repeat("f", 256)+"/k", `1`, nil), 400, fault.Validation)
	})
}

// TestConditionsOfChanges verifies the result of a change under each condition, on a scope at
// version 1, on a missing one, and on a deleted one.
func TestConditionsOfChanges(t *testing.T) {
	cases := []struct {
		name, header, value string
		there, none         int
	}{
		{"its version", "If-Match", `"1"`, 200, 412},
		{"an old one", "If-Match", `"0"`, 412, 412},
		{"one that will be", "If-Match", `"2"`, 412, 412},
		{"the largest", "If-Match", `"9223372036854775807"`, 412, 412},
		{"any", "If-Match", `*`, 200, 412},
		{"none", "If-None-Match", `*`, 412, 200},
		{"weak", "If-Match", `W/"1"`, 400, 400},
		{"a list", "If-Match", `"0", "1"`, 400, 400},
		{"a list of any", "If-Match", `*, "1"`, 400, 400},
		{"bare", "If-Match", `1`, 400, 400},
		{"half quoted", "If-Match", `"1`, 400, 400},
		{"quoted twice", "If-Match", `""1""`, 400, 400},
		{"a sign", "If-Match", `"+1"`, 400, 400},
		{"a zero before it", "If-Match", `"01"`, 400, 400},
		{"below 0", "If-Match", `"-1"`, 400, 400},
		{"2^63", "If-Match", `"9223372036854775808"`, 400, 400},
		{"a word", "If-Match", `"abc"`, 400, 400},
		{"quotes alone", "If-Match", `""`, 400, 400},
		{"empty", "If-Match", ``, 400, 400},
		{"a version that must not be", "If-None-Match", `"1"`, 400, 400},
		{"weak, that must not be", "If-None-Match", `W/"1"`, 400, 400},
		{"empty, that must not be", "If-None-Match", ``, 400, 400},
	}
	verbs := []struct {
		method, path string
		body         any
	}{
		{"PATCH", "", `{"n":7}`}, {"POST", "/inc", `{"field":"n"}`}, {"POST", "/push", `{"field":"l","value":1}`},
		{"PUT", "/records/r/k", `1`}, {"DELETE", "/records/r/k", nil}, {"DELETE", "", nil},
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for i, c := range cases {
			for j, v := range verbs {
				for _, key := range []string{"", fmt.Sprintf("k%d-%d", i, j)} {
					there, none := fmt.Sprintf("scopes/a/%d-%d%s", i, j, key), fmt.Sprintf("scopes/b/%d-%d%s", i, j, key)
					d.change("PATCH", there, `{"n":0,"r":{"k":0}}`, 0, true, `{"n":0,"r":{"k":0}}`)
					d.change("POST", there+"/inc", `{"field":"n"}`, 1, true, `{"n":1,"r":{"k":0}}`)
					for at, want := range map[string]int{there: c.there, none: c.none} {
						headers := []string{c.header, c.value}
						if key != "" {
							headers = append(headers, keyHeader, key+at[7:8])
						}
						resp := d.ask(v.method, at+v.path, v.body, nil, headers...)
						if resp.StatusCode != want {
							t.Fatalf("%s, %s %s on %s: got status %d %s, want %d", c.name, v.method, v.path, at, resp.StatusCode, textOf(resp), want)
						}
						if want == 200 {
							continue
						}
						code := map[int]fault.Code{400: fault.Validation, 412: fault.PreconditionFailed}[want]
						p := d.want(resp, want, code)
						last := map[string]float64{there: 1, none: -1}[at]
						if want == 412 && p.Fields["lastVersion"] != last {
							t.Errorf("%s, %s: got problem fields %v, want lastVersion %v", c.name, at, p.Fields, last)
						}
						if want == 412 && c.value != "*" && p.Fields["expectedVersion"] == nil {
							t.Errorf("%s, %s: got problem fields %v, want expectedVersion", c.name, at, p.Fields)
						}
						if resp.Header.Get("ETag") != "" {
							t.Errorf("%s, %s: the problem response has an ETag", c.name, at)
						}
					}
					if c.there != 200 {
						d.scopeIs(there, 1, `{"n":1,"r":{"k":0}}`)
					}
					if c.none != 200 {
						d.want(d.ask("GET", none, nil, nil), 404, fault.NotFound)
					}
				}
			}
		}
		const at = "scopes/a/both"
		for _, two := range [][]string{{"If-Match", `"0"`, "If-None-Match", "*"}, {"If-Match", `"0"`, "If-Match", `"0"`}, {"If-None-Match", "*", "If-None-Match", "*"}} {
			d.want(d.ask("PATCH", at, `{}`, nil, two...), 400, fault.Validation)
		}
		for value, want := range map[string]string{`W/"1"`: "without W/", `"0", "1"`: "send one version", `1`: "in quotes"} { // the error says what to do
			if p := d.want(d.ask("PATCH", at, `{}`, nil, "If-Match", value), 400, fault.Validation); !strings.Contains(p.Detail, want) {
				t.Errorf("If-Match: %s: got detail %q, want %q", value, p.Detail, want)
			}
		}
		d.change("PATCH", at, `{}`, 0, true, `{}`, "If-None-Match", "*")
		d.change("DELETE", at, nil, 1, true, "", "If-Match", `"0"`)
		d.want(d.ask("PATCH", at, `{"a":1}`, nil, "If-Match", `"0"`), 412, fault.PreconditionFailed)
		d.want(d.ask("PATCH", at, `{"a":1}`, nil, "If-Match", `"1"`), 412, fault.PreconditionFailed)
		d.change("PATCH", at, `{"a":1}`, 2, true, `{"a":1}`, "If-None-Match", "*")
	})
}

// TestAScopeThatIsKnown verifies that a known state is not sent again.
func TestAScopeThatIsKnown(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at = "scopes/cart/c"
		d.want(d.ask("GET", at, nil, nil, "If-None-Match", "*"), 404, fault.NotFound)
		d.change("PATCH", at, `{"a":1}`, 0, true, `{"a":1}`)
		d.change("PATCH", at, `{"a":2}`, 1, true, `{"a":2}`)
		for value, want := range map[string]int{`"1"`: 304, `W/"1"`: 304, `"0", "1"`: 304, `"x","1"`: 304, `*`: 304, `"0"`: 200, `"11"`: 200, `1`: 200, ``: 200, `W/"0"`: 200} {
			for _, method := range []string{"GET", "HEAD"} {
				resp := d.ask(method, at, nil, nil, "If-None-Match", value)
				text := textOf(resp)
				if resp.StatusCode != want || resp.Header.Get("ETag") != `"1"` || want == 304 && (text != "" || resp.Header.Get("Content-Type") != "") || want == 200 && (text == "") != (method == "HEAD") {
					t.Errorf("%s with %s returned status %d %v %q, want %d", method, value, resp.StatusCode, resp.Header, text, want)
				}
			}
		}
		resp := d.ask("GET", at, nil, nil, "If-None-Match", `"0"`, "If-None-Match", `"1"`)
		if resp.StatusCode != 304 {
			t.Errorf("with two headers: got status %d, want 304", resp.StatusCode)
		}
	})
}

// TestAReadOfAScopeThatHasMoved verifies that a read of a scope that does not have the expected
// version is refused like a change.
func TestAReadOfAScopeThatHasMoved(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at = "scopes/cart/c"
		for _, value := range []string{`"0"`, `*`} { // a missing scope has no tag to compare
			d.want(d.ask("GET", at, nil, nil, "If-Match", value), 404, fault.NotFound)
		}
		d.change("PATCH", at, `{"a":1}`, 0, true, `{"a":1}`)
		d.change("PATCH", at, `{"a":2}`, 1, true, `{"a":2}`)
		for value, want := range map[string]int{
			`"1"`: 200, `*`: 200, `"0", "1"`: 200, `"x","1"`: 200,
			`"99"`: 412, `"0"`: 412, `"11"`: 412, `"0", "2"`: 412, `W/"1"`: 412, `1`: 412, `"x"`: 412, ``: 412,
		} {
			var got wire.Scope
			resp := d.ask("GET", at, nil, &got, "If-Match", value)
			if want == 200 {
				if d.want(resp, 200, ""); got.Version != 1 || string(got.State) != `{"a":2}` || resp.Header.Get("ETag") != `"1"` {
					t.Errorf("If-Match: %s: got %+v, %v", value, got, resp.Header)
				}
			} else if p := d.want(resp, 412, fault.PreconditionFailed); p.Fields["lastVersion"] != 1.0 || resp.Header.Get("ETag") != "" {
				t.Errorf("If-Match: %s: got problem fields %v, %v", value, p.Fields, resp.Header)
			} else if one, err := strconv.ParseFloat(strings.Trim(value, `"`), 64); err == nil && value != `1` && p.Fields["expectedVersion"] != one {
				t.Errorf("If-Match: %s: got problem fields %v, want expectedVersion %v", value, p.Fields, one)
			}
			if head := d.ask("HEAD", at, nil, nil, "If-Match", value); head.StatusCode != want || textOf(head) != "" {
				t.Errorf("HEAD with If-Match: %s returned status %d, want %d", value, head.StatusCode, want)
			}
		}
		for two, want := range map[[4]string]int{
			{"If-Match", `"0"`, "If-Match", `"1"`}:      200,
			{"If-Match", `"0"`, "If-Match", `"2"`}:      412,
			{"If-Match", `"1"`, "If-None-Match", `"1"`}: 304,
			{"If-Match", `"1"`, "If-None-Match", `"0"`}: 200,
			{"If-Match", `"0"`, "If-None-Match", `"1"`}: 412, // If-Match is evaluated first
		} {
			if resp := d.ask("GET", at, nil, nil, two[:]...); resp.StatusCode != want {
				t.Errorf("with headers %v: got status %d, want %d", two, resp.StatusCode, want)
			}
		}
		d.scopeIs(at, 1, `{"a":2}`)
	})
}

// TestWhatAScopeRefuses verifies that a violated rule is reported with a pointer, and changes
// nothing, with and without a key.
func TestWhatAScopeRefuses(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	cases := []struct {
		name, method, path, body string
		status                   int
	}{
		{"inc of a text", "POST", "/inc", `{"field":"text"}`, 422},
		{"inc of a fraction", "POST", "/inc", `{"field":"half"}`, 422},
		{"inc beyond 64 bits", "POST", "/inc", `{"field":"most"}`, 422},
		{"push to a number", "POST", "/push", `{"field":"most","value":1}`, 422},
		{"a record in a text", "PUT", "/records/text/k", `1`, 422},
		{"a record out of a text", "DELETE", "/records/text/k", ``, 422},
		{"inc by a fraction", "POST", "/inc", `{"field":"n","by":1.5}`, 400},
		{"inc by a text", "POST", "/inc", `{"field":"n","by":"1"}`, 400},
		{"inc by 2^63", "POST", "/inc", `{"field":"n","by":9223372036854775808}`, 400},
		{"inc of nothing", "POST", "/inc", `{}`, 400},
		{"inc of an empty name", "POST", "/inc", `{"field":""}`, 400},
		{"push of nothing", "POST", "/push", `{"field":"l"}`, 400},
		{"push to nothing", "POST", "/push", `{"value":1}`, 400},
		{"an unknown member", "POST", "/push", `{"field":"l","value":1,"x":1}`, 400},
		{"a member twice", "POST", "/push", `{"field":"l","value":1,"value":2}`, 400},
		{"a member twice within", "POST", "/push", `{"field":"l","value":{"a":1,"a":2}}`, 400},
		{"a patch with a member twice", "PATCH", "", `{"a":1,"a":2}`, 400},
		{"a patch with a member twice within", "PATCH", "", `{"a":{"b":1,"b":2}}`, 400},
		{"a patch with case twins", "PATCH", "", `{"a":1,"A":2}`, 400},
		{"a patch that is null", "PATCH", "", `null`, 400},
		{"a patch that is a list", "PATCH", "", `[1]`, 400},
		{"a patch that is empty", "PATCH", "", ``, 400},
		{"two patches", "PATCH", "", `{}{}`, 400},
		{"half a patch", "PATCH", "", `{"a":`, 400},
		{"a patch with NUL", "PATCH", "", `{"a":"\u0000"}`, 400},
		{"a patch of depth 65", "PATCH", "", `{"a":` + deep(64) + `}`, 400},
		{"a record that is empty", "PUT", "/records/r/k", ``, 400},
		{"a record of depth 63", "PUT", "/records/r/k", deep(63), 400},
		{"a record with a member twice", "PUT", "/records/r/k", `{"a":1,"a":2}`, 400},
		{"1e401", "PUT", "/records/r/k", `1e401`, 400},
		{"two records", "PUT", "/records/r/k", `1 2`, 400},
		{"a body of a delete", "DELETE", "", `{"a":1}`, 400},
		{"a patch that is too large", "PATCH", "", `{"a":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
		{"a state that becomes too large", "PATCH", "", `{"b":"` + strings.Repeat("x", 1<<19) + `"}`, 413},
	}
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at = "scopes/cart/c"
		state := `{"text":"t","half":1.5,"most":9223372036854775807,"a":"` + strings.Repeat("y", 1<<19) + `"}`
		d.change("PATCH", at, state, 0, true, state)
		for i, c := range cases {
			for _, headers := range [][]string{nil, {keyHeader, fmt.Sprint("k", i)}} {
				var body any = c.body
				if c.body == "" && c.method == "DELETE" {
					body = nil
				}
				resp := d.ask(c.method, at+c.path, body, nil, headers...)
				p := d.refused(c.name, resp)
				if resp.StatusCode != c.status || (c.status == 422) != (len(p.Violations) > 0) {
					t.Errorf("%s: got status %d %.300s, want %d", c.name, resp.StatusCode, textOf(resp), c.status)
				}
			}
		}
		d.scopeIs(at, 0, state)
		for kind, want := range map[string]int{"application/merge-patch+json": 200, "Application/Merge-Patch+JSON; charset=utf-8": 200, "application/json": 200,
			"application/json-patch+json": 415, "text/plain": 415, "": 415, "application/yaml": 415, "application/merge-patch+json; charset=latin1": 415} {
			if resp := d.send("PATCH", "scopes/cart/"+fmt.Sprint(want), kind, strings.NewReader(`{"a":1}`)); resp.StatusCode != want {
				t.Errorf("%s: got status %d %s, want %d", kind, resp.StatusCode, textOf(resp), want)
			}
		}
		d.want(d.send("POST", at+"/inc", "application/merge-patch+json", strings.NewReader(`{"field":"n"}`)), 415, fault.UnsupportedMediaType)
		d.want(d.ask("GET", at+"?version=0", nil, nil), 400, fault.Validation)
	})
}

// TestBigNumbersInScopes verifies that an integer of any permitted length is returned as written,
// by every route.
func TestBigNumbersInScopes(t *testing.T) {
	const big, next = "9007199254740993", "9007199254740994"
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		has := func(resp *http.Response, want string) {
			t.Helper()
			if text := textOf(resp); resp.StatusCode != 200 || !strings.Contains(text, want) {
				t.Errorf("got status %d %s, want %s", resp.StatusCode, text, want)
			}
		}
		const at = "scopes/cart/c"
		for range 2 { // the second time from the stored response
			has(d.ask("PATCH", at, `{"n":`+big+`,"deep":[{"m":-`+big+`}]}`, nil, keyHeader, "k1"), "-"+big)
			has(d.ask("PUT", at+"/records/r/k", big, nil, keyHeader, "k2"), `{"k":`+big+`}`)
			has(d.ask("POST", at+"/push", `{"field":"l","value":`+big+`}`, nil, keyHeader, "k3"), `[`+big+`]`)
			has(d.ask("POST", at+"/inc", `{"field":"n"}`, nil, keyHeader, "k4"), next)
			has(d.ask("POST", at+"/inc", `{"field":"m","by":`+big+`}`, nil, keyHeader, "k5"), `"m":`+big)
		}
		has(d.ask("GET", at, nil, nil), next)
		l := d.listen(at)
		if e := l.next(); !strings.Contains(e.text, next) || !strings.Contains(e.text, "-"+big) {
			t.Errorf("got event %s, want %s", e.text, next)
		}
		l.stop()
	})
}

// TestManyChangesUnderOneKey verifies that of fifty concurrent requests with one key one is carried
// out, and that all get its response, including the headers.
func TestManyChangesUnderOneKey(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for name, c := range map[string]struct{ method, path, body, state string }{
			"patch":  {"PATCH", "", `{"a":1,"b":2}`, `{"n":0,"a":1,"b":2}`},
			"inc":    {"POST", "/inc", `{"field":"n"}`, `{"n":1}`},
			"push":   {"POST", "/push", `{"field":"l","value":1}`, `{"n":0,"l":[1]}`},
			"record": {"PUT", "/records/r/k", `1`, `{"n":0,"r":{"k":1}}`},
			"delete": {"DELETE", "", ``, ``},
		} {
			at := "scopes/cart/" + name
			d.change("PATCH", at, `{"n":0}`, 0, true, `{"n":0}`)
			var mu sync.Mutex
			firsts, answers := 0, make(map[string]int)
			holdfasttest.Race(t, 50, func(int) error {
				var body any
				if c.body != "" {
					body = c.body
				}
				resp := d.ask(c.method, at+c.path, body, nil, keyHeader, "k "+name, "If-Match", `"0"`)
				mu.Lock()
				defer mu.Unlock()
				if resp.Header.Get(replayedHeader) != "true" {
					firsts++
				}
				answers[fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("ETag"), " ", textOf(resp))]++
				return nil
			})
			if firsts != 1 || len(answers) != 1 {
				t.Errorf("%s: %d responses were not replays, want 1; got responses %v", name, firsts, answers)
			}
			d.change(c.method, at+c.path, map[bool]any{true: c.body}[c.body != ""], 1, true, c.state, keyHeader, "k "+name, "If-Match", `"0"`)
			if c.state != "" {
				d.scopeIs(at, 1, c.state)
			}
		}
	})
}

// TestAKeyOfAChange verifies that a key belongs to one request, including its conditions, and that
// a refusal frees it.
func TestAKeyOfAChange(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at = "scopes/cart/c"
		d.want(d.ask("POST", at+"/inc", `{"field":"n"}`, nil, keyHeader, "k", "If-Match", "*"), 412, fault.PreconditionFailed)
		d.change("PATCH", at, `{}`, 0, true, `{}`)
		first := d.change("POST", at+"/inc", `{"field":"n"}`, 1, true, `{"n":1}`, keyHeader, "k", "If-Match", "*")
		d.change("POST", at+"/inc", `{"field":"n"}`, 2, true, `{"n":2}`)
		again := d.change("POST", at+"/inc", `{"field":"n"}`, 1, true, `{"n":1}`, keyHeader, "k", "If-Match", "*")
		if first.Header.Get(replayedHeader) != "" || again.Header.Get(replayedHeader) != "true" || textOf(first) != textOf(again) {
			t.Errorf("first call returned %s, second returned %s, want a replay", textOf(first), textOf(again))
		}
		for name, headers := range map[string][]string{"nothing": nil, "a version": {"If-Match", `"2"`}, "none": {"If-None-Match", "*"}} {
			resp := d.ask("POST", at+"/inc", `{"field":"n"}`, nil, append(headers, keyHeader, "k")...)
			if resp.StatusCode != 422 || d.problem(resp).Code != fault.KeyMismatch {
				t.Errorf("with %s: got status %d %s, want 422 KEY_MISMATCH", name, resp.StatusCode, textOf(resp))
			}
		}
		d.want(d.ask("POST", at+"/inc", `{"field":"n","by":2}`, nil, keyHeader, "k", "If-Match", "*"), 422, fault.KeyMismatch)
		d.change("DELETE", at+"/records/r/k", nil, 2, false, `{"n":2}`, keyHeader, "nothing") // an unchanged result is stored too
		d.change("PATCH", at, `{"r":{"k":1}}`, 3, true, `{"n":2,"r":{"k":1}}`)
		d.change("DELETE", at+"/records/r/k", nil, 2, false, `{"n":2}`, keyHeader, "nothing")
		d.scopeIs(at, 3, `{"n":2,"r":{"k":1}}`)
	})
}

// TestOneOfTwoWithTheSameVersion verifies that of two changes with the same expected version one is
// made, and that the other gets the current version.
func TestOneOfTwoWithTheSameVersion(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at, rounds = "scopes/cart/c", 20
		d.change("PATCH", at, `{"by":null}`, 0, true, `{}`)
		for version := range rounds {
			seen := fmt.Sprintf(`"%d"`, version)
			got := make([]*http.Response, 2)
			holdfasttest.Race(t, 2, func(i int) error {
				headers := []string{"If-Match", seen}
				if version%2 == 1 {
					headers = append(headers, keyHeader, fmt.Sprint("k", version, i))
				}
				got[i] = d.ask("PATCH", at, fmt.Sprintf(`{"by":"%d-%d"}`, version, i), nil, headers...)
				return nil
			})
			winner := 0
			if got[1].StatusCode == 200 {
				winner = 1
			}
			d.want(got[winner], 200, "")
			p := d.want(got[1-winner], 412, fault.PreconditionFailed)
			if p.Fields["expectedVersion"] != float64(version) || p.Fields["lastVersion"] != float64(version+1) {
				t.Errorf("got problem fields %v", p.Fields)
			}
			d.scopeIs(at, int64(version)+1, fmt.Sprintf(`{"by":"%d-%d"}`, version, winner))
		}
	})
}

// TestNobodySeesHalfAPatch verifies that all members of a patch become visible together, to reads,
// to a watcher, and in responses to changes.
func TestNobodySeesHalfAPatch(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at, writes = "scopes/cart/c", 60
		patch := func(n int) string { return fmt.Sprintf(`{"a":%d,"b":%d,"c":{"d":%d}}`, n, n, n) }
		half := func(text string) bool {
			var x struct {
				State struct {
					A, B int
					C    struct{ D int }
				}
			}
			return json.Unmarshal([]byte(text), &x) != nil || x.State.A != x.State.B || x.State.B != x.State.C.D
		}
		d.want(d.ask("PATCH", at, patch(0), nil), 200, "")
		l := d.listen(at)
		var over atomic.Bool
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				for n := 0; !over.Load() || n == 0; n++ {
					if text := textOf(d.ask("GET", at, nil, nil)); half(text) {
						t.Errorf("read a partial change: %s", text)
					}
				}
			})
		}
		holdfasttest.Race(t, 2, func(i int) error {
			for n := range writes {
				if text := textOf(d.ask("PATCH", at, patch(2*n+i+1), nil)); half(text) {
					t.Errorf("got a partial change: %s", text)
				}
			}
			return nil
		})
		over.Store(true)
		readers.Wait()
		last := d.ask("GET", at, nil, nil).Header.Get("ETag")
		for e := (sse{}); `"`+e.id+`"` != last; {
			if e = l.next(); half(e.text) {
				t.Fatalf("got an event with a partial change: %s", e.text)
			}
		}
		l.stop()
	})
}

// wantNext checks the next message of a watcher; "" means that the scope does not exist.
func (l *listener) wantNext(kind, id string, version int64, state string) {
	l.t.Helper()
	e := l.next()
	event, want := "state", state
	if state == "" {
		event, want = "deleted", "null"
	}
	var s wire.Scope
	if err := json.Unmarshal([]byte(e.text), &s); err != nil {
		l.t.Fatal(err)
	}
	if e.id != fmt.Sprint(version) || e.event != event || s.Kind != kind || s.ID != id || s.Version != version || !strictjson.Equal(s.State, []byte(want)) {
		l.t.Fatalf("got event %s %s %s, want %s at %d: %s", e.id, e.event, e.text, event, version, want)
	}
}

// TestAScopeIsWatched verifies that a watcher gets the current state of a scope, even if it does
// not exist, then every change that lasts a while, whatever its source, and after a reconnect only
// what is new.
func TestAScopeIsWatched(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at = "scopes/cart/a%2Fb"
		l := d.listen(at)
		if l.resp.StatusCode != 200 || l.resp.Header.Get("Content-Type") != "text/event-stream" || l.resp.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("got status %d %v", l.resp.StatusCode, l.resp.Header)
		}
		l.wantNext("cart", "a/b", -1, "")
		d.change("PATCH", at, `{"n":1}`, 0, true, `{"n":1}`)
		l.wantNext("cart", "a/b", 0, `{"n":1}`)
		d.change("PATCH", at, `{"n":1}`, 0, false, `{"n":1}`)
		d.change("PATCH", "scopes/cart/other", `{"n":1}`, 0, true, `{"n":1}`)
		d.want(d.ask("PATCH", at, `{"n":9}`, nil, "X-Holdfast-Workspace", "elsewhere"), 200, "")
		d.change("POST", at+"/inc", `{"field":"n"}`, 1, true, `{"n":2}`, keyHeader, "k") // in a transaction
		l.wantNext("cart", "a/b", 1, `{"n":2}`)
		if _, err := scope.In[json.RawMessage](d.engine, "cart", "a/b").Push(t.Context(), "l", 1); err != nil { // directly in the engine
			t.Fatal(err)
		}
		l.wantNext("cart", "a/b", 2, `{"n":2,"l":[1]}`)
		d.change("DELETE", at, nil, 3, true, "")
		l.wantNext("cart", "a/b", -1, "")
		l.stop()

		l = d.listen(at, "Last-Event-ID", "-1")
		d.change("PATCH", at, `{}`, 4, true, `{}`)
		l.wantNext("cart", "a/b", 4, `{}`)
		l.stop()
		l = d.listen(at, "Last-Event-ID", "4")
		d.change("POST", at+"/inc", `{"field":"n"}`, 5, true, `{"n":1}`)
		l.wantNext("cart", "a/b", 5, `{"n":1}`)
		l.stop()
		l = d.listen(at, "Last-Event-ID", "2")
		l.wantNext("cart", "a/b", 5, `{"n":1}`)
		d.api.Stop()
		if rest, err := io.ReadAll(l.in); err != nil || len(rest) > 0 {
			t.Errorf("stream ended with %q, %v, want a clean end", rest, err)
		}
	})
}

// TestWhatCannotBeWatched verifies that an invalid watch is refused before the stream starts.
func TestWhatCannotBeWatched(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for _, bad := range []string{"x", "-2", "1.5", "p1", "9223372036854775808", `"1"`, "1 2"} {
			d.want(d.ask("GET", "scopes/cart/c", nil, nil, "Accept", "text/event-stream", "Last-Event-ID", bad), 400, fault.Validation)
		}
		d.want(d.ask("GET", "scopes/a%2Fb/c", nil, nil, "Accept", "text/event-stream"), 400, fault.Validation)
		d.want(d.ask("GET", "scopes/cart/"+strings.Repeat("x", 256), nil, nil, "Accept", "text/event-stream"), 400, fault.Validation)
		resp := d.ask("HEAD", "scopes/cart/c", nil, nil, "Accept", "text/event-stream")
		if resp.StatusCode != 404 { // a HEAD does not wait
			t.Errorf("HEAD returned status %d, want 404", resp.StatusCode)
		}
	})
}

// TestScopesOfAnotherWorkspace verifies that a scope of another workspace does not exist, for every
// method.
func TestScopesOfAnotherWorkspace(t *testing.T) {
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		const at = "scopes/cart/c"
		other := []string{"X-Holdfast-Workspace", "other"}
		d.change("PATCH", at, `{"n":1,"r":{"k":1}}`, 0, true, `{"n":1,"r":{"k":1}}`)
		d.want(d.ask("GET", at, nil, nil, other...), 404, fault.NotFound)
		d.want(d.ask("PATCH", at, `{"n":2}`, nil, append(other, "If-Match", `"0"`)...), 412, fault.PreconditionFailed)
		d.change("DELETE", at, nil, -1, false, "", other...)
		d.change("DELETE", at+"/records/r/k", nil, -1, false, "", other...)
		l := d.listen(at, other...)
		l.wantNext("cart", "c", -1, "")
		d.change("POST", at+"/inc", `{"field":"n"}`, 0, true, `{"n":1}`, append(other, "If-None-Match", "*")...)
		l.wantNext("cart", "c", 0, `{"n":1}`)
		d.change("DELETE", at, nil, 1, true, "", other...)
		d.scopeIs(at, 0, `{"n":1,"r":{"k":1}}`)
		l.stop()
	})
}

// TestAChangeThatTakesTooLong verifies that a change that waits longer than its kind allows is a
// 503, and is never made.
func TestAChangeThatTakesTooLong(t *testing.T) {
	kinds := scope.Kinds(scope.Kind{Name: "quick", Budget: 50 * time.Millisecond})
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		errNothing := errors.New("nothing is to be changed")
		begun, free, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		release := sync.OnceFunc(func() { close(free) })
		defer release()
		patient := scope.In[json.RawMessage](d.engine, "quick", "c", scope.Budget(-1)) // this machine may be slow
		go func() {
			_, err := patient.Atomic(context.Background(), func(context.Context, json.RawMessage) (json.RawMessage, error) {
				close(begun)
				<-free
				return nil, errNothing
			})
			ended <- err
		}()
		<-begun
		for _, header := range [][]string{nil, {"Idempotency-Key", "k"}} {
			p := d.want(d.ask("PATCH", "scopes/quick/c", `{"a":1}`, nil, header...), 503, fault.MutationTimeout)
			if p.Fields["budgetMs"] != 50.0 {
				t.Errorf("got problem fields %v, want budgetMs 50", p.Fields)
			}
		}
		d.change("PATCH", "scopes/other/c", `{"a":1}`, 0, true, `{"a":1}`)
		release()
		if err := <-ended; !errors.Is(err, errNothing) {
			t.Errorf("function returned %v, want errNothing", err)
		}
		d.want(d.ask("GET", "scopes/quick/c", nil, nil), 404, fault.NotFound)
		if now, err := patient.Inc(t.Context(), "n", 1); err != nil || now.Version != 0 {
			t.Errorf("next change returned %+v, %v, want version 0", now, err)
		}
	}, kinds)
}

// TestARepetitionDoesNotWaitInTheLine verifies that a repeated request gets its response
// immediately, even while the queue of its scope is occupied for longer than the budget: if it were
// told that the change is never made, its caller would make it again under another key.
func TestARepetitionDoesNotWaitInTheLine(t *testing.T) {
	kinds := scope.Kinds(scope.Kind{Name: "quick", Budget: 50 * time.Millisecond})
	eachTestAPI(t, httpapi.Options{NoKeys: true}, func(t *testing.T, d *testAPI) {
		for d.ask("POST", "scopes/quick/c/inc", `{"field":"n"}`, nil, "Idempotency-Key", "k").StatusCode == 503 {
			continue // this machine is slow: the key makes the retry safe
		}
		begun, free, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		defer func() { close(free); <-ended }()
		go func() {
			_, err := scope.In[json.RawMessage](d.engine, "quick", "c", scope.Budget(-1)).Atomic(context.Background(),
				func(_ context.Context, now json.RawMessage) (json.RawMessage, error) {
					close(begun)
					<-free
					return now, nil
				})
			ended <- err
		}()
		<-begun
		var now wire.ChangedScope
		r := d.ask("POST", "scopes/quick/c/inc", `{"field":"n"}`, &now, "Idempotency-Key", "k")
		if r.StatusCode != 200 || r.Header.Get("Idempotency-Replayed") != "true" || now.Version != 0 || !now.Changed {
			t.Errorf("repeated request returned status %d, %+v, want a replay", r.StatusCode, now)
		}
		d.want(d.ask("POST", "scopes/quick/c/inc", `{"field":"m"}`, nil, "Idempotency-Key", "k"), 422, fault.KeyMismatch)
		d.want(d.ask("POST", "scopes/quick/c/inc", `{"field":"n"}`, nil, "Idempotency-Key", "l"), 503, fault.MutationTimeout)
	}, kinds)
}

// TestScopesInTheDocument verifies that the OpenAPI document describes the tags, both body types,
// and the streams.
func TestScopesInTheDocument(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{NoKeys: true})
	s := d.spec()
	for _, r := range d.api.Routes() {
		if !strings.HasPrefix(r.Path, "scopes/{kind}/") {
			continue
		}
		text, _ := json.Marshal(s.operation(r))
		want := []string{`"ETag"`, `"If-None-Match"`}
		switch {
		case r.ID == "getScope":
			want = append(want, `"304"`, `"text/event-stream"`)
		case r.ID == "patchScope":
			want = append(want, `"application/merge-patch+json"`, `"application/json"`)
			fallthrough
		default:
			want = append(want, `"If-Match"`, `"Idempotency-Key"`)
		}
		for _, w := range want {
			if !bytes.Contains(text, []byte(w)) {
				t.Errorf("%s lacks %s: %s", r.ID, w, text)
			}
		}
	}
}
