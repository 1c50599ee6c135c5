package secretref_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/secretref"
)

func TestReferencesAreFound(t *testing.T) {
	for text, want := range map[string]string{"": "", "Bearer ${secret:a}": "a", "${secret:a.b-c_1}${secret:b}": "a.b-c_1,b", "$secret:a ${a} {secret:a}": ""} {
		names, err := secretref.Names(text)
		if got := strings.Join(names, ","); err != nil || got != want {
			t.Errorf("%q refers to %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"${secret:", "${secret:}", "${secret:-a}", "${secret:a b}", "${secret:a} ${secret:b"} {
		if names, err := secretref.Names(text); err == nil {
			t.Errorf("%q refers to %q, want an error", text, names)
		}
	}
	if got := secretref.Expand("x ${secret:a}${secret:b} ${secret:c", func(name string) string { return "<" + name + "${secret:b}>" }); got != "x <a${secret:b}><b${secret:b}> ${secret:c" {
		t.Errorf("expanded to %q: a value must not be expanded", got)
	}
}

func TestValuesAreRemoved(t *testing.T) {
	var r secretref.Redactor
	r.Add("a", `va"l<u>e/1`)
	r.Add("b", `va"l<u>e/1-and-more`)
	r.Add("n", "12345678")
	r.Add("c", "dXNlcjphLXBhc3N3b3Jk")
	for _, c := range [][2]string{
		{`{"x": "va\"l<u>e/1"}`, `{"x": "[secret:a]"}`},
		{`{"x":"va\"l\u003cu\u003ee\/1!"}`, `{"x":"[secret:a]!"}`},
		{`{"\u0076a\"l<u>e/1":1}`, `{"[secret:a]":1}`},
		{`["va\"l<u>e/1-and-more"]`, `["[secret:b]"]`},
		{`["va%22l%3Cu%3Ee%2F1"]`, `["[secret:a]"]`},
		{`[12345678, 123456789, -12345678, "012345678"]`, `["[secret:n]", 123456789, -12345678, "0[secret:n]"]`},
		{`{"n": 1.50, "b" : true, "s":"\u00e9\\"}`, `{"n": 1.50, "b" : true, "s":"\u00e9\\"}`},
		{`["{\"x\":\"va\\\"l<u>e/1\"}"]`, `["{\"x\":\"[secret:a]\"}"]`},
		{`["{\"x\":\"va\\\"l\\u003cu\\u003ee/1\"}"]`, `["{\"x\":\"[secret:a]\"}"]`},
		{`not JSON va"l<u>e/1`, `not JSON [secret:a]`},
		{``, ``},
		{`x va\"l\u003Cu\x3e`, `x va\"l\u003Cu\x3e`},
		{`not JSON v\u0061\"l\u003Cu\u003ee\/1`, `not JSON [secret:a]`},
		{`v%61%22l%3cu%3Ee%2f1, va%2522l%253Cu%253Ee%252F1`, `[secret:a], [secret:a]`},
		{`<b>va&quot;l&lt;u&gt;e&#47;1</b> &#x76;a&#34;l&#x3C;u&gt;e/1`, `<b>[secret:a]</b> [secret:a]`},
		{`["{\"x\":\"va\\\\\\\"l<u>e\\\\\\/1\"}"]`, `["{\"x\":\"[secret:a]\"}"]`},
		{base64.StdEncoding.EncodeToString([]byte(`va"l<u>e/1`)), `[secret:a]Q==`},
		{base64.URLEncoding.EncodeToString([]byte(`xva"l<u>e/1x`)), `eH[secret:a]F4`},
		{base64.StdEncoding.EncodeToString([]byte(`xxva"l<u>e/1`)), `eHh[secret:a]`},
		{`user:a-password dXNlcjphLXBhc3N3b3Jk`, `[secret:c] [secret:c]`},
	} {
		if got := string(r.Body([]byte(c[0]))); got != c[1] {
			t.Errorf("%s became %s, want %s", c[0], got, c[1])
		}
	}
	if err, changed := r.Error(errors.New(`x va"l<u>e/1`)); !changed || err.Error() != "x [secret:a]" {
		t.Errorf("got %v, %v", err, changed)
	}
	same := errors.New("x")
	if err, changed := r.Error(same); changed || err != same {
		t.Errorf("got %v, %v", err, changed)
	}
	var none secretref.Redactor
	if body := []byte(`{"a":1}`); !slices.Equal(none.Body(body), body) {
		t.Error("changed a body without secrets")
	}
}
