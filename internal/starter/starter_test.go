package starter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/cli"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/starter"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// serverVariable makes the test binary the command holdfast.
const serverVariable = "HOLDFAST_STARTER_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// checkout returns this repository.
func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// written writes a project and returns its folder.
func written(t *testing.T, p starter.Project) string {
	t.Helper()
	p.Dir = filepath.Join(t.TempDir(), "My Shop")
	if err := p.Write(); err != nil {
		t.Fatal(err)
	}
	return p.Dir
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// run runs a command in a folder, which must succeed, and returns what it prints.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := command(dir, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "HOLDFAST="+os.Args[0], serverVariable+"=1")
	return cmd
}

// TestTheGoProject verifies that a written Go project passes its test, and that its program charges once.
func TestTheGoProject(t *testing.T) {
	testlevel.Long(t)
	dir := written(t, starter.Project{Template: "go", Checkout: checkout(t)})
	run(t, dir, "go", "mod", "tidy")
	if out := run(t, dir, "go", "test", "-v", "./..."); !strings.Contains(out, "--- PASS: TestManyClicksAreOneCharge") {
		t.Errorf("got output\n%s", out)
	}
	run(t, dir, "go", "vet", "./...")
	program := filepath.Join(t.TempDir(), "program") // "go run" does not stop its child
	run(t, dir, "go", "build", "-o", program, ".")
	url := testkit.Start(t, command(dir, program, "-listen", "127.0.0.1:0")).ExpectPrefix("listening on ")
	post := func(path, body string) string {
		resp, err := http.Post(url+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.StatusCode, " ", string(text))
	}
	for _, x := range []struct{ path, body, want string }{
		{"/orders/o-1", `{"cents": 1200}`, `200 {"ID":"o-1",`},
		{"/orders/o-1", `cents`, `400 `},
		{"/orders/o-1/pay", "", `200 {"ID":"o-1",`},
		{"/orders/o-1/pay", "", "409 INVALID_TRANSITION"},
		{"/orders/o-2/pay", "", "404 "},
	} {
		if got := post(x.path, x.body); !strings.HasPrefix(got, x.want) {
			t.Errorf("POST %s %s: got %s, want %s", x.path, x.body, got, x.want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestTheTypeScriptProject verifies that a written TypeScript project compiles and passes its test.
func TestTheTypeScriptProject(t *testing.T) {
	testlevel.Long(t)
	npm, err := pgtest.Command(t.Context(), "npm", "npm")
	if err != nil {
		t.Fatalf("the TypeScript project needs Node 18 or later with npm: %v", err)
	}
	dir := written(t, starter.Project{Template: "typescript", Checkout: checkout(t)})
	if out, err := command(dir, npm, "install", "--no-audit", "--no-fund").CombinedOutput(); err != nil {
		t.Attr(testlevel.NoteAttr, "the packages of the TypeScript project cannot be installed, so it was not run: "+string(bytes.TrimSpace(out)))
		return
	}
	if out := run(t, dir, npm, "test"); !strings.Contains(out, "pass 1") || !strings.Contains(out, "fail 0") {
		t.Errorf("got output\n%s", out)
	}
}

// A project uses the release that has written it, or a checkout.
func TestVersions(t *testing.T) {
	here := checkout(t)
	for _, x := range []struct{ version, checkout, mod, client string }{
		{"v0.1.0", "", "module example.com/my-shop\n\ngo 1.26.0\n\nrequire github.com/holdfast-go/holdfast v0.1.0\n", "0.1.0"},
		{"v1.2.3-rc.1", "", "module example.com/my-shop\n\ngo 1.26.0\n\nrequire github.com/holdfast-go/holdfast v1.2.3-rc.1\n", "1.2.3-rc.1"},
		{"(devel)", "", "module example.com/my-shop\n\ngo 1.26.0\n", "latest"},
		{"v0.0.0-20261101120000-abcdef012345+dirty", "", "module example.com/my-shop\n\ngo 1.26.0\n", "latest"},
		{"v0.1.0", here, "module example.com/my-shop\n\ngo 1.26.0\n\nrequire github.com/holdfast-go/holdfast v0.0.0\n\nreplace github.com/holdfast-go/holdfast => \"" + here + "\"\n", "file:" + here + "/sdk/typescript"},
	} {
		p := starter.Project{Template: "go", Version: x.version, Checkout: x.checkout}
		if got := read(t, written(t, p), "go.mod"); got != x.mod {
			t.Errorf("version %s: got go.mod %q, want %q", x.version, got, x.mod)
		}
		p.Template = "typescript"
		var pack struct {
			Name         string            `json:"name"`
			Dependencies map[string]string `json:"dependencies"`
		}
		if err := json.Unmarshal([]byte(read(t, written(t, p), "package.json")), &pack); err != nil {
			t.Fatal(err)
		}
		if pack.Name != "my-shop" || pack.Dependencies["@holdfast/client"] != x.client {
			t.Errorf("version %s: got package %+v, want %s", x.version, pack, x.client)
		}
	}
	if mod := read(t, here, "go.mod"); !strings.Contains(mod, "\ngo 1.26.0\n") {
		t.Error("the projects must have the version of Go that go.mod of the repository has")
	}
}

// A folder may have the name of a package of Go or of a device of Windows, and may be a repository without files.
func TestNamesOfProjects(t *testing.T) {
	for folder, want := range map[string]string{"log": "example.com/log", "Go": "example.com/go", "con": "example.com/con-app", "my shop": "example.com/my-shop"} {
		dir := filepath.Join(t.TempDir(), folder)
		if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := (starter.Project{Template: "go", Dir: dir}).Write(); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir, "go.mod"); !strings.HasPrefix(got, "module "+want+"\n") {
			t.Errorf("in folder %s, go.mod is %q, want module %s", folder, got, want)
		}
	}
}

// A folder that is not empty is refused and stays as it is, and a failure leaves nothing behind.
func TestNothingHalfWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := starter.Project{Template: "go", Dir: dir}.Write()
	if err == nil || !strings.Contains(err.Error(), "is not empty (it has notes): choose another one") {
		t.Errorf("got error %v", err)
	}
	for name, p := range map[string]starter.Project{
		"a file as the folder": {Template: "go", Dir: filepath.Join(dir, "notes", "x")},
		"a path too long":      {Template: "go", Dir: longPath(dir)},
		"no checkout":          {Template: "go", Dir: filepath.Join(dir, "new"), Checkout: dir},
	} {
		if err := p.Write(); err == nil {
			t.Errorf("%s: the project was written", name)
		}
	}
	if names := namesIn(t, dir); !slices.Equal(names, []string{"notes"}) {
		t.Errorf("the folder has %q", names)
	}
}

// longPath returns a path in dir that is short enough for a folder and for a file .gitignore in it (on Linux), but not for
// main_test.go.
func longPath(dir string) string {
	const longest = 4095
	for len(dir) < longest-len("/main_test.go")+1 {
		dir += "/" + strings.Repeat("x", max(1, min(200, longest-len("/main_test.go")-len(dir))))
	}
	return dir
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}
