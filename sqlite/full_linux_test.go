package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

func init() { jobs["full"] = jobFull }

// TestAFullDiskRefusesWritesAndLosesNothing verifies that on a full disk a write is refused as
// such, that every append acknowledged before exists and no refused one does, and that writes
// continue in the same engine as soon as there is space.
//
// The disk is a small tmpfs that only the helper process sees. If that is not permitted, the
// database is kept from growing instead.
func TestAFullDiskRefusesWritesAndLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := launch(t, "full", dir, "", ownMounts)
	if err != nil {
		t.Logf("cannot mount a file system (%v): limiting the size of the database instead", err)
		limitedDatabase(t)
		return
	}
	c.Expect("ready")
	c.Send("go")
	switch verdict := c.Next(); {
	case verdict == "no mount":
		t.Logf("cannot mount (%s): limiting the size of the database instead", c.Wait())
		limitedDatabase(t)
	default:
		t.Log(verdict)
		c.Wait()
	}
}

// ownMounts gives the helper process its own mounts, through a user namespace if this process is
// not root.
func ownMounts(cmd *exec.Cmd) {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	cmd.SysProcAttr = attr
}

func jobFull(ctx context.Context, dir, _ string, begin func() error) error {
	if err := begin(); err != nil {
		return err
	}
	if err := mountSmall(dir); err != nil {
		fmt.Println("no mount")
		fmt.Println(err)
		return nil
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		return err
	}
	path := filepath.Join(dir, "app.db")
	hf, err := holdfast.Open(ctx, sqlite.File(path), quiet)
	if err != nil {
		return err
	}
	summary, err := fillUp(ctx, hf, func() error { return os.Remove(ballast) })
	if err != nil {
		return err
	}
	if err := errors.Join(hf.Close(), quickCheck(ctx, path)); err != nil {
		return err
	}
	fmt.Println(summary)
	return nil
}

func mountSmall(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m")
}

// fillUp appends until the disk is full, checks the stored events, frees space, and continues.
func fillUp(ctx context.Context, hf *holdfast.Engine, makeRoom func() error) (string, error) {
	var acked []string
	full := 0
	try := func(size int) error {
		name := fmt.Sprintf("e%d-%d", len(acked), full)
		v, err := stream.Append(ctx, hf, "s", stream.Any, event(name, strings.Repeat("x", size)))
		if err == nil && int(v) != len(acked) {
			return fmt.Errorf("append %d got version %d", len(acked), v)
		}
		if err == nil {
			acked = append(acked, name)
		}
		return err
	}
	for full < 5 { // after the first refusal some smaller ones may still fit
		err := try(6000 >> full)
		switch {
		case err == nil:
		case fault.CodeOf(err) == fault.StorageFull:
			full++
		default:
			return "", fmt.Errorf("write on a full disk, after %d appends: %w (%w)", len(acked), err, errors.Unwrap(err))
		}
	}
	if err := refusedUpdate(ctx, hf); err != nil {
		return "", err
	}
	before := len(acked)
	if err := wantEvents(ctx, hf, acked); err != nil {
		return "", fmt.Errorf("while the disk is full: %w", err)
	}
	if err := makeRoom(); err != nil {
		return "", err
	}
	for range 20 {
		if err := try(6000); err != nil {
			return "", fmt.Errorf("after space was freed: %w", err)
		}
	}
	return fmt.Sprintf("%d appends until the disk was full, 20 after space was freed", before), wantEvents(ctx, hf, acked)
}

// refusedUpdate verifies that an update that does not fit leaves none of its parts, even if its
// function ignores the error.
func refusedUpdate(ctx context.Context, hf *holdfast.Engine) error {
	err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := entities.Create(ctx, store.DoerOf(tx), entities.CreateArgs{Lifecycle: "thing", ID: "half", Status: "new"}); err != nil {
			return nil
		}
		_, err := stream.Append(ctx, tx, "half", stream.Any, slices.Repeat([]stream.Event{event("large", strings.Repeat("x", 6000))}, 600)...)
		if err == nil {
			return errors.New("wrote three megabytes to a full disk without an error")
		}
		return nil
	})
	if fault.CodeOf(err) != fault.StorageFull {
		return fmt.Errorf("update on a full disk: %w", err)
	}
	if e, err := entities.Get(ctx, engine.Of(hf), "thing", "half"); !errors.Is(err, holdfast.ErrNotFound) {
		return fmt.Errorf("a part of a failed update is stored: %v, %w", e, err)
	}
	return nil
}

func wantEvents(ctx context.Context, hf *holdfast.Engine, acked []string) error {
	names, err := gapless(ctx, hf, "s")
	if err == nil && !slices.Equal(names, acked) {
		err = fmt.Errorf("%d events are stored, but %d were acknowledged", len(names), len(acked))
	}
	return err
}

func quickCheck(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		return fmt.Errorf("integrity_check returned %q: %w", verdict, err)
	}
	return nil
}

// limitedDatabase does the same with a database with a limited number of pages.
func limitedDatabase(t *testing.T) {
	path := dbPath(t)
	db := openSQL(t, path, "_pragma=journal_mode(WAL)")
	db.SetMaxOpenConns(1)
	hf, err := holdfast.Open(t.Context(), sqlite.DB(db), quiet)
	if err != nil {
		t.Fatal(err)
	}
	execSQL(t, db, `PRAGMA max_page_count = 400`)
	summary, err := fillUp(t.Context(), hf, func() error {
		_, err := db.Exec(`PRAGMA max_page_count = 4000`)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	t.Log(summary)
	if err := errors.Join(hf.Close(), quickCheck(t.Context(), path)); err != nil {
		t.Error(err)
	}
}

// TestADatabaseThatMayNotGrowRefusesWritesAndLosesNothing verifies the same if SQLite itself
// refuses to let the file grow, through a pool of the program.
func TestADatabaseThatMayNotGrowRefusesWritesAndLosesNothing(t *testing.T) {
	t.Parallel()
	limitedDatabase(t)
}
