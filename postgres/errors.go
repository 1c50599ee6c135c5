package postgres

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// mapError maps an error of pgx or of the server to a fault, by its SQLSTATE. Apart from a few codes that mean
// something else in one place, only this file knows the codes. It is for a statement that is known not to be
// committed; see [lost] for one that may be.
func mapError(err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, pgx.ErrTxClosed) {
		return fault.New(fault.Unavailable, "the transaction has ended: use it only inside the function that received it").Wrap(errors.Join(store.ErrTxDone, err))
	}
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	if errors.As(err, &pg) && errors.As(err, &connect) {
		return mapConnect(pg, err)
	}
	if pg != nil {
		return mapState(pg, err)
	}
	if errors.Is(err, errSilent) {
		return fault.New(fault.Unavailable, "the database did not respond in time, and the connection was dropped").AsRetryable().Wrap(err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if isNetwork(err) {
		return fault.New(fault.Unavailable, "the database cannot be reached, or the connection to it was lost").AsRetryable().Wrap(err)
	}
	return fault.New(fault.Internal, "the database driver returned an unexpected error: see the log for the cause").Wrap(err)
}

// isNetwork reports whether err is a failed connection and not a defect of ours: pgx wraps such
// errors in its own types, or they are the network's.
func isNetwork(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.Timeout(err) ||
		errors.Is(err, net.ErrClosed) || isEOF(err) || errors.Is(err, pgconn.ErrConnClosed)
}

// mapConnect maps the error with which a server, or a pooler before it, refuses a connection. PgBouncer has one SQLSTATE for
// all its refusals, also for a server that is down; only the message tells them apart.
func mapConnect(pg *pgconn.PgError, err error) error {
	switch {
	case pg.Code == "08P01" && strings.Contains(pg.Message, "startup parameter"):
		return fault.New(fault.Validation, "the connection was refused (%s): behind PgBouncer in transaction mode, use postgres.Pooled(), or add default_query_exec_mode=cache_describe to the URL", pg.Message).Wrap(err)
	case pg.Code == "08P01" && strings.Contains(pg.Message, "authentication failed"):
		return refusedLogin(err)
	case pg.Code == "42704", pg.Code == "22023":
		return fault.New(fault.Validation, "the server refused a parameter of the URL (%s): correct or remove it", pg.Message).Wrap(err)
	}
	return mapState(pg, err)
}

func refusedLogin(err error) error {
	return fault.New(fault.DatabaseDenied, "the database refused the login: check the user and the password in the URL").Wrap(err)
}

func mapState(pg *pgconn.PgError, err error) error {
	switch pg.Code {
	case "40001", "40P01", "55P03", "57014":
		return fault.New(fault.Unavailable, "the database aborted the statement because of a conflict, a timeout or a cancel request: try again").AsRetryable().Wrap(err)
	case "53300", "57P01", "57P02", "57P03", "57P05", "25P03":
		return fault.New(fault.Unavailable, "the database refused or ended the connection (%s): try again", pg.Message).AsRetryable().Wrap(err)
	case "53100":
		return fault.New(fault.StorageFull, "the database server has no space left: free some space and retry the call. Acknowledged writes are intact").Wrap(err)
	case "25006":
		return fault.New(fault.DatabaseReadOnly, "the database is read-only: connect to the primary, or turn off default_transaction_read_only. Nothing was changed").Wrap(err)
	case "25P02":
		return fault.New(fault.Unavailable, "an earlier statement of this transaction failed: roll the transaction back").Wrap(err)
	case "42501":
		return fault.New(fault.DatabaseDenied, "the role lacks a privilege (%s): grant it with \"holdfast migrate --runtime-role\"", pg.Message).Wrap(err)
	case "3D000":
		return fault.New(fault.NotFound, "%s: create the database first", pg.Message).Wrap(err)
	case "42P01", "42703", "3F000", "42704", "42883", "XX001", "XX002":
		return fault.New(fault.DatabaseDamaged, "the schema is damaged (%s): restore it from a backup. Nothing was changed", pg.Message).Wrap(err)
	case "22021":
		return fault.New(fault.Validation, "a string contains NUL or invalid UTF-8: remove it").Wrap(err)
	case "22003":
		return fault.New(fault.Validation, "a number is out of range (%s): use a smaller number", pg.Message).Wrap(err)
	case "26000", "42P05":
		return fault.New(fault.Unavailable, "a prepared statement is missing or already exists: behind PgBouncer in transaction mode, add default_query_exec_mode=cache_describe to the URL").Wrap(err)
	}
	return mapClass(pg, err)
}

func mapClass(pg *pgconn.PgError, err error) error {
	switch pg.Code[:min(2, len(pg.Code))] {
	case "08":
		return fault.New(fault.Unavailable, "the connection to the database failed (%s): try again", pg.Message).AsRetryable().Wrap(err)
	case "28":
		return refusedLogin(err)
	case "53":
		return fault.New(fault.Unavailable, "the database server has run out of a resource (%s): raise its limit, or try again later", pg.Message).Wrap(err)
	case "58":
		return fault.New(fault.Unavailable, "the database server reported a system error (%s): check the database server's log", pg.Message).Wrap(err)
	default:
		return fault.New(fault.Internal, "a statement failed (SQLSTATE %s%s)", pg.Code, constraintOf(pg)).Wrap(err)
	}
}

// constraintOf returns the name of the violated constraint, if any.
func constraintOf(pg *pgconn.PgError) string {
	if pg.ConstraintName == "" {
		return ""
	}
	return ", " + pg.ConstraintName
}

// lost maps the error of a statement that commits by itself, or of COMMIT. Only an error of the
// server, and only one that leaves the session alive, proves that nothing was written. A broken
// connection, an ended context or a server that shuts down proves nothing. pgx's SafeToRetry is not
// used: it reports a lost response to COMMIT as safe.
func lost(err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR",
		errors.Is(err, pgx.ErrTxCommitRollback): // the server reports that it rolled back
		return mapError(err)
	}
	return fault.New(fault.OutcomeUnknown, "the database did not respond, so the write may or may not have been applied: read the state before you retry").Wrap(err)
}

// gaveWay maps an error of a closure's own statement if the transaction lost to another one: the
// transaction is then run again, as for a statement of ours. All other errors of the closure are
// returned unchanged.
func gaveWay(err error) error {
	var known *fault.Error
	var pg *pgconn.PgError
	if errors.As(err, &known) || !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "40001", "40P01", "55P03":
		return mapError(err)
	}
	return err
}
