package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/demo"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/tlsfiles"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/web"
)

// These are the default databases. The tag of the flag has the first one, too.
const (
	defaultDB = "sqlite:holdfast.db"
	demoDB    = "sqlite:holdfast-demo.db"
)

// Run runs the development server.
func (c *devCommand) Run(ctx context.Context, p *program) error {
	err := checkListen(c.Listen, "dev requires no API keys, so it listens only on 127.0.0.1, [::1] or localhost")
	if err != nil {
		return err
	}
	own := c.Demo && c.DB == defaultDB
	if own { // the demo writes and deletes, so it does not use the database of a project
		c.DB = demoDB
	}
	s := server{program: p, serverFlags: c.serverFlags, databaseFlags: c.databaseFlags, api: httpapi.Options{NoKeys: true, Declare: true}}
	if c.SecretKey == "" { // dev protects nothing, so a fixed secret key is enough
		key := sha256.Sum256([]byte("holdfast dev"))
		s.SecretKey = hex.EncodeToString(key[:])
	}
	if c.AllowPrivate == "" {
		s.AllowPrivate = "127.0.0.0/8,::1/128"
	}
	if c.Demo {
		d, at := demo.New(p.stdout, demoCallers(p.env, c.databaseFlags, "")), demo.Place{NoDashboard: c.NoDashboard, Program: typed()}
		s.parts, s.sweepEvery = d.Parts(), demo.Sweep
		if own {
			at.DB = c.DB
			s.KeepHistory = cmp.Or(s.KeepHistory, new(demo.HistoryRetention))
		}
		quiet := *p
		quiet.log = demo.Log(p.log)
		s.program = &quiet
		s.afterReady = func(ctx context.Context, _ *holdfast.Engine, url string) error {
			at.URL = url
			if err := d.Tell(ctx, at); err != nil {
				return err
			}
			return d.Work(ctx)
		}
	}
	return s.run(ctx)
}

// Run runs the server.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	loopback, err := isLoopback(c.Listen)
	if err != nil {
		return err
	}
	if c.RateLimit < 0 {
		return misuse("--rate-limit must not be negative, got %d", c.RateLimit)
	}
	s := server{program: p, serverFlags: c.serverFlags, databaseFlags: c.databaseFlags, noMigrate: c.NoMigrate, api: httpapi.Options{Rate: c.RateLimit}}
	if c.TLSCert+c.TLSKey+c.TLSClientCA != "" {
		if s.tls, err = tlsfiles.Server(tlsfiles.Files{Cert: c.TLSCert, Key: c.TLSKey, CA: c.TLSClientCA}, s.log); err != nil {
			return err
		}
	}
	if s.api.OIDC, err = c.issuer(); err != nil {
		return err
	}
	if c.AllowFrom != nil {
		if s.api.AllowFrom, err = networks("--allow-from", *c.AllowFrom); err != nil {
			return err
		}
		if len(s.api.AllowFrom) == 0 {
			return misuse("--allow-from is empty, which would accept requests from everywhere: list networks, or omit it")
		}
		p.log.Info("only some networks may use the server", "networks", s.api.AllowFrom)
	}
	if s.api.TrustedProxies, err = networks("--trusted-proxy", c.TrustedProxy); err != nil {
		return err
	}
	if !loopback && s.api.OIDC == nil {
		if path, ok := c.sqlitePath(); ok && isMissing(path) {
			return s.noValidKey()
		}
		s.check = s.requireValidKey
	}
	return s.run(ctx)
}

// networks parses the networks of a flag.
func networks(flag, list string) (all []netip.Prefix, err error) {
	for _, text := range fields(list) {
		n, err := keys.ParseNetwork(text)
		if err != nil {
			return nil, misuse("%s: %v", flag, err)
		}
		all = append(all, n)
	}
	return all, nil
}

func (s server) noValidKey() error {
	return misuse("--listen %s may be reachable from other machines, but no valid API key exists: create one first with \"holdfast keys create --role admin\", or listen on 127.0.0.1", s.Listen)
}

// requireValidKey refuses to listen on a public address while no valid API key exists and no tokens are accepted,
// because no request could succeed.
func (s server) requireValidKey(ctx context.Context, hf *holdfast.Engine) error {
	yes, err := keys.Any(ctx, engine.Of(hf))
	if err == nil && !yes {
		err = s.noValidKey()
	}
	return err
}

