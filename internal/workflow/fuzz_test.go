package workflow

import (
	"bytes"
	"testing"
)

// FuzzParse verifies that no text causes a panic, that every violation has a position and a reason, and that
// an accepted definition is read back from its JSON.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		wholeYAML, wholeJSON, definition(charge, mail), definition("name: c, type: condition, if: steps.c[0] > 1, then: c"),
		definition(mail + ", input: {a: [=input.a, ==b, 1.50, 1e3, null]}"), `{"name":"n","version":1,"steps":[{}]}`, "steps: [", "- - -",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, found := Parse(data)
		if d == nil && len(found) == 0 {
			t.Fatal("got neither a definition nor a violation")
		}
		for _, v := range found {
			if v.Rule == "" || v.Line < 1 || v.Column < 1 || v.Message == "" {
				t.Fatalf("got violation %+v", v)
			}
		}
		if d == nil {
			return
		}
		more, _ := d.Lint(everything)
		d.Mentions()
		if len(found) > 0 || len(more) > 0 {
			return
		}
		back, found := Parse(d.JSON())
		if len(found) > 0 || !bytes.Equal(back.JSON(), d.JSON()) {
			t.Fatalf("%s\nparsed again: violations %v", d.JSON(), found)
		}
	})
}

// FuzzExpr verifies that no expression causes a panic, and that the result is always the same.
func FuzzExpr(f *testing.F) {
	for _, text := range []string{
		"input.a + 1", "filter(input.list, .ok)", "steps['pay'].output ?? {a: 1}", "sum(map(1..9, # ** 2))", "let x = 1; x in [1, 'a', nil]",
		"input.text matches '^a' ? keys(input) : not true", "join(split(string(input), ','), lower('A'))", "-1 % 2 - 3.5 / abs(-2)",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Compile(text)
		if err != nil {
			return
		}
		a, errA := e.Eval(seen)
		b, errB := e.Eval(seen)
		if !bytes.Equal(a, b) || (errA == nil) != (errB == nil) || errA != nil && errA.Error() != errB.Error() {
			t.Fatalf("%s returned %s, error %v, and then %s, error %v", text, a, errA, b, errB)
		}
	})
}
