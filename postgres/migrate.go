package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// ownPath sets the search_path of a migration: what it creates in the schema calls only what
// PostgreSQL defines.
const ownPath = "SET LOCAL search_path = " + searchPath

const createSchema = `CREATE SCHEMA IF NOT EXISTS {schema}`

const createMigration = `CREATE TABLE IF NOT EXISTS {schema}.migration (
    number     integer     NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    min_reader integer     NOT NULL,
    sum        text        NOT NULL,
    applied_at timestamptz NOT NULL
)`

// grants are the privileges that a node needs. It inserts events, history and the audit and never changes them, and
// deletes events and history only through functions that delete what retention permits.
const grants = `GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};
GRANT INSERT, UPDATE ON {schema}.late_call TO {role};
GRANT INSERT, UPDATE, DELETE ON {schema}.stream, {schema}.entity, {schema}.scope, {schema}.scope_floor,
    {schema}.registry, {schema}.reaction, {schema}.follow, {schema}.sequence, {schema}.snapshot, {schema}.subject, {schema}.due,
    {schema}.effect, {schema}.lifecycle, {schema}.refusal, {schema}.api_key, {schema}.request, {schema}.token, {schema}.session, {schema}.handler, {schema}.webhook, {schema}.named_secret,
    {schema}.run, {schema}.step, {schema}.signal, {schema}.approval, {schema}.node, {schema}.node_minute TO {role};
GRANT INSERT, UPDATE ON {schema}.wallet TO {role};
GRANT INSERT, UPDATE, DELETE ON {schema}.batch, {schema}.item TO {role};
GRANT INSERT ON {schema}.event, {schema}.history, {schema}.audit TO {role};
GRANT INSERT, DELETE ON {schema}.feed TO {role};
GRANT INSERT ON {schema}.feed_gap TO {role};
GRANT EXECUTE ON FUNCTION {schema}.drop_events(smallint, text, text, bigint, bigint), {schema}.prune_history(smallint, text, text, text, bigint, bigint) TO {role};
GRANT INSERT ON {schema}.workspace, {schema}.ledger, {schema}.definition, {schema}.retention TO {role};`

// guard ensures that only the owner deletes or changes events, history, the audit and the clock, or has code run with
// the owner's rights. The deleting functions belong to the owner of the tables, who need not be the
// role that migrates, and are not executable by PUBLIC; a role that could delete rows gets the
// functions instead. It runs again with the grants: a restored dump may have lost privileges, and
// an earlier version may have granted too many.
const guard = `DO $$
DECLARE
    f record;
    g record;
BEGIN
    FOR f IN SELECT c.oid::regclass AS of, c.relowner AS owner, c.relacl AS acl, p.oid::regprocedure AS name, p.proowner AS maker
               FROM pg_class c LEFT JOIN pg_proc p ON p.pronamespace = c.relnamespace AND p.proname = CASE c.relname WHEN 'event' THEN 'drop_events' WHEN 'history' THEN 'prune_history' END
              WHERE c.oid IN ('{schema}.event'::regclass, '{schema}.history'::regclass, '{schema}.audit'::regclass, '{schema}.clock'::regclass) LOOP
        IF EXISTS (SELECT 1 FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_roles r ON r.oid = p.proowner
                    WHERE t.tgrelid = f.of AND NOT t.tgisinternal AND p.proowner <> f.owner AND NOT r.rolsuper) THEN
            RAISE EXCEPTION 'table % has a trigger whose function belongs to another role and would run as the owner: drop the trigger', f.of;
        END IF;
        FOR g IN SELECT a.grantee, bool_or(a.privilege_type = 'DELETE') AS deletes FROM aclexplode(f.acl) AS a
                  WHERE a.grantee <> f.owner AND a.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
                  GROUP BY a.grantee LOOP
            EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE, TRIGGER ON %s FROM %s CASCADE', f.of, CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END);
            IF g.deletes AND g.grantee <> 0 AND f.name IS NOT NULL THEN
                EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', f.name, pg_get_userbyid(g.grantee));
            END IF;
        END LOOP;
        IF f.name IS NOT NULL THEN
            EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f.name);
            IF f.maker <> f.owner THEN
                EXECUTE format('ALTER FUNCTION %s OWNER TO %I', f.name, pg_get_userbyid(f.owner));
            END IF;
        END IF;
    END LOOP;
END $$;`

// Script returns the SQL that migrates an empty database.
func (d opener) Script(o store.Options) (string, error) {
	if err := d.checkSchema(); err != nil {
		return "", err
	}
	if err := checkRole(o.RuntimeRole); err != nil {
		return "", err
	}
	known, err := store.LoadMigrations(d.migrations)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "BEGIN;\n%s;\n\n%s;\n%s;\n", ownPath, fill(createSchema, d.schema, ""), fill(createMigration, d.schema, ""))
	for i, m := range known {
		fmt.Fprintf(&b, "\n%s%s\n%s;\n", m.Heading(known[max(i-1, 0)].MinReader), fill(m.SQL, d.schema, ""), fill(record(m), d.schema, ""))
	}
	fmt.Fprintf(&b, "\n%s\n", fill(guard, d.schema, ""))
	if o.RuntimeRole != "" {
		fmt.Fprintf(&b, "\n%s\n", fill(grants, d.schema, o.RuntimeRole))
	}
	b.WriteString("\nCOMMIT;\n")
	return b.String(), nil
}

