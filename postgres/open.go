package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	oldestServer = 150000 // server_version_num of PostgreSQL 15
	poolSize     = 16
	vitalSize    = 2
	quickSize    = mostSlots + 4 // some for those who try once more
)

// session is what every connection of ours runs under. The timeouts end what a
// stuck client would otherwise hold; the isolation is what the statements are
// written for; compiling a plan costs more than any of them takes. Their plans
// are made once: over arrays of another length PostgreSQL would plan anew each
// time, which takes longer than the statement. A plan that was made when the
// tables were empty must then not read them from end to end when they are full.
var session = map[string]string{
	"application_name":                    "holdfast",
	"statement_timeout":                   "30s",
	"lock_timeout":                        "5s",
	"idle_in_transaction_session_timeout": "60s",
	"default_transaction_isolation":       "read committed",
	"default_transaction_read_only":       "off",
	"jit":                                 "off",
	"timezone":                            "UTC",
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"enable_bitmapscan":                   "off", // it loses the order of an index, and with it the end of a page
}

// searchPath leads to what PostgreSQL has, and to nothing that others define. The statements need none (decision 031), so it is only a
// second line, on the connections that no program sees: on those of the pool it would hide the program's own tables.
const searchPath = "pg_catalog, pg_temp"

// quick is what the connections for groups run under besides: whoever has to
// wait for a lock does so elsewhere, and nobody waits long for a group. The server
// gives up before the client does (callTimeout): what it says is certain.
var quick = map[string]string{"application_name": "holdfast groups", "lock_timeout": "20ms", "statement_timeout": "6s", "search_path": searchPath}

func (d *Database) open(ctx context.Context, o store.Options, migrate bool) (*adapter, store.Migrated, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &adapter{log: o.Log, schema: d.schema, owned: d.pool == nil, pool: d.pool, plain: d.plain, migrations: d.migrations}
	if err := d.checkSchema(); err != nil {
		return nil, store.Migrated{}, err
	}
	if err := d.connect(ctx, s); err != nil {
		return nil, store.Migrated{}, err
	}
	done, err := s.start(ctx, o, migrate)
	if err != nil {
		_ = s.Close()
		var known *fault.Error
		if !errors.As(err, &known) && errors.Is(err, context.DeadlineExceeded) { // during the first attempt
			err = fault.New(fault.Unavailable, "the database cannot be reached within the context's deadline").Repeatable().Wrap(err)
		}
		return nil, done, err
	}
	return s, done, nil
}

// connect makes the pools. Nothing is dialled before it is needed.
func (d *Database) connect(ctx context.Context, s *adapter) (err error) {
	config, err := d.config()
	if err != nil {
		return err
	}
	s.callTimeout = d.callTimeout
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if s.owned {
		if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
			return s.fault(err)
		}
	}
	s.pooled = d.pooled
	var own map[string]string
	if !d.pooled {
		own = map[string]string{"search_path": searchPath}
	}
	if s.vital, err = beside(ctx, config, vitalSize, own); err != nil {
		return s.fault(err)
	}
	s.patient = make(chan struct{}, max(1, s.pool.Config().MaxConns*3/4))
	if d.pooled { // without session settings a lone caller's patience cannot be short
		return nil
	}
	if s.quick, err = beside(ctx, config, quickSize, quick); err != nil {
		return s.fault(err)
	}
	s.grouper = store.NewGrouper(s.rounds())
	return nil
}

// beside makes a small pool like another, with settings of its own.
func beside(ctx context.Context, like *pgxpool.Config, size int32, settings map[string]string) (*pgxpool.Pool, error) {
	config := like.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = size, 0, 0
	for name, value := range settings {
		config.ConnConfig.RuntimeParams[name] = value
	}
	return pgxpool.NewWithConfig(ctx, config)
}

