package workflow

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

var seen = Env{
	Input: json.RawMessage(`{"a":1,"big":9007199254740993,"huge":123456789012345678901234567890,"price":0.10,"text":"Hello","none":null,"list":[{"n":1,"ok":true},{"n":2,"ok":false}],"map":{"z":1,"b":2}}`),
	State: json.RawMessage(`{"count":3}`),
	Steps: json.RawMessage(`{"pay":{"output":{"id":7},"status":"completed","visit":2},"my-step":{"status":"failed","error":"no"}}`),
	Run:   json.RawMessage(`{"id":"r1","key":"k"}`),
}

func TestEval(t *testing.T) {
	for text, want := range map[string]string{
		"input.a + 1":            `2`,
		"state.count * 2":        `6`,
		"run.id + '/' + run.key": `"r1/k"`,

		// A missing member is nil.
		"input.x":                `null`,
		"input.x.y.z":            `null`,
		"input?.x?.y":            `null`,
		"input.none.y":           `null`,
		"input.list[9].n":        `null`,
		"input.list[-1].n":       `2`,
		"input.x ?? 5":           `5`,
		"input.x == nil":         `true`,
		"steps.late.output":      `null`,
		"steps.pay.output.id":    `7`,
		`steps["my-step"].error`: `"no"`,

		// Numbers are passed on unchanged.
		"input.big":                              `9007199254740993`,
		"input.big + 1":                          `9007199254740994`,
		"input.huge":                             `123456789012345678901234567890`,
		"input.price":                            `0.10`,
		"input.huge > 5":                         `true`,
		"-9223372036854775807 - 1":               `-9223372036854775808`,
		"0.1 + 0.2":                              `0.30000000000000004`,
		"10 / 4":                                 `2.5`,
		"7 % 3":                                  `1`,
		"2 ** 10":                                `1024`,
		"2.0 == 2":                               `true`,
		"9007199254740993 == 9007199254740992.0": `false`,
		"floor(2.5) + ceil(2.5) + round(2.4)":    `7`,
		"int('12') + int(3.9)":                   `15`,
		"float('1.5')":                           `1.5`,
		"abs(-5)":                                `5`,
		"min(3, 1.5, 2)":                         `1.5`,
		"max([1, 3, 2])":                         `3`,
		"max([])":                                `null`,
		"-input.price":                           `-0.1`,
		"4611686018427387904 * -2":               `-9223372036854775808`,
		"-4611686018427387904 * 2":               `-9223372036854775808`,
		"10.0 ** 400 - 10.0 ** 400 > -5":         `false`, // NaN is less than all

		"1 <= 1 and 2 >= 1.5 and not (1 >= 1.5)":    `true`,
		"'a' <= 'b' and 'b' >= 'a'":                 `true`,
		"+input.a":                                  `1`,
		"[abs(2), round(7), float(2), floor(1e30)]": `[2,7,2,1e+30]`,
		"-3 * 4 + -2 * -5":                          `-2`,
		"1e30 > 5 and -1e30 < 5 and 5 < 1e30":       `true`,
		"input.a in input.none":                     `false`,
		"1 in input.map":                            `false`,
		"first([]) ?? last([]) ?? 'none'":           `"none"`,
		"input.map == {z: 1, b: 3}":                 `false`,

		// Objects are ordered by name.
		"keys(input.map)":   `["b","z"]`,
		"values(input.map)": `[2,1]`,
		"string(input.map)": `"{\"b\":2,\"z\":1}"`,

		"filter(input.list, .ok)":                                   `[{"n":1,"ok":true}]`,
		"map(input.list, # .n * 2)":                                 `[2,4]`,
		"sum(input.list, .n)":                                       `3`,
		"sum(1..4)":                                                 `10`,
		"count(input.list, .ok)":                                    `1`,
		"find(input.list, .n == 2).ok":                              `false`,
		"findIndex(input.list, .n == 2)":                            `1`,
		"any(input.list, .ok) and not all(input.list, .ok)":         `true`,
		"none(input.list, .n > 5) && one(input.list, .ok)":          `true`,
		"input.list | filter(.ok) | map(.n) | len()":                `1`,
		"filter(map(input.list, .n), # > 1)":                        `[2]`,
		"first(input.list).n + last(input.list).n":                  `3`,
		"[1, findLast([2, 3], # > 0)]":                              `[1,3]`,
		"{a: findLast(input.list, .ok).n}":                          `{"a":1}`,
		"findLast(input.list, .n > 9) ?? findIndex([], # > 0)":      `null`,
		"count([true, false, true])":                                `2`,
		"map([5, 6], #index)":                                       `[0,1]`,
		"{a: 1, a: 2}":                                              `{"a":1}`,
		"take(1..9, 2)":                                             `[1,2]`,
		"2 in [1, 2] and 'z' in input.map and 'y' not in input.map": `true`,
		"{a: input.a, 'b': [1, nil]}":                               `{"a":1,"b":[1,null]}`,
		"[1, {a: 2}] == [1.0, {a: 2}]":                              `true`,
		"input == input and input != state":                         `true`,
		"1..3":                                                      `[1,2,3]`,
		"3..1":                                                      `[]`,

		"lower(input.text) + upper('x') + trim(' y ')":                                        `"helloXy"`,
		"split('a,b', ',')":                                                                   `["a","b"]`,
		"join(['a', 'b'], '-') + join(['c'])":                                                 `"a-bc"`,
		"replace('aXbX', 'X', '--')":                                                          `"a--b--"`,
		"trimPrefix('abc', 'a') + trimSuffix('abc', 'c')":                                     `"bcab"`,
		"hasPrefix('abc', 'a') and hasSuffix('abc', 'c')":                                     `true`,
		"input.text contains 'ell' and input.text startsWith 'H' and input.text endsWith 'o'": `true`,
		"input.text matches '^H.*o$'":                                                         `true`,
		"'a' < 'b'":                                                                           `true`,
		"len('äö') + len(input.list) + len(input.map)":                                        `6`,
		"'<&>'": `"<&>"`,

		"let x = input.a; x + x":           `2`,
		"let x = 1; let y = x + 1; [x, y]": `[1,2]`,
		"(let x = 1; x) + (let x = 2; x)":  `3`,
		"map(1..2, let x = #; x * x)":      `[1,4]`,
		"false and input.a or true":        `true`,
		"true or input.none":               `true`,
		"input.a > 0 ? 'yes' : 'no'":       `"yes"`,
		"if input.a > 1 { 1 } else { 2 }":  `2`,
	} {
		e, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.Eval(seen); err != nil || string(got) != want {
			t.Errorf("%s returned %s, want %s: error %v", text, got, want, err)
		}
	}
	e, _ := Compile("[input, state, steps, run]")
	if got, err := e.Eval(Env{}); err != nil || string(got) != "[{},{},{},{}]" {
		t.Errorf("with an empty environment got %s, error %v", got, err)
	}
}

