package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// PublicTypes reports the exported names of the public packages of the module in dir that expose
// a type of an internal package: in a parameter, a result, an exported field or method, or
// through an alias.
func PublicTypes(dir string) (found []string, err error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Name,Module", "./...")
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := make(map[string]string)
	var public []string
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Export, Name string
			Module                   *struct{ Main bool }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main && p.Name != "main" && p.Export != "" && !isInternal(p.ImportPath) {
			public = append(public, p.ImportPath)
		}
	}
	all := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, path := range public {
		pkg, err := all.Import(path)
		if err != nil {
			return nil, err
		}
		for _, name := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(name); o.Exported() {
				for _, where := range exposed(o) {
					found = append(found, path+"."+where)
				}
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

func isInternal(path string) bool {
	return strings.HasSuffix(path, "/internal") || strings.Contains(path, "/internal/")
}

// exposed returns the parts of a declaration that expose an internal type.
func exposed(o types.Object) (found []string) {
	inspect := func(where string, t types.Type) {
		if hidden := internalIn(t, nil); hidden != "" {
			found = append(found, where+": "+hidden)
		}
	}
	named, isType := o.(*types.TypeName)
	if !isType {
		inspect(o.Name(), o.Type())
		return found
	}
	if named.IsAlias() {
		inspect(o.Name(), o.Type())
		return found
	}
	inspect(o.Name(), o.Type().Underlying())
	methods := types.NewMethodSet(types.NewPointer(o.Type()))
	for m := range methods.Methods() {
		if m.Obj().Exported() {
			inspect(o.Name()+"."+m.Obj().Name(), m.Type())
		}
	}
	return found
}

// internalIn returns an internal type that t exposes, or "".
func internalIn(t types.Type, seen []types.Type) string {
	t = types.Unalias(t)
	if slices.Contains(seen, t) {
		return ""
	}
	seen = append(seen, t)
	first := func(parts ...types.Type) string {
		for _, p := range parts {
			if hidden := internalIn(p, seen); hidden != "" {
				return hidden
			}
		}
		return ""
	}
	switch t := t.(type) {
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && isInternal(p.Path()) {
			return p.Path() + "." + t.Obj().Name()
		}
		return first(slices.Collect(t.TypeArgs().Types())...)
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels, maps
		if m, ok := t.(*types.Map); ok {
			return first(m.Key(), m.Elem())
		}
		return first(t.Elem())
	case *types.Signature:
		var parts []types.Type
		for v := range t.Params().Variables() {
			parts = append(parts, v.Type())
		}
		for v := range t.Results().Variables() {
			parts = append(parts, v.Type())
		}
		return first(parts...)
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				if hidden := first(f.Type()); hidden != "" {
					return f.Name() + " " + hidden
				}
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				if hidden := first(m.Type()); hidden != "" {
					return m.Name() + " " + hidden
				}
			}
		}
	}
	return ""
}
