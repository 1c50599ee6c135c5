// Package sdk tests the SDKs with Node and Python, on a real server.
package sdk

//go:generate go test ../httpapi -count=1 -run ^TestSDKsAreGenerated$ -write-sdks

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// serverVariable makes the test binary the command holdfast.
const serverVariable = "HOLDFAST_SDK_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// serve starts the command holdfast, and returns the URL of the server.
func serve(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "dev", "--db", "sqlite:"+filepath.Join(t.TempDir(), "holdfast.db"), "--listen", "127.0.0.1:0",
		"--janitor-every", "200ms", "--log-level", "error")
	cmd.Env = append(os.Environ(), serverVariable+"=1")
	return testkit.Start(t, cmd).ExpectPrefix("holdfast ready url=")
}

func dial(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.New(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// language is a language that has an SDK.
type language struct {
	folder, ending string
	program        string // of its interpreter
	pack           string // the Debian package that has it
	needs          string
	environment    func(t *testing.T) string
}

var languages = []language{
	{"typescript", "mjs", "node", "nodejs", "Node 18 or later", func(*testing.T) string { return "" }},
	{"python", "py", "python3", "python3", "Python 3.9 or later", func(t *testing.T) string {
		folder, err := filepath.Abs("python")
		if err != nil {
			t.Fatal(err)
		}
		return "PYTHONPATH=" + folder
	}},
}

// each runs a test with each SDK. Without its interpreter, the test fails.
func each(t *testing.T, f func(t *testing.T, l language)) {
	for _, l := range languages {
		t.Run(l.folder, func(t *testing.T) {
			t.Parallel()
			path, err := pgtest.Command(t.Context(), l.program, l.pack)
			if err != nil {
				t.Fatalf("the SDK in %s needs %s: install it (Debian: %s): %v", l.folder, l.needs, l.pack, err)
			}
			l.program = path
			f(t, l)
		})
	}
}

// command returns a command that runs a program of testdata, or the given source.
func (l language) command(t *testing.T, name string, source []byte, environment ...string) *exec.Cmd {
	t.Helper()
	if source == nil {
		var err error
		if source, err = os.ReadFile(filepath.Join("testdata", name+"."+l.ending)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, name+"."+l.ending)
	if err := os.WriteFile(file, source, 0o644); err != nil {
		t.Fatal(err)
	}
	installed(t, dir)
	cmd := exec.Command(l.program, file)
	cmd.Env = append(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8", l.environment(t)), environment...)
	return cmd
}

// installed makes the SDK a package of the Node programs in a folder.
func installed(t *testing.T, dir string) {
	t.Helper()
	from, err := filepath.Abs("typescript")
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "node_modules", "@holdfast"), 0o755)
	}
	if err == nil {
		err = os.Symlink(from, filepath.Join(dir, "node_modules", "@holdfast", "client"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// printed runs a command, which must succeed, and returns what it printed.
func printed(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil || problems.Len() > 0 {
		t.Fatalf("%s: %v\n%s%s", filepath.Base(cmd.Path), err, out, &problems)
	}
	return string(out)
}

// TestQuickstarts verifies that the programs in the READMEs print what is shown there.
func TestQuickstarts(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	each(t, func(t *testing.T, l language) {
		text, err := os.ReadFile(filepath.Join(l.folder, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(text), "## Quickstart")
		blocks := regexp.MustCompile("(?s)```(?:js|python)\n(.*?)```\n\n```\n(.*?)```").FindStringSubmatch(rest)
		if !found || blocks == nil {
			t.Fatal("the README has no quickstart with its output")
		}
		if got := printed(t, l.command(t, "quickstart", []byte(blocks[1]), "HOLDFAST_URL="+serve(t))); got != blocks[2] {
			t.Errorf("the quickstart printed:\n%s\nwant:\n%s", got, blocks[2])
		}
	})
}

// clientOutput is what the program "client" prints.
const clientOutput = `missing: NOT_FOUND 404 false true
late: CONCURRENCY_ERROR 409 false 0
away: UNAVAILABLE 0 true
wrong: VALIDATION_ERROR
empty: VALIDATION_ERROR
other: UNAVAILABLE false
escaped: a/b ä
key: 0 0
mismatch: KEY_MISMATCH 422
lost: 0
lost: 1
pages: 250 249 100 true
search: placed
scope: PRECONDITION_FAILED NOT_MODIFIED {"total":1,"items":{"x":null}}
yaml: nap@1
optional: NOT_FOUND
feed: a/b keyed lost lost
resumed: n249 cut-here after
live: 0 true
watched: -1 null
watched: 0 {"n":2}
refused: VALIDATION_ERROR
`

var keyHeader = regexp.MustCompile(`(?i)\nidempotency-key: *(\S+)`)

// TestClients verifies the clients: errors, conditions, pages and event streams; that a call whose response is lost is sent again
// with its key and takes effect once; and that a stream that breaks is continued after the last event.
func TestClients(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	each(t, func(t *testing.T, l language) {
		url := serve(t)
		page := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(page.Close)
		away := httptest.NewServer(nil)
		away.Close()
		var mu sync.Mutex
		var keys []string // of the requests through the proxy
		lost := make(map[string]int)
		var cuts, resumes atomic.Int64
		sent := func(piece []byte) testkit.Action {
			mu.Lock()
			defer mu.Unlock()
			if key := keyHeader.FindSubmatch(piece); key != nil {
				keys = append(keys, string(key[1]))
			}
			if strings.Contains(strings.ToLower(string(piece)), "last-event-id: ") {
				resumes.Add(1)
			}
			for _, name := range []string{"lose-1", "lose-2"} {
				if strings.Contains(string(piece), name) {
					if lost[name]++; lost[name] == 1 {
						return testkit.LoseResponse
					}
				}
			}
			return testkit.Pass
		}
		answered := func(piece []byte) testkit.Action {
			if strings.Contains(string(piece), "cut-here") && cuts.Add(1) == 1 {
				return testkit.CutHalf
			}
			return testkit.Pass
		}
		_, through := testkit.NewProxy(t, url, sent, answered)
		got := printed(t, l.command(t, "client", nil, "HOLDFAST_URL="+url, "PROXY_URL="+through, "OTHER_URL="+page.URL, "AWAY_URL="+away.URL))
		if got != clientOutput {
			t.Errorf("the program printed:\n%s\nwant:\n%s", got, clientOutput)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(keys) != 4 || keys[0] != keys[1] || keys[2] != keys[3] || keys[0] == keys[2] {
			t.Errorf("two calls, of which the first response is lost, had the keys %q, want each key twice", keys)
		}
		if resumes.Load() != 2 { // the second loop of the program, and its reconnect
			t.Errorf("%d requests for event streams had Last-Event-ID, want 2", resumes.Load())
		}
	})
}

// TestPackage verifies which files npm would publish.
func TestPackage(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Attr(testlevel.NoteAttr, "npm is missing, so it was not checked which files it would publish")
		return
	}
	cmd := exec.Command(npm, "pack", "--dry-run", "--json", "--offline")
	cmd.Dir = "typescript"
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packed []struct {
		Files []struct{ Path string }
	}
	if err := json.Unmarshal(out, &packed); err != nil || len(packed) != 1 {
		t.Fatalf("npm pack printed %s: %v", out, err)
	}
	want := []string{"README.md", "package.json"}
	for _, name := range []string{"api", "client", "errors", "index", "webhook", "worker"} {
		want = append(want, name+".js", name+".d.ts")
	}
	var got []string
	for _, f := range packed[0].Files {
		got = append(got, f.Path)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("npm would publish %q, want %q", got, want)
	}
}
