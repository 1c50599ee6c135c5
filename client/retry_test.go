package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, kind, body string, headers ...string) *http.Response {
	h := http.Header{"Content-Type": {kind}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

func problem(code fault.Code, headers ...string) *http.Response {
	return answer(code.Status(), wire.ProblemType, fmt.Sprintf(`{"code":%q,"detail":"no"}`, code), headers...)
}

// TestALostAnswer verifies what happens if a response is lost after the server has worked. With a
// key the call is retried and takes effect once; without one it is not retried, and may have taken
// effect.
func TestALostAnswer(t *testing.T) {
	s := serve(t, httpapi.Options{NoKeys: true})
	c := dial(t, s.url, Options{})
	one := wire.Append{Events: []wire.NewEvent{{Name: "one"}}}
	for _, half := range []bool{false, true} {
		name := fmt.Sprint("half ", half)
		before := s.requests.Load()
		s.line.loses(3, half)
		done, err := c.AppendEvents(t.Context(), name, one, Key(name))
		if err != nil || done.LastVersion != 0 || count(t, c, name) != 1 {
			t.Errorf("%s: appended %+v, %v", name, done, err)
		}
		if n := s.requests.Load() - before; n != 5 { // 4, and one to count
			t.Errorf("%s: got %d requests, want 5", name, n)
		}

		before, name = s.requests.Load(), name+" without"
		s.line.loses(1, half)
		_, err = c.AppendEvents(t.Context(), name, one)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.OutcomeUnknown || f.Unwrap() == nil || errors.Is(err, fault.Of(fault.Unavailable)) {
			t.Errorf("%s: %v", name, err)
		}
		if n := s.requests.Load() - before; n != 1 || count(t, c, name) != 1 {
			t.Errorf("%s: got %d requests, want 1", name, n)
		}
	}
	if _, err := c.CreateEntity(t.Context(), "invoice", wire.NewEntity{ID: new("i1")}); err != nil {
		t.Fatal(err)
	}
	s.line.loses(2, false)
	fired, err := c.FireStep(t.Context(), "invoice", "i1", "close", wire.Fire{Requester: "admin"}, Key("fire"))
	if err != nil || fired.Outcome != "success" || s.closed.Load() != 1 {
		t.Errorf("fired %+v, %v, and the action ran %d times", fired, err, s.closed.Load())
	}
	s.line.loses(3, true)
	if n := count(t, c, "half true"); n != 1 { // a read is always retried
		t.Errorf("read %d events, want 1", n)
	}
}

// TestWhatIsSentAgain verifies which requests are retried. Time is that of the synctest bubble.
func TestWhatIsSentAgain(t *testing.T) {
	for name, x := range map[string]struct {
		first func() (*http.Response, error)
		again bool
	}{
		"no connection": {func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, true},
		"busy":          {func() (*http.Response, error) { return problem(fault.RateLimited), nil }, true},
		"down":          {func() (*http.Response, error) { return problem(fault.Unavailable), nil }, true},
		"unknown":       {func() (*http.Response, error) { return problem(fault.OutcomeUnknown), nil }, true},
		"in flight":     {func() (*http.Response, error) { return problem(fault.KeyInFlight), nil }, true},
		"proxy":         {func() (*http.Response, error) { return answer(502, "text/html", "<h1>Bad"), nil }, true},
		"full":          {func() (*http.Response, error) { return problem(fault.StorageFull), nil }, false},
		"conflict":      {func() (*http.Response, error) { return problem(fault.Conflict), nil }, false},
		"defect":        {func() (*http.Response, error) { return problem(fault.Internal), nil }, false},
		"moved": {func() (*http.Response, error) {
			return answer(307, "text/html", "over there", "Location", "http://elsewhere.invalid/"), nil
		}, false},
		"portal": {func() (*http.Response, error) { return answer(200, "text/html", "<h1>Log in"), nil }, false},
		"empty":  {func() (*http.Response, error) { return answer(200, "application/json", ""), nil }, false},
	} {
		for _, how := range []string{"read", "keyed", "plain", "empty key"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { sends(t, x.first, how, x.again && (how == "read" || how == "keyed")) })
			})
		}
	}
}

