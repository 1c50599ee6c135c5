package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
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
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// Run runs the server for development.
func (c *devCommand) Run(ctx context.Context, p *program) error {
	err := checkListen(c.Listen, "dev asks for no keys, so it listens on 127.0.0.1, [::1] or localhost only")
	if err != nil {
		return err
	}
	s := server{program: p, serverFlags: c.serverFlags, databaseFlags: c.databaseFlags, api: httpapi.Options{NoKeys: true, Declare: true}}
	if c.SecretKey == "" { // it protects nothing here, like all of dev
		key := sha256.Sum256([]byte("holdfast dev"))
		s.SecretKey = hex.EncodeToString(key[:])
	}
	if c.AllowPrivate == "" {
		s.AllowPrivate = "127.0.0.0/8,::1/128"
	}
	if c.Demo {
		d := demo.New(p.stdout, demoCallers(p.env, c.databaseFlags, ""))
		s.parts, s.sweepEvery = d.Parts(), demo.Sweep
		s.story = func(ctx context.Context, _ *holdfast.Engine) error { return d.Tell(ctx) }
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
		return misuse("--rate-limit is negative")
	}
	s := server{program: p, serverFlags: c.serverFlags, databaseFlags: c.databaseFlags, noMigrate: c.NoMigrate, api: httpapi.Options{Rate: c.RateLimit}}
	if !loopback {
		if path, ok := c.sqlitePath(); ok && isMissing(path) {
			return s.nobodyHasAKey()
		}
		s.check = s.someoneHasAKey
	}
	return s.run(ctx)
}

func (s server) nobodyHasAKey() error {
	return misuse("--listen %s can be reached from other machines, or might be, and there is no API key that works: make one first with \"holdfast keys create --role admin\", or listen on 127.0.0.1", s.Listen)
}

// someoneHasAKey refuses to listen for other machines where nobody has a key: it is
// then a mistake, and not a server.
func (s server) someoneHasAKey(ctx context.Context, hf *holdfast.Engine) error {
	yes, err := keys.Any(ctx, engine.Of(hf))
	if err == nil && !yes {
		err = s.nobodyHasAKey()
	}
	return err
}

// server is an engine with its door.
type server struct {
	*program
	serverFlags
	databaseFlags
	noMigrate  bool
	parts      []holdfast.Part
	sweepEvery time.Duration // 0 is the engine's default
	api        httpapi.Options
	// check may refuse to serve an engine; nil does not.
	check func(context.Context, *holdfast.Engine) error
	// story runs once the server is ready. Its error ends the server.
	story func(context.Context, *holdfast.Engine) error
}

// run serves until ctx ends. The address is taken before the database is
// touched, so that a second server started by mistake changes nothing.
func (s server) run(ctx context.Context) error {
	if s.ShutdownTimeout < 0 {
		return misuse("--shutdown-timeout is negative")
	}
	if s.JanitorEvery < 0 || s.JanitorStuckAfter < 0 {
		return misuse("--janitor-every and --janitor-stuck-after are not negative")
	}
	if s.KeepRuns < 0 {
		return misuse("--keep-runs is negative")
	}
	if err := s.options(); err != nil {
		return err
	}
	kinds, err := scopeKinds(s.ScopeKind)
	if err != nil {
		return err
	}
	s.parts = append(s.parts, kinds)
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
	engine, err := holdfast.Open(ctx, db, holdfast.Config{Log: s.log, NoMigrate: s.noMigrate, SweepEvery: cmp.Or(s.sweepEvery, s.JanitorEvery), StuckAfter: s.JanitorStuckAfter},
		append(s.parts, stream.Feed(stream.FeedOptions{}), httpapi.Handlers(s.api))...)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	if s.check != nil {
		if err := s.check(ctx, engine); err != nil {
			return errors.Join(unlessStopped(ctx, err), engine.Close())
		}
	}
	api := httpapi.New(engine, s.api)
	stop := background(ctx, engine)
	defer stop()
	err = s.until(ctx, engine, "http://"+ln.Addr().String(), func(ctx context.Context) error {
		return api.Serve(ctx, ln, s.ShutdownTimeout)
	})
	stop()
	if err := errors.Join(err, engine.Close()); err != nil {
		return err
	}
	s.log.Info("stopped")
	return nil
}

// options reads what the flags say of the door.
func (s *server) options() (err error) {
	s.api.Log, s.api.Version = s.log, build().Version
	if s.api.SecretKeys, err = secretKeys(s.SecretKey); err != nil {
		return err
	}
	for _, text := range fields(s.AllowPrivate) {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return misuse("--allow-private: %q is no network, such as 10.1.0.0/16", text)
		}
		s.api.AllowPrivate = append(s.api.AllowPrivate, n)
	}
	return nil
}

// secretKeys reads keys in base64 or hex. None of what it cannot read is told.
func secretKeys(list string) (all [][]byte, err error) {
	for i, text := range fields(list) {
		key, err := hex.DecodeString(text)
		if err != nil {
			key, err = base64.StdEncoding.DecodeString(text)
		}
		if err != nil || len(key) != seal.KeySize {
			return nil, misuse("--secret-key: number %d is not %d bytes in base64 or hex", i+1, seal.KeySize)
		}
		all = append(all, key)
	}
	return all, nil
}

// fields are the parts of a list with commas.
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
		s.log.Warn("the last spans were lost", "error", err)
	}
}

// background runs the engine's loops until the function that it returns is
// called; calling it twice is harmless.
func background(ctx context.Context, engine *holdfast.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { _ = engine.Run(ctx) }) // it fails only if it runs already
	return func() { cancel(); done.Wait() }
}

// until serves, says that it does, tells the story, and waits for the end. A
// story that fails ends the serving, and serving that fails ends the story.
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
	if err == nil && s.story != nil {
		err = unlessStopped(ctx, s.story(ctx, engine))
	}
	if err != nil {
		stop()
	}
	return errors.Join(err, <-served)
}

// ready prints the one line that scripts wait for.
func (s server) ready(ctx context.Context, engine *holdfast.Engine, url string) error {
	status, err := engine.Status(ctx)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	s.log.Info("serving", "url", url, "database", status.Database, "schema", status.Schema)
	_, err = fmt.Fprintf(s.stdout, "holdfast ready url=%s\n", url)
	return err
}

// unlessStopped drops the error that a stop in between has caused: to be
// stopped is no failure. What a statement that was cut short reports depends on
// how far it had come.
func unlessStopped(ctx context.Context, err error) error {
	cut := errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrOutcomeUnknown)
	if ctx.Err() != nil && cut {
		return nil
	}
	return err
}