// TestCompileRefuses verifies that invalid expressions are refused before they are used.
func TestCompileRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "empty",
		"   ":                                 "empty",
		"1 +":                                 "correct it",
		"inputs.a":                            `unknown name "inputs": the variables are input, run, state and steps`,
		"now()":                               "does not exist: the functions are",
		"date('2020-01-01')":                  "does not exist: the functions are",
		"input.f()":                           "does not exist: the functions are",
		"unheard(1)":                          "does not exist: the functions are",
		"reduce(1..3, #acc + #)":              "does not exist: the functions are",
		"sortBy(input.list, .n)":              "does not exist: the functions are",
		"repeat('a', 9)":                      "does not exist: the functions are",
		"get(steps, 'a')":                     "does not exist: the functions are",
		"$env":                                "unknown name",
		"$env.steps":                          "unknown name",
		"len":                                 "unknown name",
		"count ?? 5":                          "unknown name",
		"$meter":                              `unknown name "$meter"`,
		"let $x = 1; $x":                      "unknown name",
		"let input = 1; input":                "redeclare",
		"$do($meter, 'keys', 1)":              "does not exist: the functions are",
		"1; 2":                                "not supported",
		"input.text[0:2]":                     "not supported",
		"b'abc'":                              "not supported",
		"1 + 'a'":                             "mismatched",
		"lower(1)":                            "correct it",
		"trim('a', 'b')":                      "trim got 2 values: pass 1",
		"all([1], 5)":                         "boolean",
		"input.text matches input.a":          "in quotes",
		"input.text matches '('":              "correct it",
		"input.text matches '(a?){900}'":      "too large",
		"filter(1..3, any(1..3, # > 1))":      "cannot be nested",
		"map(1..3, sum(1..3))":                "cannot be nested",
		"'" + strings.Repeat("a", 4096) + "'": "4098 characters",
		strings.Repeat("1+", 600) + "1":       "nodes",
		strings.Repeat("[", 2000) + strings.Repeat("]", 2000): "nodes",
		"\xff": "invalid UTF-8",
	} {
		_, err := Compile(text)
		if !errors.Is(err, fault.Of(fault.Validation)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got error %v, want %s", text, err, want)
		}
	}
}

