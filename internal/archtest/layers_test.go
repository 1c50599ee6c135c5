package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// layers lists the files of the largest packages, the lowest layer first: a file calls the files
// before it. The doc comment of each package describes its layers.
var layers = map[string][]string{
	"internal/lifecycleengine": {
		// declarations of programs, and steps of configs
		"lifecycle.go", "steps.go", "entity.go", "body.go",
		// storage of entities, and their history
		"bound.go", "table.go", "usertable.go", "history.go", "aftereffects.go",
		// published configs, and the lifecycles of an engine
		"inforce.go", "register.go", "published_table.go", "published.go", "registry.go",
		// one attempt of an operation, by its plan
		"plan.go", "attempt_end.go", "attempt.go",
		// start and end of operations: by fire, by claim, by operators, by workers
		"idempotency.go", "fire.go", "claim.go", "operations.go", "tasks.go",
		// background work of an engine
		"publish.go", "background.go", "start.go",
	},
	"internal/runengine": {
		// a run, its steps and their ids, and queries
		"run.go", "read.go",
		// the plan of the next step of a run, without the database
		"plan.go", "input.go", "enter.go", "moves.go",
		// applying a plan, under the lease of a step
		"plain.go", "apply.go", "journal.go", "executor.go", "step.go",
		// signals and decisions, and timers
		"inbox.go", "due.go",
		// execution of handlers, local and remote
		"behind.go", "serve.go", "worker.go", "remote.go",
	},
}

// mostUpward is the maximum share of upward calls among the calls between files of a package:
// calls from a file to a later one.
const mostUpward = 0.2

func TestFilesStandInLayers(t *testing.T) {
	testlevel.OneGoroutine(t)
	m := thisModule(t)
	exports, err := exportsOf("../..", "./internal/lifecycleengine", "./internal/runengine")
	if err != nil {
		t.Fatal(err)
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	for pkg, files := range layers {
		calls, err := callsBetweenFiles(m, pkg, importer.ForCompiler(m.fset, "gc", open))
		if err != nil {
			t.Fatal(err)
		}
		if listed, there := slices.Sorted(slices.Values(files)), filesOf(m, pkg); !slices.Equal(listed, there) {
			t.Errorf("%s: layers lists the files %v, but the package has %v", pkg, listed, there)
			continue
		}
		up := upward(calls, files)
		if len(calls) == 0 || float64(len(up)) >= mostUpward*float64(len(calls)) {
			t.Errorf("%s: of %d calls between files, %d are upward, want less than %.0f %%:\n%s", pkg, len(calls), len(up), 100*mostUpward, strings.Join(up, "\n"))
		}
	}
}

// filesOf returns the files of a package without its tests, sorted by name.
func filesOf(m *Module, pkg string) (names []string) {
	for _, f := range m.Files {
		if f.Pkg == pkg && !f.Test {
			names = append(names, path.Base(f.Name))
		}
	}
	slices.Sort(names)
	return names
}

// exportsOf returns the export data files of packages and of their dependencies, in the build
// cache.
func exportsOf(dir string, patterns ...string) (map[string]string, error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, patterns...)...)
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return exports, nil
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
	}
}

// fileCall is a use of a function or method, including as a value, outside the file that
// declares it. A method of an interface is declared in the file of the interface.
type fileCall struct{ from, to, name string }

// callsBetweenFiles returns the calls between the files of a package.
func callsBetweenFiles(m *Module, pkg string, imports types.Importer) (calls []fileCall, err error) {
	var files []*ast.File
	for _, f := range m.Files {
		if f.Pkg == pkg && !f.Test {
			files = append(files, f.Syntax)
		}
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: imports}
	p, err := conf.Check(m.Path+"/"+pkg, m.fset, files, info)
	for id, used := range info.Uses {
		f, ok := used.(*types.Func)
		if !ok || f.Pkg() != p {
			continue
		}
		from, to := path.Base(m.fset.Position(id.Pos()).Filename), path.Base(m.fset.Position(f.Pos()).Filename)
		if from != to {
			calls = append(calls, fileCall{from, to, f.Name()})
		}
	}
	return calls, err
}

// upward describes the calls from a file to a later one in files.
func upward(calls []fileCall, files []string) (found []string) {
	for _, c := range calls {
		if slices.Index(files, c.from) < slices.Index(files, c.to) {
			found = append(found, c.from+" calls "+c.name+" of "+c.to)
		}
	}
	slices.Sort(found)
	return found
}

func TestPlantedUpwardCalls(t *testing.T) {
	testlevel.OneGoroutine(t)
	m := planted(t, map[string]string{
		"p/low.go":  "type low struct{}\nfunc (low) one() { high() }\nfunc two() {}\nfunc three() { two() }\n",
		"p/high.go": "func high() { low{}.one(); var f = two; f() }\n",
	})
	calls, err := callsBetweenFiles(m, "p", nil)
	if err != nil || len(calls) != 3 {
		t.Fatalf("got calls %v, error %v, want 3 calls", calls, err)
	}
	if got := upward(calls, []string{"low.go", "high.go"}); !slices.Equal(got, []string{"low.go calls high of high.go"}) {
		t.Errorf("upward calls: got %v, want one from low.go to high.go", got)
	}
	if got := upward(calls, []string{"high.go", "low.go"}); len(got) != 2 {
		t.Errorf("upward calls in the reverse order: got %v, want 2", got)
	}
}
