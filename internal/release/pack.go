package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// fileTree is the folder of the project's files.
type fileTree string

func (t fileTree) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(t), filepath.FromSlash(name)))
}

// entry is a file or a folder in an archive.
type entry struct {
	name    string // a folder ends with a slash
	mode    fs.FileMode
	owner   int // the user and the group
	content []byte
}

// tarball returns an uncompressed archive of entries in order of their names. It depends on nothing else.
func tarball(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range sorted(entries) {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode), Uid: e.owner, Gid: e.owner, ModTime: at, Size: int64(len(e.content)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// compress compresses with gzip, without a name and a time.
func compress(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// targz returns a compressed archive.
func targz(entries []entry, at time.Time) ([]byte, error) {
	content, err := tarball(entries, at)
	if err != nil {
		return nil, err
	}
	return compress(content)
}

// zipped returns an archive for Windows.
func zipped(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range sorted(entries) {
		h := &zip.FileHeader{Name: e.name, Modified: at, Method: zip.Deflate}
		h.SetMode(e.mode)
		if strings.HasSuffix(e.name, "/") {
			h.SetMode(e.mode | fs.ModeDir)
			h.Method = zip.Store
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// sorted returns the entries in order of their names, with the folders that contain them, which belong to root unless
// an entry says otherwise.
func sorted(entries []entry) []entry {
	all := make(map[string]entry)
	for _, e := range entries {
		all[e.name] = e
		for dir := parent(e.name); dir != ""; dir = parent(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = entry{name: dir, mode: 0o755}
			}
		}
	}
	var list []entry
	for _, e := range all {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return list
}

// parent returns the folder of an entry, as it is written in the name: that of ./a is ./, so that it precedes its entries. It is
// "" for an entry at the top.
func parent(name string) string {
	return name[:strings.LastIndexByte(strings.TrimSuffix(name, "/"), '/')+1]
}

// archive returns the archive of a platform: the program, the licenses and the introduction.
func (r *Release) archive(b Binary) (name string, content []byte, err error) {
	license, err := r.Root.read("LICENSE")
	if err != nil {
		return "", nil, err
	}
	readme, err := r.Root.read("README.md")
	if err != nil {
		return "", nil, err
	}
	notices, err := r.notices(b)
	if err != nil {
		return "", nil, err
	}
	folder := "holdfast_" + r.Version + "_" + b.OS + "_" + b.Arch
	entries := []entry{
		{name: folder + "/holdfast" + b.exe(), mode: 0o755, content: b.Content},
		{name: folder + "/LICENSE", mode: 0o644, content: license},
		{name: folder + "/README.md", mode: 0o644, content: readme},
		{name: folder + "/THIRD_PARTY_LICENSES", mode: 0o644, content: notices},
	}
	if b.OS == "windows" {
		content, err = zipped(entries, r.Time)
		return folder + ".zip", content, err
	}
	content, err = targz(entries, r.Time)
	return folder + ".tar.gz", content, err
}

// notices returns the licenses of what is in a program: those of its modules, and those of the dashboard.
func (r *Release) notices(b Binary) ([]byte, error) {
	dashboard, err := r.Root.read("web/dist/licenses.txt")
	line := strings.Repeat("=", 80)
	return slices.Concat(b.Licenses, []byte("\n"+line+"\nThe dashboard\n"+line+"\n"), dashboard), err
}
