package postgres

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// These are the outcomes of a member, as the statements return them.
const (
	refused = 0
	applied = 1
	again   = 2 // must be retried: for example, its row is locked, or another transaction has just inserted it
)

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// row is a [store.Row] of a read or a fast statement, whose columns are all for the command.
type row struct{ pgx.Rows }

func (row) Applied() bool { return true }

func (r row) Scan(dest ...any) error { return inUTC(r.Rows.Scan(dest...), dest) }

// inUTC converts scanned times to UTC, as in SQLite: pgx returns them in the local zone.
func inUTC(err error, dest []any) error {
	for _, d := range dest {
		if t, ok := d.(*time.Time); ok {
			*t = t.UTC()
		}
	}
	return err
}

// member is a [store.Row] after the two columns that every general statement begins with: the
// member and its outcome.
type member struct {
	rows    pgx.Rows
	ordinal int64
	outcome int32
}

func (m *member) Applied() bool { return m.outcome == applied }

func (m *member) Scan(dest ...any) error {
	return inUTC(m.rows.Scan(append([]any{&m.ordinal, &m.outcome}, dest...)...), dest)
}

// peek reads only these two columns, before the command's own scanner reads the rest.
func (m *member) peek() error {
	dest := make([]any, len(m.rows.FieldDescriptions()))
	dest[0], dest[1] = &m.ordinal, &m.outcome
	return m.rows.Scan(dest...)
}

// scanRows passes rows to a command: all of them, or as many as it wants.
func scanRows(rows pgx.Rows, c store.Command) (n int, err error) {
	defer rows.Close()
	for rows.Next() {
		n++
		if err := c.Scan(row{rows}); errors.Is(err, store.ErrEnough) {
			break
		} else if err != nil {
			return n, fmt.Errorf("scan %s: %w", c.Decl().Name, err)
		}
	}
	rows.Close()
	return n, rows.Err()
}

// scanMembers passes each member its row and returns those that must be retried. A member with a
// stale registry has no row.
func scanMembers(rows pgx.Rows, members []store.Command) (retry []store.Command, err error) {
	defer rows.Close()
	seen := make([]bool, len(members))
	for rows.Next() {
		m := &member{rows: rows}
		if err := m.peek(); err != nil {
			return nil, err
		}
		if m.ordinal < 1 || m.ordinal > int64(len(members)) {
			return nil, fault.New(fault.Internal, "a statement returned a row for member %d of %d", m.ordinal, len(members))
		}
		seen[m.ordinal-1] = true
		c := members[m.ordinal-1]
		if m.outcome == again {
			retry = append(retry, c)
			continue
		}
		if err := c.Scan(m); err != nil {
			return nil, fmt.Errorf("scan %s: %w", c.Decl().Name, err)
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i, c := range members {
		if seen[i] {
			continue
		}
		if _, _, knows := c.Known(); !knows {
			return nil, fault.New(fault.Internal, "%s returned no row for member %d of %d", c.Decl().Name, i+1, len(members))
		}
		c.Refuse() // its registry revision is stale
	}
	return retry, nil
}
