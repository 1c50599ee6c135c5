package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

func state(severity, code string) *pgconn.PgError {
	return &pgconn.PgError{Severity: severity, SeverityUnlocalized: severity, Code: code, Message: "relation \"x\""}
}

// TestEverySQLStateHasItsMeaning verifies the meaning of each SQLSTATE, that only temporary errors
// are retryable, and that the server's error is wrapped.
func TestEverySQLStateHasItsMeaning(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct {
		code fault.Code
		safe bool
	}{
		"40001": {fault.Unavailable, true},       // serialization_failure
		"40P01": {fault.Unavailable, true},       // deadlock_detected
		"55P03": {fault.Unavailable, true},       // lock_not_available
		"57014": {fault.Unavailable, true},       // query_canceled
		"53300": {fault.Unavailable, true},       // too_many_connections
		"57P01": {fault.Unavailable, true},       // admin_shutdown
		"57P02": {fault.Unavailable, true},       // crash_shutdown
		"57P03": {fault.Unavailable, true},       // cannot_connect_now
		"57P05": {fault.Unavailable, true},       // idle_session_timeout
		"25P03": {fault.Unavailable, true},       // idle_in_transaction_session_timeout
		"08006": {fault.Unavailable, true},       // connection_failure
		"53100": {fault.StorageFull, false},      // disk_full
		"53200": {fault.Unavailable, false},      // out_of_memory
		"58030": {fault.Unavailable, false},      // io_error
		"25006": {fault.DatabaseReadOnly, false}, // read_only_sql_transaction
		"25P02": {fault.Unavailable, false},      // in_failed_sql_transaction
		"42501": {fault.DatabaseDenied, false},   // insufficient_privilege
		"28P01": {fault.DatabaseDenied, false},   // invalid_password
		"28000": {fault.DatabaseDenied, false},   // invalid_authorization_specification
		"3D000": {fault.NotFound, false},         // invalid_catalog_name
		"42P01": {fault.DatabaseDamaged, false},  // undefined_table
		"42703": {fault.DatabaseDamaged, false},  // undefined_column
		"3F000": {fault.DatabaseDamaged, false},  // invalid_schema_name
		"42883": {fault.DatabaseDamaged, false},  // undefined_function
		"XX001": {fault.DatabaseDamaged, false},  // data_corrupted
		"XX002": {fault.DatabaseDamaged, false},  // index_corrupted
		"26000": {fault.Unavailable, false},      // invalid_sql_statement_name
		"42P05": {fault.Unavailable, false},      // duplicate_prepared_statement
		"22021": {fault.Validation, false},       // character_not_in_repertoire
		"22003": {fault.Validation, false},       // numeric_value_out_of_range
		"23505": {fault.Internal, false},         // unique_violation
		"22P02": {fault.Internal, false},         // invalid_text_representation
		"XX000": {fault.Internal, false},         // internal_error
		"":      {fault.Internal, false},
		"P":     {fault.Internal, false},
	} {
		server := state("ERROR", code)
		err := mapError(fmt.Errorf("scan: %w", server))
		if fault.CodeOf(err) != want.code || fault.IsRetryable(err) != want.safe {
			t.Errorf("SQLSTATE %s: got %s (safe: %v), want %s (safe: %v)", code, fault.CodeOf(err), fault.IsRetryable(err), want.code, want.safe)
		}
		if !errors.Is(err, error(server)) {
			t.Errorf("%s: the server's error is not wrapped: %v", code, err)
		}
	}
}

// TestRefusalsOfAPooler verifies the meaning of the refusals of PgBouncer, which have one SQLSTATE.
func TestRefusalsOfAPooler(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]fault.Code{
		"unsupported startup parameter: statement_timeout":                    fault.Validation,
		"unsupported startup parameter in options: jit":                       fault.Validation,
		"SASL authentication failed":                                          fault.DatabaseDenied,
		"password authentication failed":                                      fault.DatabaseDenied,
		"server login has been failing, try again later (server_login_retry)": fault.Unavailable,
		"query_wait_timeout":                                                  fault.Unavailable,
		"no more connections allowed (max_client_conn)":                       fault.Unavailable,
	} {
		refused := &pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "08P01", Message: message}
		if err := mapConnect(refused, refused); fault.CodeOf(err) != want || fault.IsRetryable(err) != (want == fault.Unavailable) {
			t.Errorf("%s: got %v, want %s", message, err, want)
		}
	}
}

