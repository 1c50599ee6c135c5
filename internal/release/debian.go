package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// debian returns the Debian package of a platform.
func (r *Release) debian(b Binary) (name string, content []byte, err error) {
	files, err := r.debianFiles(b)
	if err != nil {
		return "", nil, err
	}
	size := 0
	for _, f := range files {
		size += len(f.content)
	}
	control := []entry{{name: "./control", mode: 0o644, content: []byte(r.debianControl(b, size))}}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		text, err := r.Root.read("deploy/debian/" + script)
		if err != nil {
			return "", nil, err
		}
		control = append(control, entry{name: "./" + script, mode: 0o755, content: text})
	}
	control = append(control, entry{name: "./conffiles", mode: 0o644, content: []byte("/etc/holdfast/environment\n/etc/holdfast/holdfast.yaml\n")},
		entry{name: "./md5sums", mode: 0o644, content: md5sums(files)})
	controlTar, err := targz(control, r.Time)
	if err != nil {
		return "", nil, err
	}
	dataTar, err := targz(files, r.Time)
	if err != nil {
		return "", nil, err
	}
	content = ar(r.Time, file{"debian-binary", []byte("2.0\n")}, file{"control.tar.gz", controlTar}, file{"data.tar.gz", dataTar})
	return fmt.Sprintf("holdfast_%s_%s.deb", debianVersion(r.Version), b.Arch), content, nil
}

// debianVersion returns a version as Debian orders it: a tilde sorts before the release.
func debianVersion(version string) string {
	return strings.ReplaceAll(strings.Replace(strings.TrimPrefix(version, "v"), "-", "~", 1), "-", ".")
}

func (r *Release) debianControl(b Binary, size int) string {
	const kib = 1024
	return fmt.Sprintf(`Package: holdfast
Version: %s
Architecture: %s
Maintainer: The Holdfast authors
Installed-Size: %d
Depends: passwd
Recommends: ca-certificates
Section: database
Priority: optional
Homepage: %s
Description: durable workflow and state engine
 A server that makes actions that must not happen twice safe under
 double-clicks, redelivery and crashes, on SQLite or PostgreSQL.
`, debianVersion(r.Version), b.Arch, (size+kib-1)/kib, source)
}

// debianFiles returns the files that the package installs.
func (r *Release) debianFiles(b Binary) ([]entry, error) {
	notices, err := r.notices(b)
	if err != nil {
		return nil, err
	}
	files := []entry{
		{name: "./usr/bin/holdfast", mode: 0o755, content: b.Content},
		{name: "./usr/share/doc/holdfast/THIRD_PARTY_LICENSES", mode: 0o644, content: notices},
	}
	for _, f := range []struct {
		name, from string
		mode       fs.FileMode
	}{
		{"./etc/holdfast/holdfast.yaml", "deploy/debian/holdfast.yaml", 0o640},
		{"./etc/holdfast/environment", "deploy/debian/environment", 0o600},
		{"./usr/lib/systemd/system/holdfast.service", "deploy/systemd/holdfast.service", 0o644},
		{"./usr/share/doc/holdfast/copyright", "LICENSE", 0o644},
	} {
		text, err := r.Root.read(f.from)
		if err != nil {
			return nil, err
		}
		files = append(files, entry{name: f.name, mode: f.mode, content: text})
	}
	return files, nil
}

// md5sums returns the checksums that dpkg verifies installed files with. Configuration files are not among them: users change them.
func md5sums(files []entry) []byte {
	var b bytes.Buffer
	for _, f := range sorted(files) {
		if !strings.HasSuffix(f.name, "/") && !strings.HasPrefix(f.name, "./etc/") {
			fmt.Fprintf(&b, "%x  %s\n", md5.Sum(f.content), strings.TrimPrefix(f.name, "./"))
		}
	}
	return b.Bytes()
}

// ar returns an archive in the format of Unix ar, which a Debian package is.
func ar(at time.Time, files ...file) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, f := range files {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", f.name, at.Unix(), 0, 0, "100644", len(f.content))
		b.Write(f.content)
		if len(f.content)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