// TestLargePatternIsNotCompiled verifies that a pattern is refused for its size before its repetitions are written out.
func TestLargePatternIsNotCompiled(t *testing.T) {
	var err error
	allocs := testing.AllocsPerRun(1, func() {
		_, err = compile("input.text matches '" + strings.Repeat("x{999}", 600) + "'")
	})
	if err == nil || !strings.Contains(err.Error(), "too large") || allocs > 3000 {
		t.Errorf("got error %v after %v allocations, want at most 3000", err, allocs)
	}
}

// TestUnits verifies what expressions cost, with operands that appear in two operations but are evaluated once.
func TestUnits(t *testing.T) {
	choice, chain := "true", "1"
	for range 60 {
		choice, chain = "("+choice+" ?: false)", "(0 < "+chain+" < 9 ? 1 : 2)"
	}
	for text, want := range map[string]int{
		"input.a + 1":                          2,
		choice:                                 60 + 121/8,
		chain:                                  60*5 + 481/8,
		"filter(1..3, " + choice + ")":         5 + 3*(60+1+1+121/8) + 124/8,
		"nil" + strings.Repeat(" ?? nil", 400): 801 / 8,
		"let a = input.a; 0 < a + 1 < 3 < a ?: true": 10 + 17/8,
	} {
		e, err := compile(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		sc := newScope(seen)
		if _, err := e.value(sc); err != nil || budget-sc.meter.left != want {
			t.Errorf("%.60s costs %d units, want %d: error %v", text, budget-sc.meter.left, want, err)
		}
	}
}

// TestEvalRefuses verifies that an expression that cannot be evaluated returns an error instead of a value.
func TestEvalRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"input.text > 1":                  "a string and a number",
		"input.none > 1":                  "nil and a number",
		"input.none && true":              "nil",
		"true && input.a":                 "a number",
		"not input.a":                     "a number",
		"input.a ? 1 : 2":                 "a number",
		"input.text.x":                    "no members",
		"input.list['x']":                 "index of an item",
		"input.map[0]":                    "name of a member",
		"input.text + 1":                  "string(x)",
		"1 / 0":                           "zero",
		"1 % 0":                           "zero",
		"9223372036854775807 + 1":         "64-bit",
		"-9223372036854775807 - 2":        "64-bit",
		"input.big * 100000":              "64-bit",
		"sum([9223372036854775807, 1])":   "64-bit",
		"4611686018427387904 * 2":         "64-bit",
		"(-9223372036854775807 - 1) * -1": "64-bit",
		"-1 * (-9223372036854775807 - 1)": "64-bit",
		"-(-9223372036854775807 - 1)":     "64-bit",
		"int(10.0 ** 400 - 10.0 ** 400)":  "64-bit",
		"count(input.list)":               "a boolean",
		"int(1e300)":                      "64-bit",
		"int('x')":                        "an integer",
		"10.0 ** 400":                     "infinite",
		"filter(input.none, true)":        "a list",
		"filter(input.list, .n)":          "a boolean",
		"sum(input.list)":                 "a number",
		"len(input.none)":                 "a string, a list or an object",
		"input.none matches 'a'":          "a string",
		"float('0x10')":                   "in decimal digits",
		"float(input.list)":               "a number",
		"abs(input.text)":                 "a number",
		"round(input.text)":               "a number",
		"input.text ** 2":                 "a number",
		"input.text / 2":                  "a number",
		"+input.text":                     "a number",
		"input.price % 2":                 "two integers",
		"1..input.price":                  "two integers",
		"1 in input.text":                 "a list or an object",
		"keys(input.list)":                "an object",
		"first(input.text)":               "a list",
		"last(input.text)":                "a list",
		"take(input.list, -1)":            "0 or more",
		"take(input.text, 1)":             "a list",
		"join(input.list)":                "a string",
		"join(input.text)":                "a list",
		"split(input.a, ',')":             "a string",
		"{(input.list): 1}":               "member name",
		"{a: 1, A: 2}":                    "case",

		"findIndex(input.huge | sum(1..3), abs(#.n))": "a list",
	} {
		e, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := e.Eval(seen)
		if !errors.Is(err, fault.Of(fault.Validation)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s returned %s, error %v, want %s", text, got, err, want)
		}
	}
	e, _ := Compile("input.a")
	if _, err := e.Eval(Env{Input: json.RawMessage(`{"a":`)}); !errors.Is(err, fault.Of(fault.Validation)) {
		t.Errorf("with invalid JSON got error %v, want a validation error", err)
	}
}

