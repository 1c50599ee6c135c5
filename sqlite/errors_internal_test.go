package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// driverError is an error as SQLite's drivers return it.
type driverError int

func (e driverError) Error() string { return fmt.Sprintf("driver error %d", int(e)) }
func (e driverError) Code() int     { return int(e) }

// TestEveryCodeOfSQLiteHasItsMeaning verifies the meaning of each result code of SQLite, the same
// for its extended forms and for a wrapped error; that only temporary errors are retryable; and
// that the driver's error is wrapped.
func TestEveryCodeOfSQLiteHasItsMeaning(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]struct {
		code fault.Code
		safe bool
	}{
		1:  {fault.Internal, false},         // ERROR
		2:  {fault.Internal, false},         // INTERNAL
		3:  {fault.DatabaseReadOnly, false}, // PERM
		4:  {fault.Internal, false},         // ABORT
		5:  {fault.Unavailable, true},       // BUSY
		6:  {fault.Unavailable, true},       // LOCKED
		7:  {fault.Internal, false},         // NOMEM
		8:  {fault.DatabaseReadOnly, false}, // READONLY
		10: {fault.Unavailable, false},      // IOERR
		11: {fault.DatabaseDamaged, false},  // CORRUPT
		12: {fault.Internal, false},         // NOTFOUND
		13: {fault.StorageFull, false},      // FULL
		14: {fault.Unavailable, false},      // CANTOPEN
		15: {fault.Unavailable, true},       // PROTOCOL
		17: {fault.Internal, false},         // SCHEMA
		18: {fault.Internal, false},         // TOOBIG
		19: {fault.Internal, false},         // CONSTRAINT
		20: {fault.Internal, false},         // MISMATCH
		21: {fault.Internal, false},         // MISUSE
		23: {fault.DatabaseReadOnly, false}, // AUTH
		25: {fault.Internal, false},         // RANGE
		26: {fault.DatabaseForeign, false},  // NOTADB
	} {
		for _, extended := range []int{0, 1, 2, 7} {
			driver := driverError(code | extended<<8)
			err := mapError(fmt.Errorf("scan: %w", driver), "app.db")
			if fault.CodeOf(err) != want.code || fault.IsRetryable(err) != want.safe {
				t.Errorf("code %d: got %s (safe: %v), want %s (safe: %v)", driver, fault.CodeOf(err), fault.IsRetryable(err), want.code, want.safe)
			}
			if !errors.Is(err, driver) {
				t.Errorf("code %d: the driver's error is not wrapped: %v", driver, err)
			}
		}
	}
}

// TestErrorsWithoutACodeKeepTheirMeaning verifies that an interrupt is the end of the context, and
// that errors without a code of SQLite are unchanged.
func TestErrorsWithoutACodeKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	if err := mapError(nil, "app.db"); err != nil {
		t.Errorf("nil is mapped to %v", err)
	}
	for _, c := range []struct{ given, is error }{
		{driverError(codeInterrupt), context.Canceled},
		{context.DeadlineExceeded, context.DeadlineExceeded},
		{fmt.Errorf("wait: %w", context.Canceled), context.Canceled},
		{sql.ErrTxDone, store.ErrTxDone},
		{sql.ErrTxDone, fault.Of(fault.Unavailable)},
		{sql.ErrConnDone, store.ErrTxDone},
		{fault.New(fault.NotFound, "none"), fault.Of(fault.NotFound)},
		{errors.New("strange"), fault.Of(fault.Internal)},
	} {
		if err := mapError(c.given, "app.db"); !errors.Is(err, c.is) || fault.IsRetryable(err) {
			t.Errorf("%v: got %v (safe: %v), want %v", c.given, err, fault.IsRetryable(err), c.is)
		}
	}
}

// TestACommitIsUnknownOnlyWhenTheDiskFails verifies that an error of COMMIT has an unknown outcome
// only if the disk failed.
func TestACommitIsUnknownOnlyWhenTheDiskFails(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]fault.Code{
		codeIO: fault.OutcomeUnknown, codeIO | 4<<8: fault.OutcomeUnknown,
		codeBusy: fault.Unavailable, codeFull: fault.StorageFull, 19: fault.Internal,
	} {
		if got := fault.CodeOf(commitFault(driverError(code), "app.db")); got != want {
			t.Errorf("code %d at COMMIT: got %s, want %s", code, got, want)
		}
	}
	if fault.IsRetryable(commitFault(driverError(codeIO), "app.db")) {
		t.Error("an unknown outcome is marked as safe to repeat")
	}
}

// TestOlderComparesVersionsByNumber verifies that versions of the library are compared by number,
// part by part.
func TestOlderComparesVersionsByNumber(t *testing.T) {
	t.Parallel()
	than := [3]int{3, 51, 3}
	for version, want := range map[string]bool{
		"3.51.3": false, "3.51.4": false, "3.51.10": false, "3.52.0": false, "4.0.0": false, "3.100.0": false,
		"3.51.2": true, "3.51.0": true, "3.51": true, "3.9.9": true, "3.50.99": true, "2.99.99": true, "": true, "x": true,
	} {
		if got := older(version, than); got != want {
			t.Errorf("%q is older than 3.51.3: got %v, want %v", version, got, want)
		}
	}
}

// TestTheDriverOfThisBuildIsNewEnough verifies that the library of this build is new enough.
func TestTheDriverOfThisBuildIsNewEnough(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &adapter{read: db, name: "memory"}
	if err := s.checkLibrary(t.Context()); err != nil {
		t.Error(err)
	}
	t.Log(s.Version())
}