// server is an engine with its HTTP API.
type server struct {
	*program
	serverFlags
	databaseFlags
	tls        *tls.Config // nil for plain HTTP
	noMigrate  bool
	parts      []holdfast.Part
	sweepEvery time.Duration // 0 means --janitor-every
	api        httpapi.Options
	// check may refuse to serve the engine. Nil accepts any engine.
	check func(context.Context, *holdfast.Engine) error
	// afterReady runs once the server is ready, at the URL. Its error stops the server.
	afterReady func(ctx context.Context, engine *holdfast.Engine, url string) error
}

// run serves until ctx is cancelled. It listens on the address before it opens the database,
// so that a second server started by mistake changes nothing.
func (s server) run(ctx context.Context) error {
	if s.ShutdownTimeout < 0 {
		return misuse("--shutdown-timeout must not be negative, got %s", s.ShutdownTimeout)
	}
	if s.JanitorEvery < 0 || s.JanitorStuckAfter < 0 {
		return misuse("--janitor-every and --janitor-stuck-after must not be negative, got %s and %s", s.JanitorEvery, s.JanitorStuckAfter)
	}
	if s.KeepRuns < 0 || s.KeepRunKeys < 0 {
		return misuse("--keep-runs and --keep-run-keys must not be negative, got %s and %s", s.KeepRuns, s.KeepRunKeys)
	}
	if s.KeepBatches != nil && *s.KeepBatches != 0 && *s.KeepBatches < time.Millisecond {
		return misuse("--keep-batches must be 0s or at least 1ms, got %s", *s.KeepBatches)
	}
	if err := s.options(); err != nil {
		return err
	}
	if s.KeepHistory == nil || s.KeepBatches == nil {
		s.parts = append(s.parts, defaultRetention{s.log, s.KeepHistory == nil, s.KeepBatches == nil})
	}
	if s.KeepBatches != nil {
		s.parts = append(s.parts, batch.Retention(*s.KeepBatches))
	}
	var keep time.Duration
	if s.KeepHistory != nil {
		if keep = *s.KeepHistory; keep != 0 && keep < retention.Shortest {
			return misuse("--keep-history must be 0s or at least %s, got %s", retention.Shortest, keep)
		}
	}
	kinds, err := scopeKinds(s.ScopeKind)
	if err != nil {
		return err
	}
	s.parts = append(s.parts, kinds)
	for _, module := range s.JanitorModule {
		s.parts = append(s.parts, lifecycle.ModuleJanitor(module))
	}
	if s.api.EntityTables, err = entityTables(s.EntityTable); err != nil {
		return err
	}
	if s.api.Quotas, err = quotas(s.Quota); err != nil {
		return err
	}
	trustRoots()
	traces, err := telemetry.Start(ctx, s.api.Version, s.log)
	if err != nil {
		return err
	}
	defer s.flush(ctx, traces)
	s.api.Traces = traces.Provider
	db, err := s.open()
	if err != nil {
		return err
	}
	ln, err := listen(ctx, s.Listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	scheme := "http"
	if s.tls != nil {
		ln, scheme = tls.NewListener(ln, s.tls), "https"
	}
	store, err := s.store(s.Artifacts)
	if err != nil {
		return err
	}
	if store != nil {
		s.parts = append(s.parts, batch.Artifacts(store))
	}
	if s.KeepRuns > 0 {
		s.parts = append(s.parts, run.Retention(s.KeepRuns))
	}
	if s.KeepRunKeys > 0 {
		s.parts = append(s.parts, run.KeyRetention(s.KeepRunKeys))
	}
	api := httpapi.New(s.api)
	engine, err := holdfast.Open(ctx, db, holdfast.Config{Log: s.log, NoMigrate: s.noMigrate, SweepEvery: cmp.Or(s.sweepEvery, s.JanitorEvery), HistoryRetention: keep},
		append(s.parts, lifecycle.StuckAfter(s.JanitorStuckAfter), stream.Feed(stream.FeedOptions{}), api)...)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if s.check != nil {
		if err := s.check(ctx, engine); err != nil {
			return errors.Join(unlessStopped(ctx, err), engine.Close())
		}
	}
	serving, end := context.WithCancel(ctx)
	defer end()
	stop := background(ctx, engine, end)
	defer stop()
	err = s.until(serving, engine, scheme+"://"+ln.Addr().String(), func(ctx context.Context) error {
		return api.Serve(ctx, ln, s.ShutdownTimeout)
	})
	if err := errors.Join(err, stop(), engine.Close()); err != nil {
		return err
	}
	s.log.Info("stopped")
	return nil
}

// keepByDefault is how long histories and the items of ended batches are kept without a setting.
const keepByDefault = 30 * 24 * time.Hour

// defaultRetention deletes what no setting keeps, except in a database that was in use before a server decided that.
type defaultRetention struct {
	log                *slog.Logger
	histories, batches bool // have no setting
}

func (p defaultRetention) Register(ctx context.Context, e *holdfast.Engine) error {
	deletes, err := retention.ByDefault(ctx, engine.Of(e))
	if err != nil {
		return err
	}
	if !deletes {
		if p.histories {
			p.log.Info("histories are kept forever: set --keep-history to delete old ones")
		}
		if p.batches {
			p.log.Info("items of batches are kept forever: set --keep-batches to delete old ones")
		}
		return nil
	}
	if p.histories {
		engine.Of(e).RetainHistory(keepByDefault)
	}
	if p.batches {
		return batch.Retention(keepByDefault).Register(ctx, e)
	}
	return nil
}

// options sets the API options from the flags.
func (s *server) options() (err error) {
	s.api.Log, s.api.Version = s.log, build().Version
	if !s.NoDashboard {
		s.api.Dashboard = web.Handler()
	}
	if s.api.SecretKeys, err = secretKeys(s.SecretKey); err != nil {
		return err
	}
	for _, text := range fields(s.AllowPrivate) {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return misuse("--allow-private must name networks such as 10.1.0.0/16, got %q", text)
		}
		s.api.AllowPrivate = append(s.api.AllowPrivate, n)
	}
	return nil
}

