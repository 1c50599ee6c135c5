package pgtest

import (
	"context"
	"errors"
	"fmt"
)

// longestTemplate leaves room in an identifier's 63 bytes for the name that a
// template has while it is made.
const longestTemplate = 48

// ensureTemplate makes the template unless it is there.
//
// It is made once, over all processes that use the server: an advisory lock
// lets one in at a time, and who comes later finds it. It is there whole or not
// at all: it is made under another name and renamed last, so a process that
// dies half-way leaves only what the next one drops before it begins.
func (s *server) ensureTemplate(ctx context.Context, opts Options) error {
	if len(opts.Template) > longestTemplate {
		return fmt.Errorf("the name is longer than %d bytes", longestTemplate)
	}
	if there, err := s.has(ctx, opts.Template); there || err != nil {
		return err
	}
	unlock, err := s.lock(ctx, opts.Template)
	if err != nil {
		return err
	}
	defer unlock()
	if there, err := s.has(ctx, opts.Template); there || err != nil {
		return err
	}
	return s.makeTemplate(ctx, opts)
}

func (s *server) has(ctx context.Context, name string) (there bool, err error) {
	err = s.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there)
	return there, err
}

// lock takes the template's lock for this connection, so it ends with the
// connection at the latest.
func (s *server) lock(ctx context.Context, name string) (unlock func(), err error) {
	const key = "hashtextextended('holdfast template ' || $1::text, 0)"
	if _, err := s.conn.Exec(ctx, "SELECT pg_advisory_lock("+key+")", name); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return func() {
		_, _ = s.conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock("+key+")", name)
	}, nil
}

// REQUIRES: the template's lock.
func (s *server) makeTemplate(ctx context.Context, opts Options) error {
	making := opts.Template + "_making"
	if err := s.drop(ctx, making); err != nil {
		return fmt.Errorf("drop a half-made one: %w", err)
	}
	if err := s.create(ctx, making, "template0"); err != nil {
		return err
	}
	err := s.fill(ctx, making, opts.Prepare)
	if err == nil {
		err = s.seal(ctx, making, opts.Template)
	}
	if err != nil {
		return errors.Join(err, s.drop(context.WithoutCancel(ctx), making))
	}
	return nil
}

func (s *server) fill(ctx context.Context, name string, prepare func(context.Context, string) error) error {
	if prepare == nil {
		return nil
	}
	url, err := withDatabase(s.url, name)
	if err != nil {
		return err
	}
	if err := prepare(ctx, url); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return nil
}

// seal lets nobody in any more, sends away who stayed, and gives the template
// its name: a database with a session can be neither renamed nor cloned.
func (s *server) seal(ctx context.Context, making, name string) error {
	if err := s.exec(ctx, "ALTER DATABASE %s WITH ALLOW_CONNECTIONS false", making); err != nil {
		return err
	}
	const leave = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1"
	if _, err := s.conn.Exec(ctx, leave, making); err != nil {
		return err
	}
	return whileInUse(ctx, func() error {
		return s.exec(ctx, "ALTER DATABASE %s RENAME TO %s", making, name)
	})
}