// checkRole refuses PUBLIC. The server refuses a role that does not exist.
func checkRole(role string) error {
	if strings.EqualFold(role, "public") {
		return fault.New(fault.Validation, "the runtime role must not be %q, which includes every role: use the role that the nodes log in with", role)
	}
	return nil
}

func fill(sql, schema, role string) string {
	return strings.NewReplacer(
		"{schema}", pgx.Identifier{schema}.Sanitize(),
		"{role}", pgx.Identifier{role}.Sanitize()).Replace(sql)
}

// record returns the statement that records a migration. Its values are ours, so they can be part
// of the text, which is then the same as in Script.
func record(m store.Migration) string {
	return fmt.Sprintf("INSERT INTO {schema}.migration (number, name, min_reader, sum, applied_at)\nVALUES (%d, '%s', %d, '%s', pg_catalog.clock_timestamp())",
		m.Number, m.Name, m.MinReader, m.Sum)
}

// migrate migrates the schema. A current schema is only read, so that a node can start with a role
// that owns nothing.
func (s *adapter) migrate(ctx context.Context, o store.Options, allowed bool) (done store.Migrated, err error) {
	known, err := store.LoadMigrations(s.migrations)
	if err != nil {
		return done, err
	}
	err = store.Retry(ctx, func() error {
		done, err = s.migrateOnce(ctx, o, known, allowed)
		return err
	})
	return done, err
}

func (s *adapter) migrateOnce(ctx context.Context, o store.Options, known []store.Migration, allowed bool) (done store.Migrated, err error) {
	var have []store.Applied
	err = s.bounded(ctx, s.callTimeout, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			have, err = s.applied(ctx, tx)
			return err
		})
	})
	if err != nil {
		return done, s.fault(err)
	}
	done = store.Migrated{From: len(have), To: len(have)}
	pending, err := store.Pending(known, have)
	if err != nil || (len(pending) == 0 && o.RuntimeRole == "" && !o.Restored) {
		return done, err
	}
	if !allowed {
		return done, store.Behind(len(have), len(known))
	}
	err = s.bounded(ctx, migrateTimeout, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			done, err = s.apply(ctx, tx, o, known)
			return err
		})
	})
	if fault.CodeOf(s.fault(err)) == fault.DatabaseDenied && len(pending) > 0 {
		return done, store.Behind(len(have), len(known)).Wrap(err)
	}
	return done, s.fault(err)
}

// apply takes the lock that lets many nodes start at once, reads the applied migrations again, and
// applies the pending ones. The first node migrates; the others wait and find nothing to do.
func (s *adapter) apply(ctx context.Context, tx pgx.Tx, o store.Options, known []store.Migration) (done store.Migrated, err error) {
	if _, err := tx.Exec(ctx, ownPath+"; SET LOCAL statement_timeout = 0; "+setLockTimeout(lockTimeout)); err != nil {
		return done, err
	}
	if _, err := tx.Exec(ctx, "SELECT pg_catalog.pg_advisory_xact_lock($1)", lockKey(s.schema)); err != nil {
		return done, err
	}
	have, err := s.applied(ctx, tx)
	if err != nil {
		return done, err
	}
	pending, err := store.Pending(known, have)
	if o.Restored && len(have) == 0 {
		err = store.ErrNotRestored
	}
	if err != nil {
		return done, err
	}
	var ended int
	if o.Restored {
		if ended, err = s.endOthers(ctx, tx); err != nil {
			return done, err
		}
	}
	if len(have) > 0 {
		if err := s.lockTables(ctx, tx, named(pending), o.Restored); err != nil {
			return done, err
		}
	}
	if err := s.applyAll(ctx, tx, len(have) == 0, pending); err != nil {
		return done, err
	}
	if err := s.exec(ctx, tx, fill(guard, s.schema, "")); err != nil {
		return done, err
	}
	if o.RuntimeRole != "" {
		if err := s.grant(ctx, tx, o.RuntimeRole); err != nil {
			return done, err
		}
	}
	done = store.Migrated{From: len(have), To: len(have) + len(pending), Ended: ended}
	if o.Restored {
		done.Generation, err = s.newGeneration(ctx, tx)
	}
	return done, err
}

func (s *adapter) grant(ctx context.Context, tx pgx.Tx, role string) error {
	if err := checkRole(role); err != nil {
		return err
	}
	err := s.exec(ctx, tx, fill(grants, s.schema, role))
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42704" {
		return fault.New(fault.NotFound, "role %q does not exist: create it first (CREATE ROLE …), or correct its name", role).Wrap(err)
	}
	if err != nil {
		return fmt.Errorf("grant to %s: %w", role, err)
	}
	return nil
}

// lockTimeout limits how long a migration waits for the locks of tables, and lockSoon how long it waits for one while it holds others,
// which nodes then wait for. It waits longer the longer it has tried.
const (
	lockTimeout = 2 * time.Minute
	lockSoon    = 50 * time.Millisecond
)