// TestWhetherACallTookEffect verifies the promise of fault.Unavailable: nothing was changed. A call that changes something and may
// have been sent has another code, also if a later attempt was certainly not sent.
func TestWhetherACallTookEffect(t *testing.T) {
	lost := func() (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
	proxy := func() (*http.Response, error) { return answer(502, "text/html", "<h1>Bad"), nil }
	portal := func() (*http.Response, error) { return answer(200, "text/html", "<h1>Log in"), nil }
	cut := func() (*http.Response, error) { return answer(200, "application/json", `{"id":`), nil }
	down := func() (*http.Response, error) { return problem(fault.Unavailable), nil }
	conflict := func() (*http.Response, error) { return problem(fault.Conflict), nil }
	for name, x := range map[string]struct {
		answers    []func() (*http.Response, error)
		read, keys fault.Code
	}{
		"lost":               {[]func() (*http.Response, error){lost}, fault.Unavailable, fault.OutcomeUnknown},
		"proxy":              {[]func() (*http.Response, error){proxy}, fault.Unavailable, fault.OutcomeUnknown},
		"portal":             {[]func() (*http.Response, error){portal}, fault.Unavailable, fault.OutcomeUnknown},
		"cut":                {[]func() (*http.Response, error){cut}, fault.Unavailable, fault.OutcomeUnknown},
		"down":               {[]func() (*http.Response, error){down}, fault.Unavailable, fault.Unavailable},
		"lost, then down":    {[]func() (*http.Response, error){lost, down}, fault.Unavailable, fault.OutcomeUnknown},
		"lost, then refused": {[]func() (*http.Response, error){lost, conflict}, fault.Conflict, fault.Conflict},
	} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			c := dial(t, "http://holdfast.invalid", Options{MaxAttempts: len(x.answers), HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				sent++
				return x.answers[(sent-1)%len(x.answers)]()
			})}})
			_, read := c.GetKey(t.Context(), "x")
			_, keyed := c.CreateKey(t.Context(), wire.NewKey{}, Key("k"))
			if fault.CodeOf(read) != x.read || fault.CodeOf(keyed) != x.keys || sent != 2*len(x.answers) {
				t.Errorf("%s: read %v, changed %v after %d requests, want %s and %s", name, read, keyed, sent, x.read, x.keys)
			}
			if x.keys == fault.OutcomeUnknown && errors.Is(keyed, fault.Of(fault.Unavailable)) {
				t.Errorf("%s: %v is also UNAVAILABLE", name, keyed)
			}
		})
	}
	nowhere := dial(t, "http://127.0.0.1:1", Options{MaxAttempts: 1})
	if _, err := nowhere.CreateKey(t.Context(), wire.NewKey{}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("nothing was sent: got %v, want UNAVAILABLE", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := nowhere.CreateKey(ctx, wire.NewKey{}); fault.CodeOf(err) != fault.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("the context had ended: got %v, want UNAVAILABLE", err)
	}
}

func sends(t *testing.T, first func() (*http.Response, error), how string, again bool) {
	t.Helper()
	sent := 0
	var bodies []string
	c := dial(t, "http://holdfast.invalid", Options{HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			b, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(b))
		}
		if sent++; sent == 1 {
			return first()
		}
		return answer(200, "application/json", `{}`), nil
	})}})
	var err error
	switch how {
	case "read":
		_, err = c.GetKey(t.Context(), "x")
	case "keyed":
		_, err = c.CreateKey(t.Context(), wire.NewKey{}, Key("k"))
	case "plain":
		_, err = c.CreateKey(t.Context(), wire.NewKey{})
	default:
		_, err = c.CreateKey(t.Context(), wire.NewKey{}, Key(""))
	}
	if want := 1; again {
		if err != nil || sent != 2 {
			t.Errorf("sent %d times, want 2: %v", sent, err)
		}
	} else if err == nil || sent != want {
		t.Errorf("sent %d times, want %d: %v", sent, want, err)
	}
	for _, b := range bodies {
		if b != bodies[0] {
			t.Errorf("first sent %q, then %q, want the same body", bodies[0], b)
		}
	}
}