func (d *Database) config() (*pgxpool.Config, error) {
	if d.pool != nil {
		config := d.pool.Config()
		if err := d.watch(config); err != nil {
			return nil, err
		}
		return config, d.mode(config)
	}
	config, err := pgxpool.ParseConfig(d.url)
	if err != nil {
		return nil, fault.New(fault.Validation, "the database's URL cannot be read: it wants the form postgres://user@host:5432/name").Wrap(hidden(err))
	}
	if err := d.mode(config); err != nil {
		return nil, err
	}
	if err := d.readCallTimeout(config.ConnConfig.RuntimeParams); err != nil {
		return nil, err
	}
	if err := d.watch(config); err != nil {
		return nil, err
	}
	if d.pooled {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	d.tune(config)
	return config, nil
}

// readCallTimeout takes call_timeout, which is ours, out of what the URL has the
// server set.
func (d *Database) readCallTimeout(params map[string]string) error {
	text, given := params["call_timeout"]
	if !given {
		return nil
	}
	delete(params, "call_timeout")
	t, err := time.ParseDuration(text)
	if err != nil || t <= 0 {
		return fault.New(fault.Validation, "call_timeout of the URL is %q: it is a positive duration such as 8s", text)
	}
	d.callTimeout = t
	return nil
}

// watch has the connections of a config notice that their other end is gone.
func (d *Database) watch(config *pgxpool.Config) error {
	if d.callTimeout <= 0 {
		return fault.New(fault.Validation, "CallTimeout is %s: it is a positive duration", d.callTimeout)
	}
	config.ConnConfig.DialFunc = dialer(config.ConnConfig.DialFunc)
	if config.PingTimeout == 0 { // of a connection that was idle
		config.PingTimeout = d.callTimeout / 4
	}
	return nil
}

// mode looks at how statements are to be sent.
func (d *Database) mode(config *pgxpool.Config) error {
	switch config.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeSimpleProtocol:
		return fault.New(fault.Validation, "default_query_exec_mode=simple_protocol is refused: it puts arguments into the text of statements; use cache_describe behind a pooler")
	case pgx.QueryExecModeCacheStatement:
	default:
		d.pooled = true
	}
	return nil
}

// hidden keeps the URL, and with it a password, out of logs.
func hidden(error) error { return errors.New("the URL was not parsed") }

// tune sets what the URL leaves open. A pooler refuses session settings that
// it does not know, so behind one they are the role's.
func (d *Database) tune(config *pgxpool.Config) {
	if !d.pooled {
		for name, value := range session {
			if _, given := config.ConnConfig.RuntimeParams[name]; !given {
				config.ConnConfig.RuntimeParams[name] = value
			}
		}
	}
	if config.MaxConns == pgxDefaultConns() {
		config.MaxConns = poolSize
	}
	config.ConnConfig.ConnectTimeout = max(config.ConnConfig.ConnectTimeout, 5*time.Second)
}

// pgxDefaultConns asks pgx for its default, to tell it from a size that the URL
// sets.
func pgxDefaultConns() int32 {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return 0
	}
	return config.MaxConns
}

// start checks the server and the schema and every verb's statements.
func (s *adapter) start(ctx context.Context, o store.Options, migrate bool) (store.Migrated, error) {
	var told sync.Once
	err := store.Retry(ctx, func() error {
		err := s.fault(s.bounded(ctx, s.callTimeout, s.checkServer))
		if fault.IsSafe(err) {
			told.Do(func() { s.log.Warn("the database does not answer yet; trying on", "error", err) })
		}
		return err
	})
	if err != nil {
		return store.Migrated{}, err
	}
	done, err := s.migrate(ctx, o, migrate)
	if err != nil {
		return done, err
	}
	return done, s.prepare(ctx)
}

func (s *adapter) checkServer(ctx context.Context) error {
	var num, version, isolation, readOnly string
	var recovery bool
	err := s.pool.QueryRow(ctx, `SELECT pg_catalog.current_setting('server_version_num'), pg_catalog.current_setting('server_version'),
		pg_catalog.current_setting('default_transaction_isolation'), pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('default_transaction_read_only')`).Scan(&num, &version, &isolation, &recovery, &readOnly)
	if err != nil {
		return err
	}
	s.version = "PostgreSQL " + version
	n, err := strconv.Atoi(num)
	switch {
	case err != nil:
		return fmt.Errorf("server_version_num %q: %w", num, err)
	case n < oldestServer:
		return fault.New(fault.DatabaseTooOld, "the server is PostgreSQL %s: version 15 or later is needed", version)
	case recovery:
		return fault.New(fault.DatabaseReadOnly, "the server is a standby and takes no writes: connect to the primary (target_session_attrs=read-write)")
	case readOnly == "on":
		return fault.New(fault.DatabaseReadOnly, "default_transaction_read_only is on: lift it for the role (ALTER ROLE … SET default_transaction_read_only = off)")
	case isolation != "read committed":
		return fault.New(fault.Validation,
			"default_transaction_isolation is %q, and the statements are written for \"read committed\": set it for the role (ALTER ROLE … SET default_transaction_isolation)", isolation)
	}
	return nil
}
