package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// Every command has examples in its help, and each example parses.
func TestExamplesAreUnderstood(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Chdir(t.TempDir())
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	leaves := k.Model.Leaves(true)
	if n := strings.Count("\n"+helpTexts, "\n# "); n != len(leaves) {
		t.Errorf("help.md has %d sections, want one for each of %d commands", n, len(leaves))
	}
	for _, leaf := range leaves {
		examples := 0
		for line := range strings.Lines(leaf.Detail) {
			line, ok := strings.CutPrefix(line, "    holdfast ")
			if !ok && !strings.HasPrefix(line, "    source <(holdfast ") {
				continue
			}
			examples++
			if !ok {
				continue
			}
			if err := parseExample(k, line); err != nil {
				t.Errorf("%s: the example %q does not parse: %v", leaf.FullPath(), line, err)
			}
		}
		if examples == 0 {
			t.Errorf("%s has no example in its help", leaf.FullPath())
		}
	}
}

// word matches a word of a command line.
var word = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)

// parseExample parses an example of a command, without the name of the program.
func parseExample(k *kong.Kong, line string) error {
	line, _, _ = strings.Cut(strings.ReplaceAll(line, " > ", " | "), " | ") // the rest is for the shell
	var args []string
	for _, w := range word.FindAllString(line, -1) {
		args = append(args, strings.Trim(w, `'"`))
	}
	return parseWords(k, args)
}

// parseWords parses the arguments of a command.
func parseWords(k *kong.Kong, args []string) error {
	forget(k)
	_, err := newProgram(nil, io.Discard, io.Discard).parse(k, args)
	return err
}

// forget prepares a parser for another command line: a new parser for each is slow.
func forget(k *kong.Kong) {
	_ = kong.Visit(k.Model, func(n kong.Visitable, next kong.Next) error {
		switch n := n.(type) {
		case *kong.Flag:
			n.Set = false
		case *kong.Value:
			n.Set = false
		}
		return next(nil)
	})
}

// The help of a command shows each example on a line of its own.
func TestExamplesAreNotWrapped(t *testing.T) {
	t.Chdir(t.TempDir())
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	for section := range strings.SplitSeq(strings.TrimPrefix(helpTexts, "# "), "\n# ") {
		command, text, _ := strings.Cut(section, "\n")
		var out bytes.Buffer
		k.Stdout = &out
		if err := parseWords(k, append(strings.Fields(command), "--help")); !errors.Is(err, errHelped) {
			t.Fatalf("%s --help: %v", command, err)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "    ") && !strings.Contains(out.String(), "\n"+line) {
				t.Errorf("the help of %s lacks the line %q", command, line)
			}
		}
	}
}

// The flags for keys say which key they are for, and --idempotency-key is the same for all commands.
func TestKeysHaveNamesOfTheirOwn(t *testing.T) {
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range k.Model.Leaves(true) {
		for _, f := range leaf.Flags {
			if strings.HasPrefix(f.Name, "key-") && f.PlaceHolder == "KEY" {
				t.Errorf("%s has the flag --%s: name the key that it is", leaf.FullPath(), f.Name)
			}
			if f.Name == "idempotency-key" && !strings.HasPrefix(f.Help, "Idempotency key.") {
				t.Errorf("%s: --idempotency-key is not the idempotency key: %s", leaf.FullPath(), f.Help)
			}
		}
	}
}

// A setting with the same name is the same for every subcommand.
func TestVerbsAgreeOnSettings(t *testing.T) {
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	known := settings(k.Model.Node)
	for _, leaf := range k.Model.Leaves(false) {
		for _, f := range leaf.Flags {
			other := known[f.Name]
			switch {
			case other == nil && f.Tag.Get("setting") != "-":
				t.Errorf("%s --%s is not a setting", leaf.FullPath(), f.Name)
			case other == nil:
			case !isSetting(f) || other.Target.Type() != f.Target.Type() || other.Default != f.Default || other.Enum != f.Enum || other.Help != f.Help:
				t.Errorf("%s --%s differs from the setting of another command", leaf.FullPath(), f.Name)
			}
		}
	}
	for _, name := range []string{"url", "key", "workspace", "output", "rate-limit"} {
		if known[name] == nil {
			t.Errorf("setting %s does not exist", name)
		}
	}
}

