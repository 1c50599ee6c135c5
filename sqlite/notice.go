package sqlite

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/store"
)

// errStale is the error of a command with a stale registry revision. Nothing of it was written.
var errStale = errors.New("the registry revision is stale")

// checkRevision compares the registry revision of a command with the workspace's. The transaction holds the
// write lock, so that the revision it reads stays valid until it ends. A user's transaction may not
// hold the lock yet, and must write before it reads: SQLite refuses to upgrade a reader to a writer
// if others wrote in between. That write is part of the savepoint, and has no effect.
func (c *conn) checkRevision(ctx context.Context, cmd store.Command) error {
	revision, _, ok := cmd.Known()
	if !ok {
		return nil
	}
	at := cmd.Partition()
	have, seen := c.revisions[at]
	if !seen {
		if c.joined {
			if _, err := c.tx.ExecContext(ctx, lockText); err != nil {
				return c.store.fault(err)
			}
		}
		if err := c.revision(ctx, at, &have); err != nil {
			return err
		}
		if c.revisions == nil {
			c.revisions = make(map[store.Partition]int64)
		}
		c.revisions[at] = have
	}
	if have != revision {
		return errStale
	}
	return nil
}

func (c *conn) revision(ctx context.Context, at store.Partition, into *int64) error {
	st := &statement{text: revisionText}
	rows, err := c.rows(ctx, st, []any{int64(at.Shard), at.Workspace})
	if err != nil {
		return c.store.fault(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into); err != nil {
			return c.store.fault(err)
		}
	}
	return c.store.fault(rows.Err())
}

// writeDueNotices writes the due notices of the events that a command has written. SQLite has one writer, so a
// notice goes directly to where PostgreSQL collects it: the row of the reaction on the stream.
func (c *conn) writeDueNotices(ctx context.Context, cmd store.Command) error {
	_, marks, _ := cmd.Known()
	if marks == "" {
		return nil
	}
	id, at := cmd.ID(), cmd.Partition()
	text := noticeTexts[cmd.Decl().Events]
	_, err := c.exec(ctx, &text, []any{int64(at.Shard), at.Workspace, id[:], marks})
	return c.store.fault(err)
}

// lockText takes the write lock and changes nothing.
const lockText = `DELETE FROM holdfast_registry WHERE shard = -1 AND workspace = ''`

// revisionText returns the revision of a workspace's registry: ?1 shard, ?2 workspace.
const revisionText = `SELECT coalesce((SELECT g.revision FROM holdfast_registry AS g WHERE g.shard = ?1 AND g.workspace = ?2), 0)`

// noticeTexts are the statements that write the due notices of a command, for each of the two tables
// of events: ?1 shard, ?2 workspace, ?3 command, ?4 reactions as a JSON list.
var noticeTexts = map[store.EventTable]statement{
	store.StreamEvents:  noticeText("holdfast_event"),
	store.HistoryEvents: noticeText("holdfast_history"),
}

func noticeText(table string) statement {
	st := statement{text: `INSERT INTO holdfast_follow AS f
    (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at)
SELECT ?1, ?2, r.name, w.stream, -1, w.version, ` + now + `, ` + now + ` - r.priority * 1000, r.base, ` + now + `
  FROM (SELECT e.stream, e.version FROM ` + table + ` AS e
         WHERE e.shard = ?1 AND e.id = ?3 AND +e.workspace = ?2 -- by its key, not by its stream
         ORDER BY e.n DESC LIMIT 1) AS w
  JOIN json_each(?4) AS j
  JOIN holdfast_reaction AS r ON r.shard = ?1 AND r.workspace = ?2 AND r.name = j.value
 WHERE true
ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
   SET due = max(f.due, excluded.due),
       due_at = CASE WHEN f.due > f.watermark THEN f.due_at ELSE excluded.due_at END,
       rank = CASE WHEN f.due > f.watermark THEN f.rank ELSE excluded.rank END`}
	st.numbered()
	return st
}

// ownTexts returns the statements that belong to no verb.
func ownTexts() []string {
	texts := []string{revisionText}
	for _, st := range noticeTexts {
		texts = append(texts, st.text)
	}
	return texts
}