// TestHostile verifies that expressions that do too much work end with an error.
func TestHostile(t *testing.T) {
	testlevel.OneGoroutine(t)
	large := Env{Input: json.RawMessage(`{"s":"` + strings.Repeat("a", 1<<19) + `","l":[` + strings.Repeat("1,", 1<<18) + `1]}`)}
	for _, text := range []string{
		"1..100000000", "-9223372036854775807..9223372036854775807", "0..9223372036854775807",
		"filter(1..100000, # > 1)", "len(filter(1..249000, true))",
		"let a = input.s + input.s; let b = a + a; let c = b + b; len(c)",
		"map(1..10000, input.s)", "join(map(1..10000, input.s), '')", "keys(input) | map(string(input))",
		"all(1..10000, input == input)", "all(1..10000, len(input.s) > 0)", "map(1..20000, input.s + 'x')",
		"map(1..20000, split(input.s, 'a'))", "map(1..100000, upper(string(input)))",
		"count(1..100000, -1 in input.l)", "split(input.s, '')", "input.l == input.l",
		"replace(input.s, 'a', input.s)", "input.s matches '(((a*)*)*)*b'",
		strings.Repeat("len(filter(input.l,#>0))+", 80) + "1",
		"all(1..200000, " + strings.Repeat("true && ", 300) + "true)",
		"let o = input; let s = input.s; len(map(1..2000, o[s]))", "let o = input; let s = input.s; len(filter(1..2000, s in o))",
		"let s = input.s; len(map(1..2000, ({(s): 1})))",
		"all(1..60000, " + strings.Repeat("nil ?? ", 300) + "true)", "all(1..8000, " + strings.Repeat("1+", 60) + "1 > 0)",
	} {
		e, err := Compile(text)
		if err == nil {
			_, err = e.Eval(large)
		}
		if !errors.Is(err, fault.Of(fault.Validation)) {
			t.Errorf("%.60s: got error %v, want a validation error", text, err)
		}
	}
	many := Value("[" + strings.Repeat(`"=input.l == 1..9",`, 5000) + `"=sum(1..100000)","=sum(1..100000)"]`)
	if _, err := Render(many, large); !errors.Is(err, fault.Of(fault.Validation)) {
		t.Errorf("the expressions of one value do not share a budget: %v", err)
	}
}

func TestTrue(t *testing.T) {
	for text, want := range map[string]bool{"input.a == 1": true, "input.a > 1": false} {
		e, _ := Compile(text)
		if got, err := e.True(seen); err != nil || got != want {
			t.Errorf("%s returned %v, error %v", text, got, err)
		}
	}
	for text, kind := range map[string]string{"input.a": "a number", "input.none": "nil", "input.text": "a string", "input.list": "a list", "input": "an object"} {
		e, _ := Compile(text)
		_, err := e.True(seen)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.Validation || f.Fields["kind"] != kind || !strings.Contains(f.Message, kind) {
			t.Errorf("%s: got error %v", text, err)
		}
	}
}

