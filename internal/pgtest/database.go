package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Options define the contents of a fresh database. The zero value is an empty one.
type Options struct {
	// Template names a database to clone. Prepare fills it at its first use, and it stays on the
	// server, so the name must change with what Prepare does: put a hash of the schema in it. At
	// most 48 bytes.
	Template string

	// Prepare fills the template. It must have closed its connections when it returns. Nil leaves
	// the template empty.
	Prepare func(ctx context.Context, url string) error
}

// Database creates a fresh database on the shared server and returns its connection string, in the
// form of [Shared]'s, and a function that drops it even if clients are connected. The function may
// be called twice.
func Database(ctx context.Context, opts Options) (url string, drop func(), err error) {
	s, err := connect(ctx)
	if err != nil {
		return "", nil, err
	}
	defer s.release(ctx)
	source := "template0" // unlike template1, it accepts no connections
	if opts.Template != "" {
		source = opts.Template
		if err := s.ensureTemplate(ctx, opts); err != nil {
			return "", nil, fmt.Errorf("template %s: %w", source, err)
		}
	}
	return s.clone(ctx, source)
}

// A server is a superuser's connection to the shared server. It is always to the database postgres,
// because an advisory lock belongs to one database.
type server struct {
	url  string
	conn *pgx.Conn
}

// idle are connections that wait for their next use: a test creates and drops a database, and a
// connection costs the server as much as either.
var idle = make(chan *server, 4)

func connect(ctx context.Context) (*server, error) {
	select {
	case s := <-idle:
		if s.conn.Ping(ctx) == nil {
			return s, nil
		}
		s.conn.Close(ctx)
	default:
	}
	url, err := Shared(ctx)
	if err != nil {
		return nil, err
	}
	if url, err = withDatabase(url, "postgres"); err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect to the test server: %w", err)
	}
	return &server{url: url, conn: conn}, nil
}

// release stores the connection for its next use, or closes it, even when ctx is done.
func (s *server) release(ctx context.Context) {
	if !s.conn.IsClosed() {
		select {
		case idle <- s:
			return
		default:
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	s.conn.Close(ctx)
}

// CloseIdle closes the connections that wait for their next use. A test program calls it after its tests: a connection
// whose last write was slow has a goroutine.
func CloseIdle() {
	for {
		select {
		case s := <-idle:
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			s.conn.Close(ctx)
			cancel()
		default:
			return
		}
	}
}

// Closing returns a test program that calls [CloseIdle] after its tests.
func Closing(m interface{ Run() int }) interface{ Run() int } { return closing{m} }

type closing struct{ m interface{ Run() int } }

func (c closing) Run() int {
	defer CloseIdle()
	return c.m.Run()
}

// exec runs a statement that names one or more databases.
func (s *server) exec(ctx context.Context, format string, names ...string) error {
	quoted := make([]any, len(names))
	for i, name := range names {
		quoted[i] = pgx.Identifier{name}.Sanitize()
	}
	_, err := s.conn.Exec(ctx, fmt.Sprintf(format, quoted...))
	return err
}

func (s *server) clone(ctx context.Context, source string) (string, func(), error) {
	name := randomName()
	url, err := withDatabase(s.url, name)
	if err != nil {
		return "", nil, err
	}
	if err := s.create(ctx, name, source); err != nil {
		return "", nil, fmt.Errorf("clone %s: %w", source, err)
	}
	return url, func() { dropDatabase(name) }, nil
}

func (s *server) create(ctx context.Context, name, source string) error {
	return whileInUse(ctx, func() error {
		return s.exec(ctx, "CREATE DATABASE %s TEMPLATE %s", name, source)
	})
}

func (s *server) drop(ctx context.Context, name string) error {
	return s.exec(ctx, "DROP DATABASE IF EXISTS %s WITH (FORCE)", name)
}

// dropDatabase returns no error: a test that is over cannot do anything about a database that
// stays, and a throwaway server goes anyway.
func dropDatabase(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := connect(ctx)
	if err != nil {
		return
	}
	defer s.release(ctx)
	_ = s.drop(ctx, name)
}

func randomName() string {
	var id [8]byte
	rand.Read(id[:]) // never fails
	return "hf_" + hex.EncodeToString(id[:])
}

// whileInUse repeats an operation that PostgreSQL refuses because the database has a session: one
// that was just closed, or autovacuum. The server itself waits five seconds before it refuses.
func whileInUse(ctx context.Context, do func() error) error {
	var err error
	for range 5 {
		if err = do(); !isInUse(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	return err
}

func isInUse(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "55006"
}

// Exec runs one statement on a database.
func Exec(ctx context.Context, url, text string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, text)
	return err
}