// TestErrorsWithoutAStateKeepTheirMeaning verifies that errors without a SQLSTATE are unchanged.
func TestErrorsWithoutAStateKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	if mapError(nil) != nil || lost(nil) != nil {
		t.Error("nil is mapped to an error")
	}
	broken := &net.OpError{Op: "read", Err: os.NewSyscallError("read", errors.New("reset"))}
	for _, c := range []struct {
		given error
		is    error
		safe  bool
	}{
		{context.Canceled, context.Canceled, false},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), context.DeadlineExceeded, false},
		{pgx.ErrTxClosed, store.ErrTxDone, false},
		{pgx.ErrTxClosed, fault.Of(fault.Unavailable), false},
		{fault.New(fault.NotFound, "none"), fault.Of(fault.NotFound), false},
		{io.ErrUnexpectedEOF, fault.Of(fault.Unavailable), true},
		{pgconn.ErrConnClosed, fault.Of(fault.Unavailable), true},
		{broken, fault.Of(fault.Unavailable), true},
		{errors.New("strange"), fault.Of(fault.Internal), false},
	} {
		if err := mapError(c.given); !errors.Is(err, c.is) || fault.IsRetryable(err) != c.safe {
			t.Errorf("%v: got %v (safe: %v), want %v (safe: %v)", c.given, err, fault.IsRetryable(err), c.is, c.safe)
		}
	}
}

// TestOnlyTheServersOwnWordSaysThatNothingWasWritten verifies what is known about a write whose
// statement, or whose COMMIT, ended with an error. Only an error of the server, from a session that
// is still alive, proves that nothing was written; the outcome of all others is unknown and never
// retryable.
//
// pgx reports the lost response to a COMMIT as a closed connection, so that proves nothing either.
func TestOnlyTheServersOwnWordSaysThatNothingWasWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		given error
		code  fault.Code
		safe  bool
	}{
		{"a serialization failure", state("ERROR", "40001"), fault.Unavailable, true},
		{"a cancelled statement", state("ERROR", "57014"), fault.Unavailable, true},
		{"a violated constraint", state("ERROR", "23505"), fault.Internal, false},
		{"a full disk", state("ERROR", "53100"), fault.StorageFull, false},
		{"a server that is going down", state("FATAL", "57P01"), fault.OutcomeUnknown, false},
		{"a server that crashed", state("FATAL", "57P02"), fault.OutcomeUnknown, false},
		{"a panic", state("PANIC", "XX000"), fault.OutcomeUnknown, false},
		{"an error of unknown severity", state("", "40001"), fault.OutcomeUnknown, false},
		{"an end of file", io.EOF, fault.OutcomeUnknown, false},
		{"an unexpected end of file", fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), fault.OutcomeUnknown, false},
		{"a closed socket", net.ErrClosed, fault.OutcomeUnknown, false},
		{"a context that ended", context.Canceled, fault.OutcomeUnknown, false},
		{"a deadline", context.DeadlineExceeded, fault.OutcomeUnknown, false},
		{"a rollback at COMMIT", pgx.ErrTxCommitRollback, fault.Internal, false},
		{"a connection found closed", pgconn.ErrConnClosed, fault.OutcomeUnknown, false},
		{"a refusal of ours", fault.New(fault.Internal, "ours"), fault.Internal, false},
	} {
		err := lost(c.given)
		if fault.CodeOf(err) != c.code || fault.IsRetryable(err) != c.safe {
			t.Errorf("%s: got %s (safe: %v), want %s (safe: %v)", c.name, fault.CodeOf(err), fault.IsRetryable(err), c.code, c.safe)
		}
		if !errors.Is(err, c.given) {
			t.Errorf("%s: the cause is not wrapped: %v", c.name, err)
		}
	}
}
