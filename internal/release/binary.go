package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// Binary is the program for a platform.
type Binary struct {
	Target
	Content  []byte
	Info     *debug.BuildInfo // what it was built from, as it says itself
	Licenses []byte           // of what it was built from
}

// load reads a program and the licenses of its modules.
func load(ctx context.Context, t Target, path string) (Binary, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Binary{}, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return Binary{}, err
	}
	texts, err := licenses(ctx, info)
	return Binary{Target: t, Content: content, Info: info, Licenses: texts}, err
}

// licenses returns the licenses of Go and of the modules in a program, and their notices: those who pass on a program have to
// pass these on too. Those of the dashboard are in the dashboard.
func licenses(ctx context.Context, info *debug.BuildInfo) ([]byte, error) {
	env, err := environment(ctx)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, "go", "env", "GOROOT")
	c.Env = env
	root, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "Holdfast contains the following software.\n")
	if err := addLicenses(&out, "Go", goVersion, strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	folders, err := moduleFolders(ctx, env, info.Deps)
	if err != nil {
		return nil, err
	}
	for _, d := range modules(info) {
		if err := addLicenses(&out, d.Path, d.Version, folders[d.Path]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// modules returns the modules in a program except its own, in order of their paths.
func modules(info *debug.BuildInfo) []*debug.Module {
	all := slices.Clone(info.Deps)
	slices.SortFunc(all, func(a, b *debug.Module) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// moduleFolders returns the folders of modules in the module cache.
func moduleFolders(ctx context.Context, env []string, deps []*debug.Module) (map[string]string, error) {
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Version}}\t{{.Dir}}"}
	versions := make(map[string]string)
	for _, d := range deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("module %s is replaced: a release contains only published modules", d.Path)
		}
		args = append(args, d.Path)
		versions[d.Path] = d.Version
	}
	c := exec.CommandContext(ctx, "go", args...)
	c.Env = append(slices.Clip(env), "GOFLAGS=-mod=readonly")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	folders := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(line), "\t")
		if len(parts) != 3 || parts[2] == "" || parts[1] != versions[parts[0]] {
			return nil, fmt.Errorf("module %s is not in the module cache as it was built: go mod download", parts[0])
		}
		folders[parts[0]] = parts[2]
	}
	return folders, nil
}

// addLicenses adds the licenses in the folder of a module.
func addLicenses(out *bytes.Buffer, name, version, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if !e.Type().IsRegular() || !isLicense(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		found = found || !strings.HasPrefix(strings.ToUpper(e.Name()), "NOTICE")
		fmt.Fprintf(out, "\n%s\n%s %s: %s\n%s\n\n", strings.Repeat("=", 80), name, version, e.Name(), strings.Repeat("=", 80))
		out.Write(bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
		out.WriteByte('\n')
	}
	if !found {
		return fmt.Errorf("%s %s has no license in %s", name, version, folder)
	}
	return nil
}

// isLicense reports whether a file has a license or a notice.
func isLicense(name string) bool {
	name = strings.ToUpper(name)
	for _, prefix := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"} {
		if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, ".GO") {
			return true
		}
	}
	return false
}
