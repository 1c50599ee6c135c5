package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
)

// refusal is an invalid document and its error.
type refusal struct {
	name    string
	doc     string
	pointer string
	message string
}

var refusals = []refusal{
	{"empty", ``, "", "the document is empty at the root (byte 0)"},
	{"blank", " \t\r\n", "", "the document is empty at the root (byte 4)"},
	{"byte order mark", "\ufeff{}", "", "unexpected byte order mark at the root (byte 0)"},
	{"form feed is no space", "\f1", "", "expected a value, got control character 0x0c at the root (byte 0)"},
	{"no-break space is no space", "\u00a01", "", "expected a value, got '\\u00a0' at the root (byte 0)"},

	{"truncated object", `{"a":`, "/a", "expected a value, got the end of the document at /a (byte 5)"},
	{"truncated members", `{"a":1`, "", `expected "," or "}", got the end of the document at the root (byte 6)`},
	{"truncated after comma", `{"a":1,`, "", "expected a quoted name, got the end of the document at the root (byte 7)"},
	{"truncated after name", `{"a"`, "", `expected ":", got the end of the document at the root (byte 4)`},
	{"truncated array", `[1,[2`, "/1", `expected "," or "]", got the end of the document at /1 (byte 5)`},
	{"truncated string", `["ab`, "/0", "expected the rest of the string, got the end of the document at /0 (byte 4)"},
	{"truncated escape", `["\`, "/0", "the document ends in an escape at /0 (byte 2)"},
	{"truncated word", `[tru`, "/0", "expected true, got the end of the document at /0 (byte 4)"},
	{"truncated number", `[-`, "/0", "expected a digit, got the end of the document at /0 (byte 2)"},

	{"second document", `{} {}`, "", "more data after the document at the root (byte 3)"},
	{"trailing bracket", `[]]`, "", "more data after the document at the root (byte 2)"},
	{"trailing NUL", "1\x00", "", "more data after the document at the root (byte 1)"},

	{"bad UTF-8 in a value", "{\"a\":\"\xff\"}", "/a", "invalid UTF-8 at /a (byte 6)"},
	{"bad UTF-8 in a name", "{\"\xc3\":1}", "", "invalid UTF-8 at the root (byte 2)"},
	{"overlong UTF-8", "\"\xc0\xaf\"", "", "invalid UTF-8 at the root (byte 1)"},
	{"surrogate in UTF-8", "\"\xed\xa0\x80\"", "", "invalid UTF-8 at the root (byte 1)"},
	{"bad UTF-8 outside", "[\xff]", "/0", "expected a value, got invalid UTF-8 at /0 (byte 1)"},

	{"NUL in a string", "[\"a\x00\"]", "/0", "NUL byte in a string at /0 (byte 3)"},
	{"NUL outside", "[\x00]", "/0", "expected a value, got NUL byte at /0 (byte 1)"},
	{"escaped NUL", `{"a":["x\u0000"]}`, "/a/0", "NUL character in a string at /a/0 (byte 8)"},
	{"escaped NUL in a name", `{"\u0000":1}`, "", "NUL character in a string at the root (byte 2)"},
	{"control character", "[\"a\nb\"]", "/0", "control character 0x0a in a string at /0 (byte 3)"},

	{"lone high surrogate", `["\ud83d"]`, "/0", `lone surrogate in a \u escape at /0 (byte 2)`},
	{"lone low surrogate", `["\ude00"]`, "/0", `lone surrogate in a \u escape at /0 (byte 2)`},
	{"high surrogate twice", `["\ud83d\ud83d"]`, "/0", `lone surrogate in a \u escape at /0 (byte 2)`},
	{"high surrogate, letter", `["\ud83d\u0041"]`, "/0", `lone surrogate in a \u escape at /0 (byte 2)`},
	{"half a low surrogate", `["\ud83d\ude0x"]`, "/0", `lone surrogate in a \u escape at /0 (byte 2)`},
	{"unknown escape", `["\x41"]`, "/0", "unknown escape in a string at /0 (byte 2)"},
	{"short hex escape", `["\u12"]`, "/0", `malformed \u escape at /0 (byte 2)`},

	{"duplicate", `{"a":{"b":1,"b":2}}`, "/a/b", `duplicate field "b" at /a (byte 12)`},
	{"duplicate by escape", `{"role":1,"\u0072ole":2}`, "/role", `duplicate field "role" at the root (byte 10)`},
	{"duplicate empty name", `{"":1,"":2}`, "/", `duplicate field "" at the root (byte 6)`},
	{"duplicate with slash", `{"a/b~":1,"a/b~":2}`, "/a~1b~0", `duplicate field "a/b~" at the root (byte 10)`},
	{"case twin", `[{"role":1,"ROLE":2}]`, "/0/ROLE", `field "ROLE" differs only by case from "role" at /0 (byte 11)`},
	{"case twin, not ASCII", `{"é":1,"É":2}`, "/É", `field "É" differs only by case from "é" at the root (byte 8)`},
	{"case twin, Kelvin sign", `{"k":1,"` + "\u212a" + `":2}`, "/\u212a", "field \"\u212a\" differs only by case from \"k\" at the root (byte 7)"},
	{"duplicate of many", manyKeys(20, `"k3"`), "/k3", `duplicate field "k3" at the root (byte 151)`},
	{"case twin of many", manyKeys(20, `"K3"`), "/K3", `field "K3" differs only by case from "k3" at the root (byte 151)`},
	{"duplicate as ninth", manyKeys(8, `"k7"`), "/k7", `duplicate field "k7" at the root (byte 57)`},
	{"long name is cut", `{"` + strings.Repeat("é", 500) + `":x}`, "/" + strings.Repeat("é", 64) + "…",
		"expected a value, got 'x' at /" + strings.Repeat("é", 64) + "… (byte 1004)"},

	{"too deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat("/0", 64),
		"the document is nested more than 64 levels deep at " + strings.Repeat("/0", 64) + " (byte 64)"},
	{"too deep, objects", strings.Repeat(`{"a":`, 64) + `{}` + strings.Repeat("}", 64), strings.Repeat("/a", 64),
		"the document is nested more than 64 levels deep at " + strings.Repeat("/a", 64) + " (byte 320)"},

	{"infinite", `[1e400]`, "/0", "a number too large for a float64 at /0 (byte 1)"},
	{"infinite, just", `[1.8e308]`, "/0", "a number too large for a float64 at /0 (byte 1)"},
	{"infinite, negative", `-1e309`, "", "a number too large for a float64 at the root (byte 0)"},
	{"infinite, digits", strings.Repeat("9", 309), "", "a number too large for a float64 at the root (byte 0)"},
	{"long number", "0." + strings.Repeat("1", 399), "", "a number of more than 400 bytes at the root (byte 0)"},
	{"long integer", strings.Repeat("1", 401), "", "a number of more than 400 bytes at the root (byte 0)"},
	{"small exponent", `1e-401`, "", "a number with an absolute exponent above 400 at the root (byte 0)"},
	{"absurd exponent of zero", `0e99999999999999999999`, "", "a number with an absolute exponent above 400 at the root (byte 0)"},

	{"leading zero", `[01]`, "/0", "a number with a leading zero at /0 (byte 1)"},
	{"leading zero, negative", `[-00]`, "/0", "a number with a leading zero at /0 (byte 2)"},
	{"plus", `[+1]`, "/0", "expected a value, got '+' at /0 (byte 1)"},
	{"no whole", `[.5]`, "/0", "expected a value, got '.' at /0 (byte 1)"},
	{"no fraction", `[5.]`, "/0", "expected a digit, got ']' at /0 (byte 3)"},
	{"no exponent", `[5e+]`, "/0", "expected a digit, got ']' at /0 (byte 4)"},
	{"minus alone", `[-a]`, "/0", "expected a digit, got 'a' at /0 (byte 2)"},
	{"hexadecimal", `[0x1]`, "", `expected "," or "]", got 'x' at the root (byte 2)`},
	{"NaN", `{"n":NaN}`, "/n", "expected a value, got 'N' at /n (byte 5)"},
	{"Infinity", `[Infinity]`, "/0", "expected a value, got 'I' at /0 (byte 1)"},
	{"word in capitals", `[nUll]`, "/0", "expected null, got 'U' at /0 (byte 2)"},

	{"trailing comma", `[1,]`, "/1", "expected a value, got ']' at /1 (byte 3)"},
	{"trailing comma, object", `{"a":1,}`, "", "expected a quoted name, got '}' at the root (byte 7)"},
	{"bare name", `{a:1}`, "", "expected a quoted name, got 'a' at the root (byte 1)"},
	{"single quotes", `['a']`, "/0", "expected a value, got '\\'' at /0 (byte 1)"},
	{"comment", `[1 /**/]`, "", `expected "," or "]", got '/' at the root (byte 3)`},
	{"mixed brackets", `[1}`, "", `expected "," or "]", got '}' at the root (byte 2)`},
	{"two values", `{"a":1 "b":2}`, "", `expected "," or "}", got '"' at the root (byte 7)`},
}

// manyKeys returns an object of n members k0, k1 … and one more.
func manyKeys(n int, extra string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	return b.String() + extra + ":1}"
}

func TestCheckRefuses(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			expect(t, Check([]byte(r.doc)), fault.Validation, r.pointer, r.message)
		})
	}
}

// expect fails unless the error has this code, pointer and message.
func expect(t *testing.T, err error, code fault.Code, pointer any, message string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Fatalf("got %v, want a *fault.Error", err)
	}
	if f.Code != code || f.Message != message || f.Fields["pointer"] != pointer {
		t.Errorf("got  %s %q at %q\nwant %s %q at %q", f.Code, f.Message, f.Fields["pointer"], code, message, pointer)
	}
}

func TestCheckAccepts(t *testing.T) {
	docs := []string{
		`{}`, ` [ ] `, `""`, `0`, `-0`, `true`, `false`, `null`, "\r\n\t{ \"a\" : [ 1 , 2 ] }\n",
		`9007199254740993`, `-1.5E+10`, `1e-400`, `1.7976931348623157e308`, `0e400`, `1e0000000000000000000000001`,
		strings.Repeat("9", 308), "0." + strings.Repeat("0", 393) + "1e400", `0.5e-0`,
		`"\"\\\/\b\f\n\r\t\u00e9\uD83D\ude00"`, `"é€😀"`, "\"\ufffd\ufeff\u007f\"", `{"":1}`,
		`{"a":{"a":1},"b":{"a":1}}`, `[{"a":1},{"A":1}]`, `{"stra\u00dfe":1,"strasse":2}`,
		manyKeys(300, `"last"`), strings.Repeat("[", 64) + strings.Repeat("]", 64),
	}
	for _, doc := range docs {
		if err := Check([]byte(doc)); err != nil {
			t.Errorf("Check(%.60s) = %v", doc, err)
		}
	}
}

func TestCheckSize(t *testing.T) {
	doc := []byte(`"` + strings.Repeat("a", MaxBytes-2) + `"`)
	if err := Check(doc); err != nil {
		t.Errorf("a document of MaxBytes: %v", err)
	}
	expect(t, Check(append(doc, ' ')), fault.PayloadTooLarge, "",
		"the document has 1048577 bytes, but at most 1048576 are allowed")
}

func TestObject(t *testing.T) {
	if err := Object([]byte(" \n{}")); err != nil {
		t.Error(err)
	}
	for doc, kind := range map[string]string{
		` []`: "an array", ` "{}"`: "a string", ` 1`: "a number", ` -1`: "a number",
		` null`: "null", ` true`: "a boolean", ` false`: "a boolean",
	} {
		expect(t, Object([]byte(doc)), fault.Validation, "", "expected an object, got "+kind+" at the root (byte 1)")
	}
	expect(t, Object([]byte(`{`)), fault.Validation, "",
		"expected a quoted name, got the end of the document at the root (byte 1)")
}

func TestText(t *testing.T) {
	for _, s := range []string{"a", "ünïcödé 😀", strings.Repeat("é", 20), "a b"} {
		if err := Text("stream", s, 20); err != nil {
			t.Errorf("Text(%q) = %v", s, err)
		}
	}
	for s, message := range map[string]string{
		"":                      "stream is empty",
		"a\xffb":                "stream is not valid UTF-8",
		"a\x00b":                "stream has a control character",
		"a\nb":                  "stream has a control character",
		"a\u0085b":              "stream has a control character",
		"a\ufffdb":              "stream has a replacement character (U+FFFD): the text was damaged before it was sent",
		strings.Repeat("é", 21): "stream is longer than 20 characters",
	} {
		err := Text("stream", s, 20)
		expect(t, err, fault.Validation, nil, message)
		if f, _ := errors.AsType[*fault.Error](err); f.Fields["field"] != "stream" {
			t.Errorf("Text(%q): error has field %v", s, f.Fields["field"])
		}
	}
}

// Objects with 100,000 names, and 100,000 objects, are read in linear time.
func TestCheckWide(t *testing.T) {
	wide := manyKeys(90000, `"last"`)
	items := "[" + strings.Repeat(`{"a":1},`, 120000) + "0]"
	for _, doc := range []string{wide, items} {
		if err := Check([]byte(doc)); err != nil {
			t.Error(err)
		}
	}
}

func TestCheckAllocates(t *testing.T) {
	doc := []byte(smallDoc)
	if n := testing.AllocsPerRun(100, func() { _ = Check(doc) }); n != 0 {
		t.Errorf("%v allocations for a small document, want none", n)
	}
}

const smallDoc = `{"id":"inv_1","amount":120.50,"big":1e20,"lines":[{"sku":"a\n","count":2},{"sku":"b","count":3}],"paid":false,"note":null}`

func BenchmarkCheck(b *testing.B) {
	large := []byte("[" + strings.Repeat(smallDoc+",", 5000) + "0]")
	wide := []byte(manyKeys(10000, `"last"`))
	for name, doc := range map[string][]byte{"small": []byte(smallDoc), "large": large, "wide": wide} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Check(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The error about a document is short, even if its names are long.
func TestRefusalIsShort(t *testing.T) {
	name := bytes.Repeat([]byte("n"), 10000)
	doc := bytes.Repeat(append(append([]byte(`{"`), name...), `":`...), 64)
	err := Check(append(doc, 'x'))
	if n := len(err.Error()); n > 8000 {
		t.Errorf("message has %d bytes, want at most 8000", n)
	}
}