var (
	functionBody = regexp.MustCompile(`(?s)\$\$.*?\$\$`)
	tableName    = regexp.MustCompile(`\{schema\}\.(\w+)`)
)

// named returns the tables that migrations name, without those in functions, whose definition locks no table.
func named(migrations []store.Migration) (tables []string) {
	for _, m := range migrations {
		for _, found := range tableName.FindAllStringSubmatch(functionBody.ReplaceAllString(m.SQL, ""), -1) {
			tables = append(tables, found[1])
		}
	}
	return tables
}

// lockTables locks the tables that exist, or all tables, before the first one is changed. Nodes are working meanwhile, and their
// transactions use tables in several orders: one of them may wait for a table that is locked here, and hold the next one. So only the
// first table is waited for. If another one is not free soon, all are released, and that one becomes the first. The first order
// begins with tables that nodes poll (wake/list_due.sql).
func (s *adapter) lockTables(ctx context.Context, tx pgx.Tx, some []string, every bool) error {
	var all []string
	err := tx.QueryRow(ctx, `SELECT coalesce(pg_catalog.array_agg(pg_catalog.format('%I.%I', n.nspname, c.relname)
		       ORDER BY pg_catalog.array_position('{follow,entity,step,batch,item,request,token}'::text[], c.relname::text), c.relname), '{}')
		  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		 WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'migration'
		   AND ($3 OR c.relname = ANY ($2::text[]))`, s.schema, some, every).Scan(&all)
	for begun := clock.Now(); err == nil; {
		var locked int
		if locked, err = s.lockInOrder(ctx, tx, all, lockSoon+clock.Since(begun)/20); err == nil {
			break
		}
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if ok && (pg.Code == "55P03" || pg.Code == "40P01") && locked > 0 && clock.Since(begun) < lockTimeout { // not available, deadlock
			busy := all[locked]
			all, err = slices.Insert(slices.Delete(all, locked, locked+1), 0, busy), nil
		}
	}
	return err
}

func setLockTimeout(d time.Duration) string {
	return fmt.Sprintf("SET LOCAL lock_timeout = %d", d.Milliseconds())
}

// lockInOrder locks the tables, and returns how many it has locked. It waits only soon for each after the first. If it fails, it has
// released them.
func (s *adapter) lockInOrder(ctx context.Context, tx pgx.Tx, all []string, soon time.Duration) (locked int, err error) {
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		for i, name := range all {
			timeout := lockTimeout
			if i > 0 {
				timeout = soon
			}
			if err := s.exec(ctx, tx, setLockTimeout(timeout)+"; LOCK TABLE "+name); err != nil {
				return err
			}
			locked++
		}
		return s.exec(ctx, tx, setLockTimeout(lockTimeout))
	})
	return locked, err
}

func (s *adapter) applyAll(ctx context.Context, tx pgx.Tx, fresh bool, pending []store.Migration) error {
	if fresh && len(pending) > 0 {
		var exists bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1)", s.schema).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			if err := s.exec(ctx, tx, fill(createSchema, s.schema, "")); err != nil {
				return err
			}
		}
		if err := s.exec(ctx, tx, fill(createMigration, s.schema, "")); err != nil {
			return err
		}
	}
	for _, m := range pending {
		if err := s.exec(ctx, tx, fill(m.SQL+"\n"+record(m), s.schema, "")); err != nil {
			return fmt.Errorf("migration %d: %w", m.Number, err)
		}
	}
	return nil
}

// exec runs several statements at once. Only migrations use it, with constant texts.
func (s *adapter) exec(ctx context.Context, tx pgx.Tx, sql string) error {
	_, err := tx.Conn().PgConn().Exec(ctx, sql).ReadAll()
	return err
}

func lockKey(schema string) int64 {
	h := fnv.New64a()
	h.Write([]byte("holdfast migrate " + schema))
	return int64(h.Sum64())
}

// applied reads the migrations of the schema. A schema with tables but without our record belongs
// to another program.
func (s *adapter) applied(ctx context.Context, tx pgx.Tx) ([]store.Applied, error) {
	var tables, records, columns int
	err := tx.QueryRow(ctx, `SELECT pg_catalog.count(DISTINCT c.oid), pg_catalog.count(DISTINCT c.oid) FILTER (WHERE c.relname = 'migration'),
		pg_catalog.count(a.attname) FILTER (WHERE c.relname = 'migration' AND a.attname IN ('number', 'name', 'min_reader', 'sum'))
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm')`, s.schema).Scan(&tables, &records, &columns)
	if err != nil || tables == 0 {
		return nil, err
	}
	if records == 0 || columns != 4 {
		return nil, fault.New(fault.DatabaseForeign,
			"schema %q has tables but no valid record of Holdfast's migrations, so it belongs to another program: choose another schema. Nothing was changed", s.schema)
	}
	rows, err := tx.Query(ctx, fill(`SELECT number, name, min_reader, sum FROM {schema}.migration ORDER BY number`, s.schema, ""))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[store.Applied])
}
