package pgtest

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// oldest is the oldest PostgreSQL version that we test with.
const oldest = 15

// An installation is a directory with the programs of one PostgreSQL.
type installation struct {
	bin       string
	major     int
	installed bool // by this process
}

func (i installation) program(name string) string { return filepath.Join(i.bin, name) }

// findServer finds PostgreSQL or, if possible, installs it.
func findServer(ctx context.Context) (installation, error) {
	if !supported {
		return installation{}, fmt.Errorf("no throwaway PostgreSQL on this system: set %s", EnvURL)
	}
	if found, ok := locateServer(); ok {
		return found, nil
	}
	err := Install(ctx, "postgresql", func() bool { _, ok := locateServer(); return ok })
	if err != nil {
		return installation{}, fmt.Errorf("no PostgreSQL %d or newer (%w): "+
			"install it (Debian: postgresql, Homebrew: postgresql@17) or set %s", oldest, err, EnvURL)
	}
	found, ok := locateServer()
	if !ok {
		return installation{}, fmt.Errorf("the package postgresql does not contain PostgreSQL %d or newer: "+
			"install a newer one or set %s", oldest, EnvURL)
	}
	found.installed = true
	return found, nil
}

// locateServer prefers PATH to the usual places: a PATH entry is a choice of version.
func locateServer() (installation, bool) {
	if found, ok := inspect(fromPath()); ok {
		return found, true
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
	} {
		if found, ok := newest(pattern); ok {
			return found, true
		}
	}
	return installation{}, false
}

// fromPath resolves links, because initdb looks for its files beside itself.
func fromPath() string {
	path, err := exec.LookPath("postgres")
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	return filepath.Dir(path)
}

func newest(pattern string) (installation, bool) {
	dirs, _ := filepath.Glob(pattern) // the patterns above are well-formed
	var all []installation
	for _, dir := range dirs {
		if found, ok := inspect(dir); ok {
			all = append(all, found)
		}
	}
	if len(all) == 0 {
		return installation{}, false
	}
	return slices.MaxFunc(all, func(a, b installation) int { return cmp.Compare(a.major, b.major) }), true
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// inspect reports whether a directory has the programs in a sufficient version.
func inspect(bin string) (installation, bool) {
	found := installation{bin: bin}
	if bin == "" {
		return found, false
	}
	if _, err := exec.LookPath(found.program("initdb")); err != nil {
		return found, false
	}
	text, err := exec.Command(found.program("postgres"), "--version").Output()
	match := versionText.FindSubmatch(text)
	if err != nil || match == nil {
		return found, false
	}
	found.major, err = strconv.Atoi(string(match[1]))
	return found, err == nil && found.major >= oldest
}

// hasLibrary reports whether a loadable module is installed. A server that preloads a missing one
// does not start.
func (i installation) hasLibrary(name string) bool {
	for _, dir := range i.libraryDirs() {
		if found, _ := filepath.Glob(filepath.Join(dir, name+".*")); len(found) > 0 {
			return true
		}
	}
	return false
}

// libraryDirs asks pg_config, which some distributions ship separately; otherwise it uses the
// layouts of Debian and of a build from source.
func (i installation) libraryDirs() []string {
	text, err := exec.Command(i.program("pg_config"), "--pkglibdir").Output()
	if err == nil {
		return []string{strings.TrimSpace(string(text))}
	}
	lib := filepath.Join(filepath.Dir(i.bin), "lib")
	return []string{lib, filepath.Join(lib, "postgresql")}
}

// Program returns the path of a program of PostgreSQL, such as pg_dump.
func Program(ctx context.Context, name string) (string, error) {
	found, err := findServer(ctx)
	return found.program(name), err
}
