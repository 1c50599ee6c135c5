package pgtest

import (
	"context"
	"errors"
	"fmt"
)

// longestTemplate leaves room in an identifier's 63 bytes for the temporary name of a template.
const longestTemplate = 48

// ensureTemplate creates the template unless it exists.
//
// It is created once, across all processes that use the server: an advisory lock admits one at a
// time, and later ones find it. It exists completely or not at all: it is created under another
// name and renamed last, so a process that crashes half-way leaves only a database that the next
// one drops first.
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

// lock takes the template's lock for this connection, so it ends with the connection at the latest.
func (s *server) lock(ctx context.Context, name string) (unlock func(), err error) {
	const key = "hashtextextended('holdfast template ' || $1::text, 0)"
	if _, err := s.conn.Exec(ctx, "SELECT pg_advisory_lock("+key+")", name); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return func() {
		_, _ = s.conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock("+key+")", name)
	}, nil
}

// makeTemplate requires the template's lock.
func (s *server) makeTemplate(ctx context.Context, opts Options) error {
	making := opts.Template + "_making"
	if err := s.drop(ctx, making); err != nil {
		return fmt.Errorf("drop an incomplete template: %w", err)
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

// seal refuses new connections, ends existing ones, and renames the template: a database with a
// session can be neither renamed nor cloned.
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
