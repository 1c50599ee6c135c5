package baseline

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed sql/*.sql
var files embed.FS

// statements returns the SQL statements for a database, by name.
func statements(database string) (map[string]string, error) {
	paths, err := fs.Glob(files, "sql/"+database+".*.sql")
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for _, path := range paths {
		text, err := files.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(strings.TrimSuffix(path, ".sql"), "sql/"+database+".")
		texts[name] = string(text)
	}
	return texts, nil
}

// Postgres runs one statement per call, in its own transaction. It
// is safe for concurrent use.
type Postgres struct {
	pool  *pgxpool.Pool
	texts map[string]string
}

var _ System = (*Postgres)(nil)

// OpenPostgres connects with a pool of a size, and makes the schema with its
// tables unless it exists. [Postgres.Close] closes the pool.
func OpenPostgres(ctx context.Context, url, schema string, conns int) (*Postgres, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	config.MaxConns = int32(conns)
	// Otherwise the server would plan a statement over few rows anew each time,
	// which takes longer than running it.
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	p := &Postgres{pool: pool, texts: make(map[string]string)}
	if err := p.start(ctx, schema); err != nil {
		pool.Close()
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context, schema string) error {
	texts, err := statements("postgres")
	if err != nil {
		return err
	}
	for name, text := range texts {
		p.texts[name] = strings.ReplaceAll(text, "{schema}", pgx.Identifier{schema}.Sanitize())
	}
	var there bool
	err = p.pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", schema).Scan(&there)
	if err == nil && !there {
		_, err = p.pool.Exec(ctx, p.texts["schema"])
	}
	return err
}

// Close closes the pool.
func (p *Postgres) Close() { p.pool.Close() }

// Create makes an entity, with its event. If the entity exists, it is refused.
func (p *Postgres) Create(ctx context.Context, a New) (Entity, error) {
	return p.entity(ctx, "create", newID(), a.Lifecycle, a.ID, a.Status, a.Data)
}

// Transition moves an entity that is in the status From, with its event.
func (p *Postgres) Transition(ctx context.Context, a Move) (Entity, error) {
	return p.entity(ctx, "transition", newID(), a.Lifecycle, a.ID, a.From, a.To, a.Event)
}

func (p *Postgres) entity(ctx context.Context, name string, args ...any) (e Entity, err error) {
	row := p.pool.QueryRow(ctx, p.texts[name], append([]any{shard, workspace}, args...)...)
	err = row.Scan(&e.Status, &e.Version, &e.Data, &e.CreatedAt, &e.UpdatedAt)
	return e, refused(err)
}

// Append adds an event to a stream at its expected version.
func (p *Postgres) Append(ctx context.Context, a Append) (int64, error) {
	return p.number(ctx, a.statement(), newID(), a.Stream, a.Want, a.Name, a.Data)
}

func (a Append) statement() string {
	if a.Want < 0 {
		return "append.first"
	}
	return "append"
}

// Inc adds to a number of a scope, with its event.
func (p *Postgres) Inc(ctx context.Context, a Inc) (int64, error) {
	return p.number(ctx, "inc", newID(), a.Kind, a.ID, a.Field, a.By)
}

func (p *Postgres) number(ctx context.Context, name string, args ...any) (n int64, err error) {
	err = p.pool.QueryRow(ctx, p.texts[name], append([]any{shard, workspace}, args...)...).Scan(&n)
	return n, refused(err)
}

// PutScope makes a scope or replaces its state.
func (p *Postgres) PutScope(ctx context.Context, kind, id, state string) error {
	_, err := p.pool.Exec(ctx, p.texts["put"], shard, workspace, kind, id, state)
	return err
}

func refused(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrRefused
	}
	return err
}