// secretKeys parses secret keys in base64 or hex. Its errors never contain one.
func secretKeys(list string) (all [][]byte, err error) {
	for i, text := range fields(list) {
		key, err := hex.DecodeString(text)
		if err != nil {
			key, err = base64.StdEncoding.DecodeString(text)
		}
		if err != nil || len(key) != seal.KeySize {
			return nil, misuse("--secret-key: secret key %d must be %d bytes in base64 or hex", i+1, seal.KeySize)
		}
		all = append(all, key)
	}
	return all, nil
}

// fields splits a list at its commas.
func fields(list string) (all []string) {
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}

// flush sends the last spans.
func (s *server) flush(ctx context.Context, traces *telemetry.Traces) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := traces.Stop(ctx); err != nil {
		s.log.Warn("failed to export the last spans", "error", err)
	}
}

// background runs the engine's loops until stop is called, which returns the error with which they ended. Calling stop twice is
// harmless. ended is called when the loops have ended, also if they did so by themselves.
func background(ctx context.Context, engine *holdfast.Engine, ended func()) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	var err error
	done.Go(func() { err = engine.Run(ctx); ended() })
	return func() error { cancel(); done.Wait(); return err }
}

// until serves, prints the ready line, runs afterReady, and waits until serving ends. A
// failure of afterReady stops serving, and a failure of serving cancels afterReady.
func (s server) until(ctx context.Context, engine *holdfast.Engine, url string, serve func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		err := serve(ctx)
		stop()
		served <- err
	}()
	err := s.ready(ctx, engine, url)
	if err == nil && s.afterReady != nil {
		err = unlessStopped(ctx, s.afterReady(ctx, engine, url))
	}
	if err != nil {
		stop()
	}
	return errors.Join(err, <-served)
}

// ready prints the line that scripts wait for.
func (s server) ready(ctx context.Context, engine *holdfast.Engine, url string) error {
	status, err := engine.Status(ctx)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	s.log.Info("serving", "url", url, "database", status.Database, "schema", status.Schema)
	_, err = fmt.Fprintf(s.stdout, "holdfast ready url=%s\n", url)
	return err
}

// unlessStopped drops an error that was caused by the cancellation of ctx, because a stop is
// not a failure. The error of an interrupted statement depends on how far it had come, so
// several errors count.
func unlessStopped(ctx context.Context, err error) error {
	cut := errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrOutcomeUnknown)
	if ctx.Err() != nil && cut {
		return nil
	}
	return err
}
