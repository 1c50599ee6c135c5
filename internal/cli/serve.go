package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpapi"
)

// Run runs the server for development.
func (c *devCommand) Run(ctx context.Context, p *program) error {
	err := checkListen(c.Listen, "dev asks for no keys, so it listens on 127.0.0.1, [::1] or localhost only")
	if err != nil {
		return err
	}
	s := server{program: p, serverFlags: c.serverFlags, databaseFlags: c.databaseFlags}
	if c.Demo {
		d := newDemo(p, c.databaseFlags)
		s.parts, s.sweepEvery = append(s.parts, d.shop), demoSweep
		s.story = func(ctx context.Context, _ *holdfast.Engine) error { return d.tell(ctx) }
	}
	return s.run(ctx)
}

// Run runs the server.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	err := checkListen(c.Listen, "without API keys, which come with the HTTP API, it would serve anyone; listen on 127.0.0.1 and put a proxy in front that checks who calls")
	if err != nil {
		return err
	}
	s := server{program: p, serverFlags: c.serverFlags, databaseFlags: c.databaseFlags, noMigrate: c.NoMigrate}
	return s.run(ctx)
}

// server is an engine with its door.
type server struct {
	*program
	serverFlags
	databaseFlags
	noMigrate  bool
	parts      []holdfast.Part
	sweepEvery time.Duration // 0 is the engine's default
	// story runs once the server is ready. Its error ends the server.
	story func(context.Context, *holdfast.Engine) error
}

// run serves until ctx ends. The address is taken before the database is
// touched, so that a second server started by mistake changes nothing.
func (s server) run(ctx context.Context) error {
	if s.ShutdownTimeout < 0 {
		return misuse("--shutdown-timeout is negative")
	}
	db, err := s.open()
	if err != nil {
		return err
	}
	ln, err := listen(ctx, s.Listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	engine, err := holdfast.Open(ctx, db, holdfast.Config{Log: s.log, NoMigrate: s.noMigrate, SweepEvery: s.sweepEvery}, s.parts...)
	if err != nil {
		return unlessStopped(ctx, err)
	}
	stop := background(ctx, engine)
	defer stop()
	api := httpapi.New(engine, httpapi.Options{Log: s.log, Version: build().Version})
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
