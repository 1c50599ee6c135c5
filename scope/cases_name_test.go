package scope_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
)

// oddNames are names with a special meaning to some layer: to a path, to a pattern, to
// a quoting, to a file system.
var oddNames = []string{
	"a", "Ab", "ab", "aB", "AB", `a"b`, `"`, `""`, "'", "''", `\`, `\\`, `\"`, `a\nb`, "$", "$.a", "$[0]", "a.b", ".", "..", "[0]", "[#]", "a[0]", "#",
	"*", "%", "_", "?", ":a", "@a", "null", "true", "0", "-1", "key", "value", "{}", "[]", "<&>", " ", " a", "a ", "/", "~0", "~1", "a/b", "../../x", "gone",
	"ż", "ż\u0307", "ß", "ſ", "İ", "\u212a", "k", "K", "🦀", "\u2028", "\u2029", "\u200d", "\u00a0", "con", "nul.json", ".locks", "%2e", strings.Repeat("x", 255), strings.Repeat("🦀", 255),
}

var nameCases = []testCase{
	{"fields have any name", func(e *env) {
		want := map[string]int{}
		for round := range 2 {
			for _, name := range oddNames {
				s, err := e.raw("u").Inc(e.ctx, name, 1)
				if err != nil || !s.Changed {
					e.Errorf("inc of %q: changed %t, %v", name, s.Changed, err)
				}
				want[name] = round + 1
			}
		}
		doc, _ := json.Marshal(want)
		e.is("u", string(doc), int64(2*len(oddNames)-1))
		for _, name := range oddNames {
			s, err := e.raw("u").Patch(e.ctx, map[string]any{name: nil})
			if err != nil || !s.Changed {
				e.Errorf("patch of %q: changed %t, %v", name, s.Changed, err)
			}
		}
		e.is("u", `{}`, int64(3*len(oddNames)-1))
	}},
	{"lists and records are in fields of any name, under keys of any name", func(e *env) {
		want := map[string]any{}
		short := oddNames[:len(oddNames)-2] // there is more to come before them
		for i, name := range short {
			key := short[len(short)-1-i]
			for _, push := range []string{"x", "y"} {
				_, err := e.raw("u").Push(e.ctx, "l"+name, push)
				e.ok(err)
			}
			for _, record := range []string{"x", "y", "y"} { // made, replaced, the same
				_, err := e.raw("u").SetRecord(e.ctx, "r"+name, key, record)
				e.ok(err)
			}
			_, err := e.raw("u").SetRecord(e.ctx, "r"+name, "gone"+key, 1)
			e.ok(err)
			s, err := e.raw("u").DeleteRecord(e.ctx, "r"+name, "gone"+key)
			e.ok(err)
			e.equal("changed", s.Changed, true)
			want["l"+name], want["r"+name] = []string{"x", "y"}, map[string]string{key: "y"}
		}
		doc, _ := json.Marshal(want)
		e.is("u", string(doc), int64(6*len(short)-1))
	}},
	{"keys that differ by case are two records", func(e *env) {
		want := map[string]int{}
		for i, key := range oddNames {
			_, err := e.raw("u").SetRecord(e.ctx, "r", key, i)
			e.ok(err)
			want[key] = i
		}
		s, err := at[struct{ R map[string]int }](e, "thing", "u").Get(e.ctx)
		e.ok(err)
		e.equal("records", s.State.R, want)
		for _, key := range oddNames {
			s, err := e.raw("u").SetRecord(e.ctx, "r", key, want[key])
			e.ok(err)
			e.equal("changed by the same", s.Changed, false)
		}
		for _, key := range oddNames {
			s, err := e.raw("u").DeleteRecord(e.ctx, "r", key)
			e.ok(err)
			e.equal("changed", s.Changed, true)
		}
		e.is("u", `{"r":{}}`, int64(2*len(oddNames)-1))
	}},
	{"ids and kinds have any name", func(e *env) {
		for i, name := range oddNames {
			s, err := at[cart](e, "thing", name).Patch(e.ctx, cart{Total: int64(i)})
			if err != nil || s.Version != 0 || s.ID != name {
				e.Errorf("%q: %+v, %v", name, s, err)
			}
			if strings.Contains(name, "/") {
				_, err = at[cart](e, name, "u").Inc(e.ctx, "total", 1)
				e.refused(err, fault.Validation)
				continue
			}
			s, err = at[cart](e, name, "u").Inc(e.ctx, "total", int64(i+1))
			if err != nil || s.Version != 0 || s.Kind != name {
				e.Errorf("kind %q: %+v, %v", name, s, err)
			}
		}
		for i, name := range oddNames {
			s, err := at[cart](e, "thing", name).Get(e.ctx)
			e.ok(err)
			e.equal(name, s.State.Total, i)
			if !strings.Contains(name, "/") {
				s, err = at[cart](e, name, "u").Get(e.ctx)
				e.ok(err)
				e.equal("kind "+name, s.State.Total, i+1)
			}
		}
	}},
	{"names that are none are refused", func(e *env) {
		for _, name := range []string{"", "a\x00b", "a\nb", "\x7f", "\xff", "\ufffd", strings.Repeat("x", 256)} {
			for _, v := range verbs {
				_, err := v.do(e.ctx, e.raw(name))
				e.refused(err, fault.Validation)
				_, err = v.do(e.ctx, at[json.RawMessage](e, name, "u"))
				e.refused(err, fault.Validation)
			}
			_, err := e.raw(name).Get(e.ctx)
			e.refused(err, fault.Validation)
			s := e.raw("u")
			_, err = s.Inc(e.ctx, name, 1)
			e.refused(err, fault.Validation)
			_, err = s.Push(e.ctx, name, 1)
			e.refused(err, fault.Validation)
			_, err = s.SetRecord(e.ctx, name, "k", 1)
			e.refused(err, fault.Validation)
			_, err = s.SetRecord(e.ctx, "r", name, 1)
			e.refused(err, fault.Validation)
			_, err = s.DeleteRecord(e.ctx, "r", name)
			e.refused(err, fault.Validation)
		}
		e.isNone("u")
	}},
	{"text survives whatever it says", func(e *env) {
		for _, text := range slices.Concat(oddNames, []string{"a\tb\n\r\x01\x1f\x7f", "\u0085", strings.Repeat("ż", 1000)}) {
			_, err := e.raw("u").Push(e.ctx, "l", text)
			e.ok(err)
			_, err = e.raw("u").Patch(e.ctx, map[string]any{"t": text})
			e.ok(err)
			s, err := e.raw("u").Patch(e.ctx, map[string]any{"t": text})
			e.ok(err)
			e.equal(fmt.Sprintf("%q changed by the same", text), s.Changed, false)
		}
		s, err := at[struct{ L []string }](e, "thing", "u").Get(e.ctx)
		e.ok(err)
		e.equal("texts", fmt.Sprintf("%q", s.State.L), fmt.Sprintf("%q", slices.Concat(oddNames, []string{"a\tb\n\r\x01\x1f\x7f", "\u0085", strings.Repeat("ż", 1000)})))
	}},
}
