package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Fence returns the fence of the store.
func (s *adapter) Fence() *store.Fence { return s.fence }

const generationText = `SELECT coalesce(max(r.generation), 0) FROM holdfast_restore AS r`

// remember notes which file the path leads to, before it is opened.
func (s *adapter) remember(path string) (err error) {
	if s.path, err = filepath.Abs(path); err == nil {
		s.opened, err = os.Stat(s.path)
	}
	if err != nil {
		return mapCode(codeCantOpen, path, err)
	}
	return nil
}

// startFence begins to watch the generation and the file. The file of a pool of the program is that of its connections.
func (s *adapter) startFence(ctx context.Context) error {
	return store.Retry(ctx, func() error {
		var generation int64
		var path string
		err := s.read.QueryRowContext(ctx, generationText).Scan(&generation)
		if err == nil && !s.owned {
			err = s.read.QueryRowContext(ctx, "SELECT coalesce(max(l.file), '') FROM pragma_database_list AS l WHERE l.name = 'main'").Scan(&path)
		}
		if err != nil {
			return s.fault(err)
		}
		if path != "" {
			if err := s.remember(path); err != nil {
				return err
			}
		}
		s.fence.Start(generation)
		return nil
	})
}

// lookEvery is how often the generation is read. In between, the revision of the registry refuses the writes that have events.
const lookEvery = 50 * time.Millisecond

var begun = clock.Now().Add(-lookEvery)

// look refuses a transaction, which has the write lock, if the database was restored from a backup since it was opened:
// into the file, or as another file in its place. What is written to a file that was replaced is lost.
func (s *adapter) look(ctx context.Context, tx *sql.Tx) error {
	if err := s.fence.Err(); err != nil || !s.fence.Started() {
		return err
	}
	if s.opened != nil {
		info, err := os.Stat(s.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, s.opened) {
			s.fence.Close()
			return s.fence.Err()
		}
		if err != nil {
			return fault.New(fault.Unavailable, "cannot read the attributes of %s: %v", s.path, err).AsRetryable().Wrap(err)
		}
	}
	at := clock.Since(begun)
	if at-time.Duration(s.looked.Load()) < lookEvery {
		return nil
	}
	c := &conn{store: s, tx: tx, joined: !s.owned}
	rows, err := c.rows(context.WithoutCancel(ctx), &statement{text: generationText}, nil)
	if err != nil {
		return s.fault(err)
	}
	defer rows.Close()
	generation := s.fence.Generation()
	for rows.Next() {
		if err := rows.Scan(&generation); err != nil {
			return s.fault(err)
		}
	}
	if err := rows.Err(); err != nil {
		return s.fault(err)
	}
	s.looked.Store(int64(at))
	return s.fence.Meet(generation)
}

// newGeneration moves the database to a new generation. The transaction has the write lock.
func (s *adapter) newGeneration(ctx context.Context, tx *sql.Tx) (generation int64, err error) {
	at := clock.OfMachine()
	if at.Unix() < store.GenerationsBegin {
		return 0, store.ErrClockBefore
	}
	err = tx.QueryRowContext(ctx, `INSERT INTO holdfast_restore (generation, restored_at)
		SELECT max(?1, coalesce((SELECT max(r.generation) FROM holdfast_restore AS r), 0) + 1), ?2 WHERE true RETURNING generation`,
		at.Unix()-store.GenerationsBegin, at.UnixMilli()).Scan(&generation)
	if err != nil {
		return 0, s.fault(err)
	}
	id := store.NewID()
	text := strings.NewReplacer("{generation}", fmt.Sprint(generation), "{first}", fmt.Sprint(generation*store.GenerationSpan),
		"{jump}", fmt.Sprint(store.RevisionJump(generation)),
		"{command}", fmt.Sprintf("x'%x'", id[:]), "{now}", fmt.Sprint(at.UnixMilli())).Replace(raise)
	_, err = tx.ExecContext(ctx, text)
	return generation, s.fault(err)
}

// raise moves all numbers that must not come again: {first} exceeds those of leases and scopes, and {jump} is more than the revisions that a
// registry can have lost. A reaction's epochs begin at the revision of its registration, shifted by 32 bits.
const raise = `
UPDATE holdfast_entity SET epoch = max(epoch + 1, {first}) WHERE phase <> 'free';
UPDATE holdfast_step SET epoch = max(epoch + 1, {first}) WHERE status <> 'COMPLETED';
UPDATE holdfast_item AS i SET epoch = max(i.epoch + 1, {first}), sweeps = max(i.sweeps + 1, {first})
  FROM holdfast_batch AS b
 WHERE b.shard = i.shard AND b.workspace = i.workspace AND b.id = i.batch AND b.status NOT IN ('CANCELLED', 'COMPLETED');
UPDATE holdfast_follow SET epoch = epoch + ({jump} << 32);
UPDATE holdfast_reaction SET base = base + ({jump} << 32);
UPDATE holdfast_stream SET epoch = max(epoch + 1, {first}) WHERE state = 'closing';
UPDATE holdfast_request SET epoch = max(epoch + 1, {first}) WHERE state = 'held';
UPDATE holdfast_registry SET revision = revision + {jump};
INSERT INTO holdfast_registry (shard, workspace, revision)
SELECT w.shard, w.name, {jump} FROM holdfast_workspace AS w WHERE true
    ON CONFLICT (shard, workspace) DO NOTHING;

INSERT INTO holdfast_feed_gap (shard, workspace, generation, last, next)
SELECT q.shard, q.workspace, {generation}, q.last, max(q.last + 1, {first}) FROM holdfast_sequence AS q;
UPDATE holdfast_sequence SET last = max(last + 1, {first});

-- Tombstones are deleted: new scopes begin above all generations.
DELETE FROM holdfast_scope WHERE state IS NULL;
UPDATE holdfast_scope SET version = max(version + 1, {first}), born = max(version + 1, {first});
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, at)
SELECT s.shard, {command}, row_number() OVER (PARTITION BY s.shard ORDER BY s.workspace, s.kind, s.id) - 1, s.workspace,
       '$scope/' || s.kind || '/' || s.id, s.version, 'restored', json_object('state', json(s.state)), {now}
  FROM holdfast_scope AS s;
UPDATE holdfast_follow AS f SET due = s.version, due_at = {now}, rank = {now}
  FROM holdfast_scope AS s, holdfast_reaction AS r
 WHERE f.stream = '$scope/' || s.kind || '/' || s.id AND f.shard = s.shard AND f.workspace = s.workspace
   AND r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.source = 'history' AND r.state <> 'removed';

UPDATE holdfast_secret SET value = randomblob(32);
DELETE FROM holdfast_node;
DELETE FROM holdfast_session;
`