// TestCompiledIsBounded verifies that the cache of expressions is bounded and safe for concurrent use.
func TestCompiledIsBounded(t *testing.T) {
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 600 {
				e, err := Compile(strings.Repeat(" ", worker) + "input.a + " + strings.Repeat("1", 1+i%15) + strings.Repeat(" ", i))
				if err != nil {
					t.Error(err)
					return
				}
				if i%100 == 0 {
					if _, err := e.Eval(seen); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := len(compiled.byText); n > maxCompiled {
		t.Errorf("cache has %d expressions", n)
	}
	one, _ := Compile("input.a")
	if two, _ := Compile("input.a"); one != two {
		t.Error("a cached expression was compiled again")
	}
}

func TestRender(t *testing.T) {
	for value, want := range map[string]string{
		``:            `null`,
		`7`:           `7`,
		`null`:        `null`,
		`"text"`:      `"text"`,
		`"=input.a"`:  `1`,
		`"==input.a"`: `"=input.a"`,
		`"==="`:       `"=="`,
		`" =input.a"`: `" =input.a"`,
		`{"b":["=input.big",{"=a":"=steps.pay.output"}],"a":1.50}`: `{"a":1.50,"b":[9007199254740993,{"=a":{"id":7}}]}`,
		`"='=' + input.text"`:                             `"=Hello"`, // the result is not evaluated again
		strings.Repeat("[", 64) + strings.Repeat("]", 64): strings.Repeat("[", 64) + strings.Repeat("]", 64),
	} {
		if got, err := Render(Value(value), seen); err != nil || string(got) != want {
			t.Errorf("%s returned %s, want %s: error %v", value, got, want, err)
		}
	}
	for value, want := range map[string]string{
		`{"a":`:    "got the end",
		`"="`:      "empty",
		`"=now()"`: "the functions are",
		`["=1/0"]`: "zero",
		strings.Repeat("[", 65) + strings.Repeat("]", 65):                    "levels deep",
		strings.Repeat("[", 60) + `"=[[[[[1]]]]]"` + strings.Repeat("]", 60): "levels deep",
	} {
		if got, err := Render(Value(value), seen); !errors.Is(err, fault.Of(fault.Validation)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s returned %s, error %v, want %s", value, got, err, want)
		}
	}
}

func TestMentions(t *testing.T) {
	for _, r := range []struct {
		input, names string
		all          bool
	}{
		{"1", "", false},
		{"=input.steps.a", "", false},
		{"=steps.a.output", "a", false},
		{"=steps?.a?.output", "a", false},
		{"={x: [steps['b-c'], filter(steps.a.output, # > steps.b.visit)]}", "a b b-c", false},
		{"=steps[input.a]", "", true},
		{"=steps", "", true},
		{"=let s = steps; s.a", "", true},
		{"=keys(steps) | len() > 0 and steps.a", "a", true},
		{"=1 +", "", true},
	} {
		doc, _ := json.Marshal([]string{r.input})
		d := &Definition{Steps: []Step{{Name: "x", Type: Task, Input: doc}}}
		names, all := d.Mentions()
		if got := strings.Join(slices.Sorted(maps.Keys(names)), " "); got != r.names || all != r.all {
			t.Errorf("%s: got references %s, all %v", r.input, got, all)
		}
	}
	d := &Definition{Steps: []Step{
		{Name: "a", Type: Condition, If: "steps.a.visit > 1"},
		{Name: "b", Type: HTTP, URL: Value(`"=steps.b"`), Headers: map[string]Value{"X": Value(`"=steps.c"`)}, Body: Value(`"=steps.d"`)},
		{Name: "c", Type: Wait, Until: Value(`"=steps.e"`)},
		{Name: "d", Type: Approval, Prompt: Value(`"=steps.f"`)},
		{Name: "e", Type: Transition, Entity: Value(`"=steps.g"`), Input: Value(`"=steps.h"`)},
	}}
	names, all := d.Mentions()
	if got := strings.Join(slices.Sorted(maps.Keys(names)), ""); got != "abcdefgh" || all {
		t.Errorf("got references %s, all %v", got, all)
	}
}
