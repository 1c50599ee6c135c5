package chaos

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// program is a build of the server, and of the worker of this test with the client of the same revision.
type program struct {
	name           string // a tag or a revision
	server, worker string // paths
}

const root = "../.."

// releases returns the revisions that count as releases, newest first: the tags before the present revision, then those of
// testdata/releases.
func releases(t *testing.T) []string {
	t.Helper()
	all := strings.Fields(git(t, "tag", "--list", "v*", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-version:refname"))
	all = slices.DeleteFunc(all, func(tag string) bool { return !regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(tag) })
	for line := range strings.Lines(readFile(t, "testdata/releases")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// git returns what a git command prints.
func git(t *testing.T, args ...string) string {
	t.Helper()
	path, err := pgtest.Command(t.Context(), "git", "git")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		t.Fatalf("this test builds releases from a clone with its history and tags (git fetch --unshallow --tags): git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// schemaOf returns the schema number of a revision.
func schemaOf(t *testing.T, revision string) int {
	t.Helper()
	names := strings.Fields(git(t, "ls-tree", "--name-only", revision, "postgres/migrations/"))
	number, err := strconv.Atoi(filepath.Base(names[len(names)-1])[:4])
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// programs builds the last release whose servers must be stopped before an upgrade to this tree, the last one whose servers can run
// beside it, and this tree. If no release can run beside it, the second is this tree as it is, and the third has one more migration.
// So has it if it has no migration that the second lacks.
func programs(t *testing.T) (stopped, beside, now *program) {
	t.Helper()
	migrations, err := filepath.Glob(filepath.Join(root, "postgres/migrations/*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	least, err := strconv.Atoi(regexp.MustCompile(`(?m)^-- min_reader: (\d+)$`).FindStringSubmatch(readFile(t, migrations[len(migrations)-1]))[1])
	if err != nil {
		t.Fatal(err)
	}
	var older, newest string
	for _, revision := range releases(t) {
		if schemaOf(t, revision) < least {
			older = cmp.Or(older, revision)
		} else {
			newest = cmp.Or(newest, revision)
		}
	}
	if older == "" {
		t.Fatalf("no release has a schema number below %d: add a revision to testdata/releases", least)
	}
	now = &program{name: "this tree", worker: os.Args[0]}
	switch stopped = buildRelease(t, older); {
	case newest == "":
		t.Attr(testlevel.NoteAttr, "no release can run beside this tree, so servers were upgraded one by one from this tree")
		beside, now.server = &program{name: now.name, server: command(t), worker: now.worker}, buildNext(t, len(migrations)+1, least)
	case schemaOf(t, newest) == len(migrations):
		beside, now.server = buildRelease(t, newest), buildNext(t, len(migrations)+1, least)
	default:
		beside, now.server = buildRelease(t, newest), command(t)
	}
	return stopped, beside, now
}

// buildNext builds the server of this tree with one more migration, which adds a column to tables that the load writes.
func buildNext(t *testing.T, number, minReader int) string {
	t.Helper()
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	for db, table := range map[string]string{"postgres": "{schema}.", "sqlite": "holdfast_"} {
		text := fmt.Sprintf("-- A column in tables that the load writes.\n-- min_reader: %d\n", minReader)
		for _, name := range []string{"stream", "entity", "run", "scope"} {
			text += fmt.Sprintf("ALTER TABLE %s%s ADD COLUMN upgraded text;\n", table, name)
		}
		name, err := filepath.Abs(filepath.Join(root, db, "migrations", fmt.Sprintf("%04d_next.sql", number)))
		if err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][name] = filepath.Join(dir, db)
		if err := os.WriteFile(filepath.Join(dir, db), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, raw(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	return build(t, "-overlay", file)
}

// buildRelease builds a release, once per machine.
func buildRelease(t *testing.T, revision string) *program {
	t.Helper()
	commit := strings.TrimSpace(git(t, "rev-parse", "--verify", revision+"^{commit}"))
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "holdfast", fmt.Sprintf("release-%.12s-%s", commit, runtime.Version()))
	p := &program{name: revision, server: filepath.Join(dir, "holdfast"), worker: filepath.Join(dir, "worker")}
	if _, err := os.Stat(dir); err == nil {
		return p
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), "building-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(made)
	const script = `mkdir source && git -C "$1" archive "$2" | tar -x -C source && cd source
go build -buildvcs=false -o .. ./cmd/holdfast && go test -c -buildvcs=false -o ../worker ./internal/chaos && cd .. && rm -r source`
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-euc", script, "sh", repository, commit)
	cmd.Dir, cmd.Env = made, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build of %s: %v: %s", revision, err, out)
	}
	if err := os.Rename(made, dir); err != nil { // another process may have been faster
		if _, err := os.Stat(dir); err != nil {
			t.Fatal(err)
		}
	}
	return p
}
