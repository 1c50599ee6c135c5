package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// These are SQLite's primary result codes, and the one extended code that matters.
const (
	codePerm         = 3
	codeBusy         = 5
	codeLocked       = 6
	codeReadOnly     = 8
	codeInterrupt    = 9
	codeIO           = 10
	codeCorrupt      = 11
	codeFull         = 13
	codeCantOpen     = 14
	codeProtocol     = 15
	codeAuth         = 23
	codeNotADB       = 26
	codeBusySnapshot = codeBusy | 2<<8
	codeGeneric      = 1
)

// coded is an error of a SQLite driver.
type coded interface{ Code() int }

// mapError maps a driver's error to a fault, by its code. Only this file and [table.fault] know
// the codes. Outside COMMIT an error means that the statement did nothing, so temporary errors are
// marked as retryable.
func mapError(err error, name string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) {
		return fault.New(fault.Unavailable, "the transaction has ended: use it only inside the function that received it").Wrap(errors.Join(store.ErrTxDone, err))
	}
	var c coded
	if !errors.As(err, &c) {
		return mapOther(err, name)
	}
	return mapCode(c.Code(), name, err)
}

func mapOther(err error, name string) error {
	var known *fault.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.New(fault.Internal, "%s: the database driver returned an unexpected error: see the log for the cause", name).Wrap(err)
}

func mapCode(code int, name string, err error) error {
	switch code & 0xff {
	case codeBusy, codeLocked, codeProtocol:
		return fault.New(fault.Unavailable, "%s is busy, because another connection or process holds its lock: try again", name).AsRetryable().Wrap(err)
	case codeInterrupt:
		return errors.Join(context.Canceled, err)
	case codeReadOnly, codePerm, codeAuth:
		return fault.New(fault.DatabaseReadOnly, "%s is read-only: give this process write access to the file and its folder. Nothing was changed", name).Wrap(err)
	case codeFull:
		return fault.New(fault.StorageFull, "no space is left for %s: free some space and retry the call. Acknowledged writes are intact", name).Wrap(err)
	case codeCorrupt:
		return fault.New(fault.DatabaseDamaged, "%s is damaged: restore it from a backup. Nothing was changed", name).Wrap(err)
	case codeNotADB:
		return fault.New(fault.DatabaseForeign, "%s is not a SQLite database, or its header is destroyed: choose another file, or restore this one from a backup. Nothing was changed", name).Wrap(err)
	case codeCantOpen:
		return fault.New(fault.Unavailable, "%s cannot be opened, because the file or one of its companion files (-wal, -shm) cannot be created or read: check the permissions of its folder", name).Wrap(err)
	case codeIO:
		return fault.New(fault.Unavailable, "%s: disk I/O error: check the disk", name).Wrap(err)
	default:
		return fault.New(fault.Internal, "%s: a statement failed (SQLite code %d)", name, code).Wrap(err)
	}
}

// commitFault maps an error of COMMIT. The driver has ended the transaction by then, so a lock or a
// full disk means that it was rolled back. After an I/O error the commit may still be in the log,
// and be found there after a restart.
func commitFault(err error, name string) error {
	var c coded
	if errors.As(err, &c) && c.Code()&0xff == codeIO {
		return fault.New(fault.OutcomeUnknown, "%s: the disk failed while committing, so the write may or may not have been applied: read the state before you retry", name).Wrap(err)
	}
	return mapError(err, name)
}

// joinFault explains why a user's transaction cannot take the write lock, or does not have our
// tables.
func joinFault(err error) error {
	var c coded
	switch {
	case errors.As(err, &c) && c.Code() == codeBusySnapshot:
		return fault.New(fault.Validation,
			"the transaction has read data that has since changed, so it cannot take SQLite's write lock: begin it with BEGIN IMMEDIATE (_txlock=immediate), or join it before it reads").Wrap(err)
	case errors.As(err, &c) && c.Code() == codeGeneric:
		return fault.New(fault.Validation, "the transaction does not see Holdfast's tables, so it is not on the engine's database: begin the transaction on that database").Wrap(err)
	}
	return mapError(err, "the joined transaction's database")
}
