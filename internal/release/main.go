// Command release builds what a release of Holdfast consists of, into a folder:
//
//	go run ./internal/release -version v0.1.0 -out dist
//
// It builds the program for each platform, and packs it as archives, Debian packages and a container image, with checksums
// and a list of what is in it. It needs git, the Go command and the modules in the module cache, and no network. The files
// depend only on the commit, the version and the Go toolchain of go.dev, so everyone can build the same bytes again.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	version := flag.String("version", "", "Version to release, such as v0.1.0. Default: a version that names the commit.")
	out := flag.String("out", "dist", "Folder to write to. It replaces the folder of an earlier release.")
	targets := flag.String("targets", "", "Platforms to build for, such as linux/amd64,darwin/arm64. Default: all.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *version, *out, *targets); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version, out, targets string) error {
	r, err := describe(ctx, version)
	if err != nil {
		return err
	}
	chosen, err := parseTargets(targets)
	if err != nil {
		return err
	}
	if out, err = replaceable(out, string(r.Root)); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "holdfast-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, t := range chosen {
		fmt.Println("building", r.Version, "for", t)
		path := filepath.Join(work, t.OS+"-"+t.Arch, "holdfast"+t.exe())
		if err := build(ctx, r, t, path); err != nil {
			return err
		}
		b, err := load(ctx, t, path)
		if err != nil {
			return err
		}
		if len(b.Content) > maxSize {
			return fmt.Errorf("the program for %s has %d bytes, want at most %d: see docs/decisions/057-release.md", t, len(b.Content), maxSize)
		}
		r.Binaries = append(r.Binaries, b)
	}
	return r.write(out)
}

// maxSize is the size of the largest program.
const maxSize = 38_000_000

// Release is one version of the program, built for some platforms.
type Release struct {
	Version  string    // with a v
	Commit   string    // its hash
	Time     time.Time // of the commit; the time of everything in the files
	Root     fileTree  // the files of the project that are packed
	Binaries []Binary
}

// Target is a platform.
type Target struct{ OS, Arch string }

func (t Target) String() string { return t.OS + "/" + t.Arch }

func (t Target) exe() string {
	if t.OS == "windows" {
		return ".exe"
	}
	return ""
}

// platforms are the platforms of a release.
var platforms = []Target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// parseTargets parses a list of platforms. An empty list is all of them.
func parseTargets(list string) ([]Target, error) {
	if list == "" {
		return platforms, nil
	}
	var chosen []Target
	for name := range strings.SplitSeq(list, ",") {
		at := slices.IndexFunc(platforms, func(t Target) bool { return t.String() == name })
		if at < 0 {
			return nil, fmt.Errorf("unknown target %q: use some of %v, separated by commas", name, platforms)
		}
		chosen = append(chosen, platforms[at])
	}
	return chosen, nil
}

// semver matches a version as Go modules have it.
var semver = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// describe reads the commit that is checked out. It refuses changes that are not committed, because nobody could build the
// same bytes again.
func describe(ctx context.Context, version string) (*Release, error) {
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	changes, err := git(ctx, "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return nil, err
	}
	if changes != "" {
		return nil, fmt.Errorf("there are changes that are not committed: commit them first\n%s", changes)
	}
	commit, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	seconds, err := git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("time of the commit: %w", err)
	}
	r := &Release{Version: version, Commit: commit, Time: time.Unix(unix, 0).UTC(), Root: fileTree(root)}
	if version == "" { // as the Go command names a commit without a tag
		r.Version = "v0.0.0-" + r.Time.Format("20060102150405") + "-" + commit[:12]
	}
	if !semver.MatchString(r.Version) {
		return nil, fmt.Errorf("the version must be like v0.1.0 or v0.1.0-rc.1, got %q", version)
	}
	return r, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// stamp is the package whose variables have the version.
const stamp = "github.com/holdfast-go/holdfast/internal/cli"