// running starts a command and returns its first line and a function that stops it.
func running(t *testing.T, args ...string) (line string, stop func()) {
	t.Helper()
	lines, stop := watching(t, args...)
	line, ok := <-lines
	if !ok {
		stop()
		t.Fatalf("%v printed nothing", args)
	}
	return strings.TrimSpace(line), stop
}

// watching starts a command and returns its output and a function that stops it.
func watching(t *testing.T, args ...string) (<-chan string, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	lines, ended := make(chan string, 1000), make(chan int, 1)
	var errs bytes.Buffer
	p := newProgram(nil, onReady(func(s string) error { lines <- s; return nil }), &errs)
	go func() {
		code := p.run(ctx, args)
		close(lines)
		ended <- code
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("%v: exit code is %d:\n%s", args, code, errs.String())
		}
	})
	t.Cleanup(stop)
	return lines, stop
}

// The feed can be followed on a server and in this process. A stop is not an error.
func TestEventsAreFollowed(t *testing.T) {
	t.Chdir(t.TempDir())
	do := func(args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := newProgram(nil, &out, &errs).run(t.Context(), args); code != 0 {
			t.Fatalf("%v: exit code is %d: %s", args, code, errs.String())
		}
	}
	do("migrate")
	do("streams", "append", "s", "one", "--data", `{"a":"b"}`)
	line, stop := running(t, "events", "--follow", "-o", "json")
	if !strings.Contains(line, `"name":"one","data":{"a":"b"}`) {
		t.Errorf("got line %s", line)
	}
	stop()
	url, _ := running(t, "dev", "--listen", "127.0.0.1:0")
	url = strings.TrimPrefix(url, "holdfast ready url=")
	line, stop = running(t, "events", "--follow", "--url", url)
	if !strings.Contains(line, `  s  0  one  {"a":"b"}`) {
		t.Errorf("got line %s", line)
	}
	stop()
}

// A scope can be watched on a server and in this process. A stop is not an error.
func TestAScopeIsWatched(t *testing.T) {
	t.Chdir(t.TempDir())
	do := func(args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := newProgram(nil, &out, &errs).run(t.Context(), args); code != 0 {
			t.Fatalf("%v: exit code is %d: %s", args, code, errs.String())
		}
	}
	do("migrate")
	line, stop := running(t, "scope", "watch", "cart", "c")
	if line != "none" {
		t.Errorf("got line %s, want none", line)
	}
	stop()
	do("scope", "patch", "cart", "c", `{"a":1}`)
	line, stop = running(t, "scope", "watch", "cart", "c", "-o", "json")
	if line != `{"kind":"cart","id":"c","version":0,"state":{"a":1}}` {
		t.Errorf("got line %s", line)
	}
	stop()
	url, _ := running(t, "dev", "--listen", "127.0.0.1:0")
	url = strings.TrimPrefix(url, "holdfast ready url=")
	lines, stop := watching(t, "scope", "watch", "cart", "c", "--url", url)
	for _, c := range []struct {
		want string
		next []string
	}{{`0  {"a":1}`, []string{"inc", "cart", "c", "a"}}, {`1  {"a":2}`, []string{"delete", "cart", "c"}}, {"none", []string{"patch", "cart", "c", "{}"}}, {"3  {}", nil}} {
		if line := strings.TrimSpace(<-lines); line != c.want {
			t.Errorf("got line %s, want %s", line, c.want)
		}
		if c.next != nil {
			do(append(append([]string{"scope"}, c.next...), "--url", url)...)
		}
	}
	stop()
}

