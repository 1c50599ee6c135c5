// Package files replaces files atomically, under locks that the operating system releases when a process dies:
// a kill at any moment leaves either the old file or the new one.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/holdfast-go/holdfast/fault"
)

// Lock creates a lock file and waits for its lock. It excludes other processes and other goroutines alike.
func Lock(name string) (unlock func(), err error) {
	unlock, err = lockedfile.MutexAt(name).Lock()
	if err != nil {
		return nil, broken(err)
	}
	return unlock, nil
}

// Read returns the content of a file, and whether the file exists. It needs no lock.
func Read(name string) (doc []byte, there bool, err error) {
	doc, err = os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, broken(err)
	}
	return doc, true, nil
}

// Replace writes a temporary file beside the old one, syncs it, and renames it over the old one. It creates the
// folder. The caller must hold a lock: the temporary file has a fixed name, so a crash leaves at most one. If
// the error is [fault.OutcomeUnknown], the file is replaced but may be the old one again after a crash of the
// machine.
func Replace(name string, doc []byte) error {
	if err := MakeDir(filepath.Dir(name)); err != nil {
		return err
	}
	temp := name + ".new"
	if err := write(temp, doc); err != nil {
		return broken(err)
	}
	if err := os.Rename(temp, name); err != nil {
		return broken(err)
	}
	return flush(filepath.Dir(name))
}

// MakeDir creates a folder and its parents, accessible only to the owner, and makes their names durable.
func MakeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := MakeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return broken(err)
	}
	return flush(filepath.Dir(dir))
}

func write(name string, doc []byte) (err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(doc); err != nil {
		return err
	}
	return f.Sync()
}

// Remove deletes a file. A missing file is not an error.
func Remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return broken(err)
	}
	return flush(filepath.Dir(name))
}

// flush makes the names in a folder durable.
func flush(dir string) error {
	if runtime.GOOS == "windows" { // Windows cannot sync a folder
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return unsure(err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return unsure(err)
	}
	return nil
}

func unsure(err error) error {
	return fault.New(fault.OutcomeUnknown, "the file change may not survive a machine crash: try again").Wrap(err)
}

func broken(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fault.New(fault.StorageFull, "no disk space is left for the file: free some space and try again").Wrap(err)
	}
	return fault.New(fault.Unavailable, "the file cannot be read or written: %v", err).Wrap(err)
}