// TestRetryAfter verifies that the client waits for the time in Retry-After, unless it is too long.
func TestRetryAfter(t *testing.T) {
	date := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		headers []string
		sent    int
		least   time.Duration
	}{
		{[]string{"Retry-After", "7"}, 2, 7 * time.Second},
		{[]string{"Retry-After", date.Add(9 * time.Second).Format(http.TimeFormat), "Date", date.Format(http.TimeFormat)}, 2, 9 * time.Second},
		{[]string{"Retry-After", "soon"}, 2, 0},
		{[]string{"Retry-After", "-5"}, 2, 0},
		{[]string{"Retry-After", "3600"}, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun, sent := time.Now(), 0
			c := dial(t, "http://holdfast.invalid", Options{HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				if sent++; sent == 1 {
					return problem(fault.RateLimited, x.headers...), nil
				}
				return answer(200, "application/json", `{}`), nil
			})}})
			_, err := c.GetKey(t.Context(), "x")
			if took := time.Since(begun); sent != x.sent || took < x.least || took > x.least+time.Minute || (err == nil) != (sent == 2) {
				t.Errorf("%v: sent %d times in %s: %v", x.headers, sent, took, err)
			}
		})
	}
}

// TestTheContextEndsIt verifies that the context ends all attempts, and that the error wraps both
// causes.
func TestTheContextEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		c := dial(t, "http://holdfast.invalid", Options{MaxAttempts: 1e6, HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			sent++
			return problem(fault.KeyInFlight, "Retry-After", "1"), nil
		})}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.CreateKey(ctx, wire.NewKey{}, Key("k"))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, fault.Of(fault.KeyInFlight)) || sent < 2 || sent > 10 {
			t.Errorf("sent %d times: %v", sent, err)
		}
	})
	c := dial(t, "http://holdfast.invalid", Options{MaxAttempts: 3, HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, io.ErrUnexpectedEOF
	})}})
	if _, err := c.GetKey(t.Context(), "x"); !errors.Is(err, io.ErrUnexpectedEOF) || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
}

// codes returns all codes of package fault, read from its source, so that new ones are tested too.
func codes(t *testing.T) (all []fault.Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../fault/fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "Code" {
			text, _ := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			all = append(all, fault.Code(text))
		}
		return true
	})
	return all
}

// TestErrorsComeBack verifies that an error with any code is the same on the client as on the
// server.
func TestErrorsComeBack(t *testing.T) {
	all := codes(t)
	if len(all) < 30 {
		t.Fatalf("found only %d codes, want at least 30", len(all))
	}
	for _, code := range all {
		told := fault.New(code, "why %s", code).With("holder", "ann").With("status", "open").Wrap(io.ErrShortWrite)
		told.Violations = []fault.Violation{{Rule: "R1", Path: "/a", Line: 3, Message: "m"}}
		raw, err := wire.ProblemOf(told, code.Status(), "req").MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		c := dial(t, "http://holdfast.invalid", Options{MaxAttempts: 1, HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return answer(code.Status(), wire.ProblemType+"; charset=utf-8", string(raw)), nil
		})}})
		_, err = c.CreateKey(t.Context(), wire.NewKey{})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || !errors.Is(err, fault.Of(code)) || f.Message != told.Message || f.Fields["holder"] != "ann" || f.Fields["status"] != "open" ||
			f.Fields["requestId"] != "req" || len(f.Violations) != 1 || f.Violations[0] != told.Violations[0] {
			t.Errorf("%s was decoded as %+v", code, err)
		}
	}
}

// TestALargeAnswer verifies that a response that is too large is not read to its end.
func TestALargeAnswer(t *testing.T) {
	c := dial(t, "http://holdfast.invalid", Options{HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		a := answer(200, "application/json", "")
		a.Body = io.NopCloser(io.MultiReader(strings.NewReader(`"`), bytes.NewReader(make([]byte, maxAnswer)), neverRead{t}))
		return a, nil
	})}})
	if _, err := c.GetKey(t.Context(), "x"); fault.CodeOf(err) != fault.PayloadTooLarge {
		t.Errorf("got %v", err)
	}
}

type neverRead struct{ t *testing.T }

func (n neverRead) Read([]byte) (int, error) {
	n.t.Error("the body was read beyond the limit")
	return 0, io.EOF
}