// A key without its own rate limit has the limit of --rate-limit. Even on a slow machine one
// of a thousand requests exceeds it.
func TestServeLimitsKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	var key, errs bytes.Buffer
	if code := newProgram(nil, &key, &errs).run(t.Context(), []string{"keys", "create", "--role", "read"}); code != 0 {
		t.Fatal(errs.String())
	}
	url, _ := running(t, "serve", "--listen", "127.0.0.1:0", "--rate-limit", "1")
	c, err := client.New(strings.TrimPrefix(url, "holdfast ready url="), client.Options{APIKey: strings.TrimSpace(key.String()), MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 1000 {
		_, err = c.ListReactionsPage(t.Context(), client.Page{})
		if errors.Is(err, fault.Of(fault.RateLimited)) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("no request was limited")
}

// A handler that panics breaks its response off, and closing the body cancels the handler.
func TestInMemory(t *testing.T) {
	left := make(chan struct{})
	c := &http.Client{Transport: inMemory{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/echo":
			w.Header().Set("X-Method", r.Method)
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(body)
		case "/panic":
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		case "/wait":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(left)
		}
	})}}
	resp, err := c.Post("http://x/echo", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(body) != "hello" || resp.StatusCode != 201 || resp.Header.Get("X-Method") != "POST" {
		t.Errorf("got body %q, response %v, error %v", body, resp, err)
	}
	if resp, err = c.Get("http://x/nothing"); err != nil || resp.StatusCode != 200 {
		t.Errorf("empty response: got %v, error %v", resp, err)
	}
	resp.Body.Close()
	if resp, err = c.Get("http://x/panic"); err != nil {
		t.Fatal(err)
	}
	if body, err = io.ReadAll(resp.Body); err == nil || string(body) != "half" {
		t.Errorf("interrupted response: got body %q, error %v", body, err)
	}
	resp.Body.Close()
	if resp, err = c.Get("http://x/wait"); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	<-left
}

func TestCompletionKnowsTheGrammar(t *testing.T) {
	var g grammar
	k, err := newProgram(nil, io.Discard, io.Discard).parser(&g)
	if err != nil {
		t.Fatal(err)
	}
	all := completions(k.Model.Node, "")
	for _, leaf := range k.Model.Leaves(true) {
		path := strings.TrimPrefix(pathOf(leaf), "holdfast ")
		at := slices.IndexFunc(all, func(c completion) bool { return c.path == path })
		if at < 0 || !slices.Contains(all[at].words(), "--log-level") {
			t.Errorf("%q has no completion", path)
		}
	}
}

func pathOf(n *kong.Node) string {
	if n.Parent == nil {
		return n.Name
	}
	return pathOf(n.Parent) + " " + n.Name
}

// TestOneCommandIsAsInTheWholeGrammar verifies that the parser of one command has the same subcommands, flags and
// help as the parser of all commands.
func TestOneCommandIsAsInTheWholeGrammar(t *testing.T) {
	describe := func(n *kong.Node) string {
		var b strings.Builder
		for _, leaf := range n.Leaves(false) {
			b.WriteString(leaf.FullPath() + leaf.Help + leaf.Detail)
			for _, group := range leaf.AllFlags(false) {
				for _, f := range group {
					b.WriteString(f.String() + f.Default + f.Help)
				}
			}
		}
		return b.String()
	}
	p := newProgram(nil, io.Discard, io.Discard)
	all, err := p.parser(&grammar{})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range all.Model.Children {
		one, err := p.parser(&grammar{}, only(command.Name)...)
		if err != nil {
			t.Fatal(err)
		}
		whole := command.Hidden || command.Name == "completion"
		if n := len(one.Model.Children); n != 1 && !whole {
			t.Errorf("%s: the parser has %d commands, want 1", command.Name, n)
		}
		i := slices.IndexFunc(one.Model.Children, func(n *kong.Node) bool { return n.Name == command.Name })
		if i < 0 || describe(one.Model.Children[i]) != describe(command) {
			t.Errorf("%s: the parser of this command alone differs", command.Name)
		}
	}
}
