package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

const root = fileTree("../..")

var commitTime = time.Unix(1_700_000_000, 0)

// small returns a release of programs that are bytes without a meaning.
func small() *Release {
	r := &Release{Version: "v1.2.3-rc.1", Commit: strings.Repeat("0123456789", 4), Time: commitTime.UTC(), Root: root}
	random := rand.New(rand.NewPCG(1, 2))
	for _, p := range platforms {
		content := make([]byte, 100_001)
		for i := range content {
			content[i] = byte(random.Uint32())
		}
		r.Binaries = append(r.Binaries, Binary{Target: p, Content: content, Licenses: []byte("the license of b\n"), Info: &debug.BuildInfo{
			GoVersion: "go1.26.0", Deps: []*debug.Module{{Path: "example.org/Up/b", Version: "v1.0.0+incompatible", Sum: "h1:b"}, {Path: "example.org/a", Version: "v1.0.0", Sum: "h1:a"}},
		}})
	}
	return r
}

func filesOf(t *testing.T, r *Release) map[string][]byte {
	t.Helper()
	files, err := r.files()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]byte)
	for _, f := range files {
		all[f.name] = f.content
	}
	return all
}

// The same programs give the same bytes, also in another place, in another zone and from files with other times.
func TestPackingIsReproducible(t *testing.T) {
	testlevel.OneGoroutine(t)
	first := filesOf(t, small())
	other := small()
	copied := t.TempDir()
	for _, name := range []string{"LICENSE", "README.md", "web/dist/licenses.txt", "deploy"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(copied, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if name == "deploy" {
			if err := os.CopyFS(filepath.Join(copied, name), os.DirFS("../../deploy")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := root.read(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	other.Root = fileTree(copied)
	defer func(l *time.Location) { time.Local = l }(time.Local)
	time.Local = time.FixedZone("elsewhere", 5*60*60)
	second := filesOf(t, other)
	if len(first) != len(second) || len(first) != 6+2+3 {
		t.Errorf("%d files, then %d, want 11", len(first), len(second))
	}
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s has other bytes the second time", name)
		}
	}
	checkSums(t, first)
}

// checkSums checks that SHA256SUMS has every other file.
func checkSums(t *testing.T, files map[string][]byte) {
	t.Helper()
	var want []string
	for name, content := range files {
		if name != "SHA256SUMS" {
			want = append(want, checksum(content)+"  "+name)
		}
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	if got := strings.TrimSpace(string(files["SHA256SUMS"])); got != strings.Join(want, "\n") {
		t.Errorf("SHA256SUMS is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// readTar returns the entries of a tar archive by name. It checks what must not depend on the machine.
func readTar(t *testing.T, content []byte) map[string]entry {
	t.Helper()
	all := make(map[string]entry)
	last := ""
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name <= last || !h.ModTime.Equal(commitTime) || h.Uid != h.Gid || h.Uname != "" || h.Gname != "" || h.Uid != 0 && h.Name != "data/" {
			t.Errorf("%s follows %s, changed at %s, is owned by %d:%d", h.Name, last, h.ModTime, h.Uid, h.Gid)
		}
		// An unpacker creates no parents: dpkg fails.
		if dir := h.Name[:strings.LastIndexByte(strings.TrimSuffix(h.Name, "/"), '/')+1]; dir != "" && all[dir].name == "" {
			t.Errorf("%s precedes its folder", h.Name)
		}
		last = h.Name
		all[h.Name] = entry{name: h.Name, mode: fs.FileMode(h.Mode), owner: h.Uid, content: text}
	}
}

func gunzip(t *testing.T, content []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if !r.ModTime.IsZero() || r.Name != "" {
		t.Errorf("the gzip header has the name %q and the time %s", r.Name, r.ModTime)
	}
	return text
}

// Each archive has the program, which can be executed, and the licenses.
func TestArchives(t *testing.T) {
	testlevel.OneGoroutine(t)
	r := small()
	files := filesOf(t, r)
	for _, b := range r.Binaries {
		folder := "holdfast_v1.2.3-rc.1_" + b.OS + "_" + b.Arch
		var all map[string]entry
		if b.OS == "windows" {
			z, err := zip.NewReader(bytes.NewReader(files[folder+".zip"]), int64(len(files[folder+".zip"])))
			if err != nil {
				t.Fatal(err)
			}
			all = make(map[string]entry)
			for _, f := range z.File {
				in, err := f.Open()
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(in)
				if err != nil || !f.Modified.Equal(commitTime) {
					t.Errorf("%s changed at %s: %v", f.Name, f.Modified, err)
				}
				all[f.Name] = entry{mode: f.Mode().Perm(), content: text}
			}
		} else {
			all = readTar(t, gunzip(t, files[folder+".tar.gz"]))
		}
		program := all[folder+"/holdfast"+b.exe()]
		if program.mode != 0o755 || !bytes.Equal(program.content, b.Content) || len(all) != 5 {
			t.Errorf("%s: the program has mode %o and %d bytes; %d entries", folder, program.mode, len(program.content), len(all))
		}
		if notices := string(all[folder+"/THIRD_PARTY_LICENSES"].content); !strings.Contains(notices, "the license of b") || !strings.Contains(notices, "SIL OPEN FONT LICENSE") {
			t.Errorf("%s: the licenses are %.200s", folder, notices)
		}
		if license, err := root.read("LICENSE"); err != nil || !bytes.Equal(all[folder+"/LICENSE"].content, license) {
			t.Errorf("%s: the license is %.200s: %v", folder, all[folder+"/LICENSE"].content, err)
		}
	}
}

// The Debian package has the fields and files that dpkg needs.
func TestDebianPackage(t *testing.T) {
	testlevel.OneGoroutine(t)
	for version, want := range map[string]string{"v0.1.0": "0.1.0", "v1.2.3-rc.1": "1.2.3~rc.1", "v0.0.0-20260101000000-0123456789ab": "0.0.0~20260101000000.0123456789ab"} {
		if got := debianVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
	content := filesOf(t, small())["holdfast_1.2.3~rc.1_arm64.deb"]
	if !bytes.HasPrefix(content, []byte("!<arch>\ndebian-binary   1700000000  0     0     100644  4         `\n2.0\ncontrol.tar.gz  ")) {
		t.Fatalf("the package begins with %.100q", content)
	}
	members := make(map[string][]byte)
	for rest := content[8:]; len(rest) > 0; {
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil {
			t.Fatal(err)
		}
		members[strings.TrimSpace(string(rest[:16]))] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	control, data := readTar(t, gunzip(t, members["control.tar.gz"])), readTar(t, gunzip(t, members["data.tar.gz"]))
	for _, field := range []string{"Package: holdfast\n", "Version: 1.2.3~rc.1\n", "Architecture: arm64\n", "Maintainer: ", "Description: "} {
		if !bytes.Contains(control["./control"].content, []byte(field)) {
			t.Errorf("control has no %q: %s", field, control["./control"].content)
		}
	}
	for name := range strings.Lines(string(control["./conffiles"].content)) {
		if f := data["."+strings.TrimSpace(name)]; f.name == "" || f.mode&0o007 != 0 {
			t.Errorf("%s is a configuration file with mode %o", name, f.mode)
		}
	}
	for name, mode := range map[string]fs.FileMode{"./usr/bin/holdfast": 0o755, "./usr/lib/systemd/system/holdfast.service": 0o644, "./usr/share/doc/holdfast/copyright": 0o644} {
		if data[name].mode != mode {
			t.Errorf("%s has mode %o, want %o", name, data[name].mode, mode)
		}
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		if control["./"+script].mode != 0o755 {
			t.Errorf("%s has mode %o", script, control["./"+script].mode)
		}
	}
	if sums := string(control["./md5sums"].content); !strings.Contains(sums, "  usr/bin/holdfast\n") || strings.Contains(sums, "etc/") {
		t.Errorf("md5sums has %s", sums)
	}
	path := filepath.Join(t.TempDir(), "x.deb")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Attr(testlevel.NoteAttr, "dpkg-deb is missing, so it did not read the Debian package")
		return
	}
	if out, err := exec.Command("dpkg-deb", "--contents", path).CombinedOutput(); err != nil || !strings.Contains(string(out), "./usr/bin/holdfast\n") {
		t.Errorf("dpkg-deb --contents: %v: %s", err, out)
	}
	if out, err := exec.Command("dpkg-deb", "--field", path, "Version").CombinedOutput(); err != nil || string(out) != "1.2.3~rc.1\n" {
		t.Errorf("dpkg-deb --field: %v: %s", err, out)
	}
	installDebian(t, path)
}

// installDebian unpacks a package with dpkg into an empty root. The scripts of the package do not run.
func installDebian(t *testing.T, path string) {
	t.Helper()
	if _, err := exec.LookPath("dpkg"); err != nil || os.Getuid() != 0 {
		t.Attr(testlevel.NoteAttr, "the test does not run as root, or dpkg is missing, so the Debian package was not installed")
		return
	}
	dir := t.TempDir()
	for _, name := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(dir, "var/lib/dpkg", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("dpkg", "--root="+dir, "--log=/dev/null", "--force-all", "--unpack", path).CombinedOutput(); err != nil {
		t.Fatalf("dpkg --unpack: %v: %s", err, out)
	}
	if info, err := os.Stat(filepath.Join(dir, "usr/bin/holdfast")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the installed program: %v, %v", info, err)
	}
	if out, err := exec.Command("dpkg", "--root="+dir, "--verify", "holdfast").CombinedOutput(); err != nil || strings.Contains(string(out), "/usr/") {
		t.Errorf("dpkg --verify: %v: %s", err, out)
	}
}

// blob returns a blob of an image, whose digest and size are verified.
func blob(t *testing.T, files map[string]entry, d descriptor, mediaType string) []byte {
	t.Helper()
	sum, ok := strings.CutPrefix(d.Digest, "sha256:")
	content := files["blobs/sha256/"+sum].content
	if !ok || d.MediaType != mediaType || len(content) != d.Size || checksum(content) != sum {
		t.Fatalf("%+v describes a blob of %d bytes with the checksum %s; want the type %s", d, len(content), checksum(content), mediaType)
	}
	return content
}

func decode[T any](t *testing.T, content []byte) (v T) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// layerOf returns the files of the layer and the configuration of the image for an architecture. It verifies everything on the
// way.
func layerOf(t *testing.T, image []byte, arch, version string) (map[string]entry, containerConfig) {
	t.Helper()
	files := readTar(t, image)
	if text := string(files["oci-layout"].content); text != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", text)
	}
	top := decode[index](t, files["index.json"].content)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version || top.Manifests[0].Annotations["io.containerd.image.name"] != "localhost/holdfast:"+version {
		t.Fatalf("index.json has %+v", top.Manifests)
	}
	for _, d := range decode[index](t, blob(t, files, top.Manifests[0], typeIndex)).Manifests {
		if *d.Platform != (platform{arch, "linux"}) {
			continue
		}
		m := decode[manifest](t, blob(t, files, d, typeManifest))
		c := decode[imageConfig](t, blob(t, files, m.Config, typeConfig))
		if len(m.Layers) != 1 || c.platform != *d.Platform || c.RootFS.Type != "layers" {
			t.Fatalf("%d layers, configured for %v", len(m.Layers), c.platform)
		}
		layer := gunzip(t, blob(t, files, m.Layers[0], typeLayer))
		if want := []string{"sha256:" + checksum(layer)}; !slices.Equal(c.RootFS.DiffIDs, want) {
			t.Errorf("the layers are %v, want %v", c.RootFS.DiffIDs, want)
		}
		return readTar(t, layer), c.Config
	}
	t.Fatalf("no image for %s", arch)
	return nil, containerConfig{}
}

// The image is valid, for both architectures: each blob has its digest and its size, the program can be executed, and the
// user of the image can write to the volume.
func TestImage(t *testing.T) {
	testlevel.OneGoroutine(t)
	r := small()
	image := filesOf(t, r)["holdfast_v1.2.3-rc.1_oci.tar"]
	for _, b := range r.Binaries[:2] {
		files, c := layerOf(t, image, b.Arch, r.Version)
		if program := files[strings.TrimPrefix(c.Entrypoint[0], "/")]; program.mode != 0o755 || !bytes.Equal(program.content, b.Content) {
			t.Errorf("%s: the program has mode %o and %d bytes", b.Arch, program.mode, len(program.content))
		}
		if data := files["data/"]; data.owner != imageUser || data.mode != 0o700 || c.User != "65532:65532" {
			t.Errorf("/data belongs to %d with mode %o, the user is %s", data.owner, data.mode, c.User)
		}
		if tmp := files["tmp/"]; tmp.mode != 0o1777 {
			t.Errorf("/tmp has mode %o", tmp.mode)
		}
	}
}

// The Dockerfile makes an image that runs in the same way.
func TestTheDockerfileIsTheSameImage(t *testing.T) {
	testlevel.OneGoroutine(t)
	text, err := root.read("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("FROM scratch\n"))
	c := small().container()
	list := func(all []string) string {
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for instruction, want := range map[string]string{
		"ENV": strings.Join(c.Env, " "), "USER": c.User, "WORKDIR": c.WorkingDir, "VOLUME": "/data", "EXPOSE": "7070", "STOPSIGNAL": c.StopSignal,
		"ENTRYPOINT": list(c.Entrypoint), "CMD": list(c.Cmd),
	} {
		m := regexp.MustCompile(`(?m)^`+instruction+` (.*)$`).FindAllSubmatch(text, -1)
		if len(m) != 1 || string(m[0][1]) != want {
			t.Errorf("the Dockerfile has %s %q, the image %s", instruction, m, want)
		}
	}
	if _, ok := c.Volumes["/data"]; !ok || len(c.Volumes) != 1 || len(c.ExposedPorts) != 1 {
		t.Errorf("the image has the volumes %v and the ports %v", c.Volumes, c.ExposedPorts)
	}
}

// The bill of materials names each program and each of its modules once, and every relation is between two of them.
func TestBillOfMaterials(t *testing.T) {
	testlevel.OneGoroutine(t)
	r := small()
	d := decode[spdxDocument](t, filesOf(t, r)["holdfast_v1.2.3-rc.1.spdx.json"])
	ids := map[string]bool{d.ID: true}
	for _, p := range d.Packages {
		if ids[p.ID] || !regexp.MustCompile(`^SPDXRef-[a-zA-Z0-9.-]+$`).MatchString(p.ID) {
			t.Errorf("the package %s has the id %s", p.Name, p.ID)
		}
		ids[p.ID] = true
	}
	parts := 3 + len(dashboard) // of each program
	if want := len(r.Binaries) + parts; len(d.Packages) != want || len(d.Relationships) != len(r.Binaries)*(parts+1) {
		t.Errorf("%d packages and %d relations, want %d and %d", len(d.Packages), len(d.Relationships), want, len(r.Binaries)*(parts+1))
	}
	for _, x := range d.Relationships {
		if !ids[x.Element] || !ids[x.Related] {
			t.Errorf("%+v is about something that is not listed", x)
		}
	}
	if got := d.Packages[0].Checksums[0].Value; got != checksum(r.Binaries[0].Content) {
		t.Errorf("the first program has the checksum %s", got)
	}
	m := d.Packages[slices.IndexFunc(d.Packages, func(p spdxPackage) bool { return p.Name == "example.org/Up/b" })]
	if m.References[0].Locator != "pkg:golang/example.org/Up/b@v1.0.0%2Bincompatible" || !strings.HasSuffix(m.DownloadLocation, "/example.org/!up/b/@v/v1.0.0+incompatible.zip") {
		t.Errorf("the first module is %+v", m)
	}
}

// The bill of materials names what the dashboard contains, in the versions that are in the repository.
func TestBillOfMaterialsOfTheDashboard(t *testing.T) {
	testlevel.OneGoroutine(t)
	text, err := root.read("web/vendor/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `[a-z-]+` \\| `([^`]+)` \\| ([0-9.]+) \\|").FindAllSubmatch(text, -1) {
		want = append(want, string(m[1])+" "+string(m[2]))
	}
	var got []string
	for _, l := range dashboard {
		got = append(got, l.name+" "+l.version)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if sbom := filesOf(t, small())["holdfast_v1.2.3-rc.1.spdx.json"]; !bytes.Contains(sbom, []byte(`"OFL-1.1"`)) || !bytes.Contains(sbom, []byte(`"pkg:npm/%40fontsource-variable/geist@5.3.0"`)) {
		t.Errorf("the font is missing: %s", sbom)
	}
}

// Only a folder of an earlier release is replaced, and never one that contains the repository.
func TestWhatIsReplaced(t *testing.T) {
	testlevel.OneGoroutine(t)
	dir := t.TempDir()
	repository := filepath.Join(dir, "work", "repository")
	for _, name := range []string{"work/repository/", "empty/", "full/x", "release/x", "release/SHA256SUMS", "file"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(repository, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, allowed := range map[string]bool{
		"new": true, "empty": true, "release": true, "work/repository/dist": true, "full": false, "file": false, "work": false, "work/repository": false, "link": false, ".": false,
	} {
		if _, err := replaceable(filepath.Join(dir, name), repository); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
	out := filepath.Join(dir, "release")
	if err := small().write(out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(out, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of the earlier release is still there: %v", err)
	}
	if all, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(all) != 0 {
		t.Errorf("left %q: %v", all, err)
	}
}

// The environment of a user does not change how the program is built.
func TestTheEnvironmentOfABuild(t *testing.T) {
	t.Setenv("GOFIPS140", "latest")
	t.Setenv("CGO_CFLAGS", "-O9")
	env, err := environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"GOFIPS140=off", "GOFLAGS=", "CGO_ENABLED=0"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
	if slices.Contains(env, "GOFIPS140=latest") || slices.Contains(env, "CGO_CFLAGS=-O9") {
		t.Errorf("got %q", env)
	}
}

func TestTargets(t *testing.T) {
	testlevel.OneGoroutine(t)
	if got, err := parseTargets("linux/arm64,windows/amd64"); err != nil || !slices.Equal(got, []Target{{"linux", "arm64"}, {"windows", "amd64"}}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseTargets("linux/386"); err == nil || !strings.Contains(err.Error(), "linux/arm64") {
		t.Errorf("got %v", err)
	}
	for version, valid := range map[string]bool{"v0.1.0": true, "v1.0.0-rc.1": true, "0.1.0": false, "v1": false, "v01.0.0": false, "v1.0.0+x": false, "v1.0.0 ": false} {
		if semver.MatchString(version) != valid {
			t.Errorf("%q is valid: %v", version, !valid)
		}
	}
}
