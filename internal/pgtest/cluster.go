package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// startLimit limits one start of a server, from the order to the first response.
const startLimit = time.Minute

// A Cluster is one PostgreSQL server with its own data, for a test that stops the server or needs
// it exclusively. Most tests use [Database] instead.
//
// A Cluster is safe for concurrent use.
type Cluster struct {
	from    installation
	durable bool

	mu     sync.Mutex
	sup    *supervisor
	port   int
	closed bool
}

// Start creates a cluster and returns when it responds. The caller calls [Cluster.Close]; if this
// process crashes first, nothing is left behind either.
//
// Cancelling ctx ends the start, not a cluster that was returned.
func Start(ctx context.Context) (*Cluster, error) {
	return (&Cluster{}).startIn(ctx, tempRoot())
}

// StartDurable is [Start] for a benchmark: the data is in a new directory below parent, which should
// be on a disk, and commits are as durable as with PostgreSQL's default settings. A process of root
// needs a parent that other users can enter and write to.
func StartDurable(ctx context.Context, parent string) (*Cluster, error) {
	return (&Cluster{durable: true}).startIn(ctx, parent)
}

func (c *Cluster) startIn(ctx context.Context, parent string) (*Cluster, error) {
	from, err := findServer(ctx)
	if err != nil {
		return nil, err
	}
	c.from = from
	if c.sup, err = newSupervisor(parent, "holdfast-pg", signals{"INT", "QUIT"}, c.command); err != nil {
		return nil, err
	}
	if err := c.create(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// command returns the server's command line. All settings are in the data directory, where a second
// attempt can change them.
func (c *Cluster) command(dir string) []string {
	return []string{c.from.program("postgres"), "-D", filepath.Join(dir, "data")}
}

func (c *Cluster) create(ctx context.Context) error {
	if err := c.initdb(ctx); err != nil {
		return err
	}
	if err := c.configure(c.settings()); err != nil {
		return err
	}
	return c.boot(ctx, c.takePort)
}

// initdb requires byte-wise comparison and UTF-8. C.UTF-8 gives both; plain C is for systems that
// do not have it.
func (c *Cluster) initdb(ctx context.Context) error {
	var failures []error
	for _, locale := range []string{"C.UTF-8", "C"} {
		cmd := unprivileged(exec.CommandContext(ctx, c.from.program("initdb"),
			"-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8",
			"--locale="+locale, "--no-sync", "--no-instructions"))
		output, err := cmd.CombinedOutput()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		failures = append(failures, fmt.Errorf("initdb: %w: %s", err, lastLine(output)))
	}
	return errors.Join(failures...)
}

// settings trade safety after a power failure, which no test needs, for speed, unless the cluster is
// durable. Settings that a test could notice (synchronous_commit, autovacuum) are as in production.
func (c *Cluster) settings() []string {
	lines := []string{
		"cluster_name = '" + c.name() + "'",
		"listen_addresses = '127.0.0.1'",
		"unix_socket_directories = ''",
		"synchronous_commit = on",
		"autovacuum = on",
		"max_connections = 300",
		"max_prepared_transactions = 10",
		"shared_buffers = '256MB'",
		"max_wal_size = '2GB'",
		"jit = off", // as in every session of an engine: compiling a plan over many partitions takes seconds
		"timezone = 'UTC'",
		"log_timezone = 'UTC'",
		"logging_collector = off",
	}
	if !c.durable {
		lines = append(lines, "fsync = off", "full_page_writes = off")
	}
	if c.from.hasLibrary("pg_stat_statements") {
		lines = append(lines, "shared_preload_libraries = 'pg_stat_statements'")
	}
	return lines
}

// configure appends settings to the server's file; the last of several counts.
func (c *Cluster) configure(lines []string) error {
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	_, err = f.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

func (c *Cluster) takePort() error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	c.port = port
	return c.configure([]string{"port = " + strconv.Itoa(port)})
}

// boot starts the server, up to three times if it ends at once: another process may have taken the
// port.
func (c *Cluster) boot(ctx context.Context, before func() error) error {
	var err error
	for range 3 {
		if err = before(); err != nil {
			return err
		}
		if err = startAndWait(ctx, c.sup, c.responds); !errors.Is(err, errEnded) {
			return err
		}
	}
	return err
}

// responds checks that the server at our address is ours and not one that took the port before us.
func (c *Cluster) responds(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.url())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var name string
	if err := conn.QueryRow(ctx, "SHOW cluster_name").Scan(&name); err != nil {
		return err
	}
	if name != c.name() {
		return fmt.Errorf("port %d belongs to the server %q", c.port, name)
	}
	return nil
}

// URL returns the URL of the superuser postgres on the database postgres. It does not change over
// [Cluster.Restart].
func (c *Cluster) URL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.url()
}

// url requires mu, or a cluster that is still being created.
func (c *Cluster) url() string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", loopback(c.port))
}

// Addr returns the server's address, host and port.
func (c *Cluster) Addr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return loopback(c.port)
}

// Installed reports whether PostgreSQL was installed for this cluster.
func (c *Cluster) Installed() bool { return c.from.installed }

// name identifies this cluster, in SQL and in a list of processes.
func (c *Cluster) name() string { return filepath.Base(c.sup.dir) }

func (c *Cluster) data() string { return filepath.Join(c.sup.dir, "data") }

// Stop stops the server and retains its data. The modes are those of pg_ctl: "fast" ends sessions
// and shuts down in order, "immediate" drops everything, so that the next start recovers as after a
// crash. It is not an error if the server is not running.
func (c *Cluster) Stop(mode string) error {
	signal, ok := map[string]string{"fast": "INT", "immediate": "QUIT"}[mode]
	if !ok {
		return fmt.Errorf("stop: unknown mode %q", mode)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	return c.sup.stop(signal)
}

// Restart starts the server again on the same port and data, and returns when it responds. A
// running server is stopped first, as by "fast".
func (c *Cluster) Restart() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errors.New("restart: the cluster is closed")
	}
	if err := c.sup.stop("INT"); err != nil {
		return err
	}
	return c.boot(context.Background(), func() error { return nil })
}

// Close stops the server and removes its data. It may be called twice.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	return c.sup.close()
}
