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
)

// layers are the files of the largest packages, the lowest first: a file calls those before it. Each package's doc comment
// says what the layers are for.
var layers = map[string][]string{
	"internal/lifecycleengine": {
		// what a program declares, and what a config says of a step
		"lifecycle.go", "steps.go", "entity.go", "body.go",
		// where the entities are, and what their history tells
		"bound.go", "table.go", "usertable.go", "history.go", "aftereffects.go",
		// which configs are in force, and the lifecycles of an engine
		"inforce.go", "register.go", "published.go", "registry.go",
		// one attempt of an operation, by the plan that it was taken with
		"plan.go", "attempt_end.go", "attempt.go",
		// how operations begin and end: fired, claimed, by persons, by workers
		"idempotency.go", "fire.go", "claim.go", "operations.go", "tasks.go",
		// what an engine does by itself
		"publish.go", "background.go", "start.go",
	},
	"internal/runengine": {
		// a run, its steps and their ids, and how they are read
		"run.go", "read.go",
		// what a run does next, worked out as a plan; no database
		"plan.go", "input.go", "enter.go", "moves.go",
		// putting a plan into force, under the lease of a step
		"apply.go", "journal.go", "executor.go", "step.go",
		// what comes from outside, and what is due
		"inbox.go", "due.go",
		// bodies: in this program, and elsewhere
		"serve.go", "worker.go", "remote.go",
	},
}

// mostUpward is the share of the calls between the files of a package that may run upward: from a file to one behind it.
const mostUpward = 0.2

func TestFilesStandInLayers(t *testing.T) {
	m := readHouse(t)
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
			t.Errorf("%s: the layers name the files %v, and there are %v", pkg, listed, there)
			continue
		}
		up := upward(calls, files)
		if len(calls) == 0 || float64(len(up)) >= mostUpward*float64(len(calls)) {
			t.Errorf("%s: of %d calls between files, %d run upward; under %.0f %% may:\n%s", pkg, len(calls), len(up), 100*mostUpward, strings.Join(up, "\n"))
		}
	}
}

// filesOf names the files of a package, without its tests, in the order of their names.
func filesOf(m *Module, pkg string) (names []string) {
	for _, f := range m.Files {
		if f.Pkg == pkg && !f.Test {
			names = append(names, path.Base(f.Name))
		}
	}
	slices.Sort(names)
	return names
}

// exportsOf returns where the build cache has the types of some packages, and of all that they import.
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

// fileCall is a use of a function or a method, also as a value, in another file than the one that declares it. A method of
// an interface is declared where the interface is.
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

// upward describes the calls that run upward, where a file stands above those before it.
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
	m := planted(t, map[string]string{
		"p/low.go":  "type low struct{}\nfunc (low) one() { high() }\nfunc two() {}\nfunc three() { two() }\n",
		"p/high.go": "func high() { low{}.one(); var f = two; f() }\n",
	})
	calls, err := callsBetweenFiles(m, "p", nil)
	if err != nil || len(calls) != 3 {
		t.Fatalf("the calls are %v, %v", calls, err)
	}
	if got := upward(calls, []string{"low.go", "high.go"}); !slices.Equal(got, []string{"low.go calls high of high.go"}) {
		t.Errorf("upward run %v", got)
	}
	if got := upward(calls, []string{"high.go", "low.go"}); len(got) != 2 {
		t.Errorf("in the other order, upward run %v", got)
	}
}
