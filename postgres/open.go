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
	quickSize    = mostSlots + mostSlots/2 + 4 // for groups of commands, groups of pairs, and some retries
)

// session are the settings of every connection of ours. The timeouts limit how long a stuck client
// can hold locks; the statements are written for this isolation; JIT compilation costs more than
// any of them takes. Plans are generic, because PostgreSQL would plan again for arrays of another
// length, which takes longer than the statement. A plan that was made for empty tables must then
// not scan full ones.
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
	"enable_bitmapscan":                   "off", // a bitmap scan loses the order of an index, and with it the end of a page
}

// searchPath finds only what PostgreSQL defines. The statements do not depend on it (decision 031),
// so it is a second line of defence, on connections that no program sees: on those of the pool it
// would hide the program's own tables.
const searchPath = "pg_catalog, pg_temp"

// quick are additional settings of the connections for groups: a command that has to wait for a
// lock waits elsewhere, and a group delays its members only briefly. The server gives up before the
// client does (callTimeout), because the server's error proves that nothing was written.
var quick = map[string]string{"application_name": "holdfast groups", "lock_timeout": "20ms", "statement_timeout": "6s", "search_path": searchPath}

func (d *Database) open(ctx context.Context, o store.Options, migrate bool) (*adapter, store.Migrated, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &adapter{log: o.Log, schema: d.schema, owned: d.pool == nil, pool: d.pool, plain: o.Plain, migrations: d.migrations, fence: store.NewFence()}
	s.closing, s.stopEndings = context.WithCancel(context.Background())
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
			err = fault.New(fault.Unavailable, "the database could not be reached before the context's deadline").AsRetryable().Wrap(err)
		}
		return nil, done, err
	}
	return s, done, nil
}

// connect creates the pools. Connections are dialed when they are needed.
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
	if d.pooled { // without session settings a single caller cannot have a short lock timeout
		return nil
	}
	if s.quick, err = beside(ctx, config, quickSize, quick); err != nil {
		return s.fault(err)
	}
	s.grouper, s.pairs = store.NewGrouper(s.rounds()), store.NewGrouper(s.pairRounds())
	return nil
}

// beside creates a small pool like another, with its own settings.
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
		return nil, fault.New(fault.Validation, "invalid database URL: it must have the form postgres://user@host:5432/name").Wrap(hidden(err))
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

// readCallTimeout removes our parameter call_timeout from the server's parameters of the URL.
func (d *Database) readCallTimeout(params map[string]string) error {
	text, given := params["call_timeout"]
	if !given {
		return nil
	}
	delete(params, "call_timeout")
	t, err := time.ParseDuration(text)
	if err != nil || t <= 0 {
		return fault.New(fault.Validation, "call_timeout in the URL must be a positive duration such as 8s, got %q", text)
	}
	d.callTimeout = t
	return nil
}

// watch makes the connections of a config detect that their other end is gone.
func (d *Database) watch(config *pgxpool.Config) error {
	if d.callTimeout <= 0 {
		return fault.New(fault.Validation, "CallTimeout must not be negative, got %s", d.callTimeout)
	}
	config.ConnConfig.DialFunc = dialer(config.ConnConfig.DialFunc)
	if config.PingTimeout == 0 { // the ping of an idle connection
		config.PingTimeout = d.callTimeout / 4
	}
	return nil
}

// mode refuses the simple protocol, and takes any mode that does not prepare statements as [Pooled].
func (d *Database) mode(config *pgxpool.Config) error {
	switch config.ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeSimpleProtocol:
		return fault.New(fault.Validation, "default_query_exec_mode=simple_protocol is not supported, because it puts arguments into the statement text: use cache_describe behind a pooler")
	case pgx.QueryExecModeCacheStatement:
	default:
		d.pooled = true
	}
	return nil
}

// hidden keeps the URL, which may contain a password, out of logs.
func hidden(error) error { return errors.New("the URL could not be parsed") }

// tune sets what the URL leaves open. A pooler refuses unknown session settings, so behind one the
// role must have them.
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

// pgxDefaultConns returns pgx's default size, to distinguish it from a size set by the URL.
func pgxDefaultConns() int32 {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return 0
	}
	return config.MaxConns
}

// start checks the server, the schema and the statements of every verb.
func (s *adapter) start(ctx context.Context, o store.Options, migrate bool) (store.Migrated, error) {
	var logged sync.Once
	err := store.Retry(ctx, func() error {
		err := s.fault(s.bounded(ctx, s.callTimeout, s.checkServer))
		if fault.IsRetryable(err) {
			logged.Do(func() { s.log.Warn("database not reachable yet; retrying", "error", err) })
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
	if err := s.startFence(ctx); err != nil {
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
		return fault.New(fault.DatabaseTooOld, "the server is PostgreSQL %s: Holdfast requires version 15 or later", version)
	case recovery:
		return fault.New(fault.DatabaseReadOnly, "the server is a read-only standby: connect to the primary (target_session_attrs=read-write)")
	case readOnly == "on":
		return fault.New(fault.DatabaseReadOnly, "default_transaction_read_only is on: turn it off for the role (ALTER ROLE … SET default_transaction_read_only = off)")
	case isolation != "read committed":
		return fault.New(fault.Validation,
			"default_transaction_isolation must be \"read committed\", got %q: set it for the role (ALTER ROLE … SET default_transaction_isolation)", isolation)
	}
	return nil
}