// linked returns the flags of the linker: no tables for debuggers, and the version.
func (r *Release) linked() string {
	return fmt.Sprintf("-s -w -X %s.version=%s -X %s.revision=%s", stamp, r.Version, stamp, r.Commit)
}

// inherited are the variables that the Go command gets from the environment. None of them changes the result.
var inherited = []string{"PATH", "HOME", "TMPDIR", "SYSTEMROOT", "USERPROFILE", "LOCALAPPDATA", "TEMP", "TMP"}

// environment returns the environment of the Go command. All settings that change the result are fixed; the settings of the
// user's go env only say where the caches are.
func environment(ctx context.Context) ([]string, error) {
	caches := []string{"GOPATH", "GOMODCACHE", "GOCACHE"}
	folders, err := exec.CommandContext(ctx, "go", append([]string{"env"}, caches...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	env := []string{
		"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GOPROXY=off",
		"GOTOOLCHAIN=local", "GOENV=off", "GODEBUG=",
	}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for i, folder := range strings.Split(strings.TrimSpace(string(folders)), "\n") {
		env = append(env, caches[i]+"="+strings.TrimSpace(folder))
	}
	return env, nil
}

// build builds the program for a platform.
func build(ctx context.Context, r *Release, t Target, path string) error {
	env, err := environment(ctx)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", r.linked(), "-o", path, "./cmd/holdfast")
	c.Dir = string(r.Root)
	c.Env = append(env, "GOOS="+t.OS, "GOARCH="+t.Arch)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("build for %s: %w", t, err)
	}
	return nil
}

// file is a file of the release.
type file struct {
	name    string
	content []byte
}

// replaceable returns the folder to write to, without symbolic links. It refuses a folder that may contain something else than a
// release, because the folder is replaced.
func replaceable(out, repository string) (string, error) {
	out, err := filepath.Abs(out)
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return "", err
	}
	if out, err = filepath.EvalSymlinks(out); err != nil {
		return "", err
	}
	if repository, err = filepath.EvalSymlinks(repository); err != nil {
		return "", err
	}
	if inside, err := filepath.Rel(out, repository); err == nil && filepath.IsLocal(inside) {
		return "", fmt.Errorf("the folder %s contains the repository: choose another with -out", out)
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == sumsName }) {
		return "", fmt.Errorf("the folder %s contains something else than a release: empty it, or choose another with -out", out)
	}
	return out, nil
}

// sumsName is the name of the file with the checksums.
const sumsName = "SHA256SUMS"

// write writes the files of the release, and their checksums. The folder is replaced once all of them are written.
func (r *Release) write(out string) error {
	files, err := r.files()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(out), ".holdfast-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made) // it is gone if all succeeds
	if err := os.Chmod(made, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(made, f.name), f.content, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s  %9d  %s\n", checksum(f.content)[:12], len(f.content), f.name)
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(made, out)
}

// files returns the files of the release.
func (r *Release) files() ([]file, error) {
	var all []file
	add := func(name string, content []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, file{name, content})
		return nil
	}
	var images []Binary
	for _, b := range r.Binaries {
		name, content, err := r.archive(b)
		if err := add(name, content, err); err != nil {
			return nil, err
		}
		if b.OS != "linux" {
			continue
		}
		images = append(images, b)
		name, content, err = r.debian(b)
		if err := add(name, content, err); err != nil {
			return nil, err
		}
	}
	if len(images) > 0 {
		content, err := r.image(images)
		if err := add("holdfast_"+r.Version+"_oci.tar", content, err); err != nil {
			return nil, err
		}
	}
	content, err := r.sbom()
	if err := add("holdfast_"+r.Version+".spdx.json", content, err); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var sums strings.Builder
	for _, f := range all {
		fmt.Fprintf(&sums, "%s  %s\n", checksum(f.content), f.name)
	}
	return append(all, file{sumsName, []byte(sums.String())}), nil
}

func checksum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// goVersion is the version of Go that builds the release, because it also runs this program.
var goVersion = strings.TrimPrefix(runtime.Version(), "go")
