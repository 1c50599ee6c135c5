package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Bouncer starts PgBouncer in transaction mode before the server of targetURL and returns the URL
// of the same database through it. Every client becomes the user of targetURL. stop ends it, and
// may be called twice; if this process crashes first, nothing is left behind.
//
// Cancelling ctx ends the start, not a bouncer that was returned.
func Bouncer(ctx context.Context, targetURL string) (url string, stop func(), err error) {
	target, err := pgx.ParseConfig(targetURL)
	if err != nil {
		return "", nil, fmt.Errorf("bouncer: %w", err)
	}
	program, err := findBouncer(ctx)
	if err != nil {
		return "", nil, err
	}
	for range 3 { // another process may take the free port
		url, stop, err = startBouncer(ctx, program, target)
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return url, stop, err
}

func findBouncer(ctx context.Context) (string, error) {
	if !supported {
		return "", fmt.Errorf("no PgBouncer on this system")
	}
	if path, ok := locateBouncer(); ok {
		return path, nil
	}
	err := Install(ctx, "pgbouncer", func() bool { _, ok := locateBouncer(); return ok })
	if err != nil {
		return "", fmt.Errorf("no PgBouncer (%w): install the package pgbouncer", err)
	}
	path, ok := locateBouncer()
	if !ok {
		return "", fmt.Errorf("no PgBouncer, though its package is installed: put it on PATH")
	}
	return path, nil
}

func locateBouncer() (string, bool) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

func startBouncer(ctx context.Context, program string, target *pgx.ConnConfig) (string, func(), error) {
	port, err := FreePort()
	if err != nil {
		return "", nil, err
	}
	// PgBouncer has no state worth an orderly shutdown, and its reaction to TERM and QUIT differs
	// between versions.
	k, err := newSupervisor(tempRoot(), "holdfast-bouncer", signals{"KILL", "KILL"}, func(dir string) []string {
		return []string{program, filepath.Join(dir, "pgbouncer.ini")}
	})
	if err != nil {
		return "", nil, err
	}
	through := bouncerURL(port, target)
	if err := runBouncer(ctx, k, bouncerConfig(port, target), through); err != nil {
		return "", nil, errors.Join(fmt.Errorf("pgbouncer: %w", err), k.close())
	}
	return through, closer(k), nil
}

func runBouncer(ctx context.Context, k *supervisor, config, through string) error {
	path := filepath.Join(k.dir, "pgbouncer.ini")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return err
	}
	if err := chown(path); err != nil {
		return err
	}
	return startAndWait(ctx, k, func(ctx context.Context) error { return ping(ctx, through) })
}

func ping(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return conn.Ping(ctx)
}

func bouncerURL(port int, target *pgx.ConnConfig) string {
	through := url.URL{
		Scheme:   "postgres",
		User:     url.User(target.User),
		Host:     loopback(port),
		Path:     "/" + target.Database,
		RawQuery: "sslmode=disable",
	}
	return through.String()
}

// bouncerConfig configures all databases (*), so that a test can reach those that it creates later.
func bouncerConfig(port int, target *pgx.ConnConfig) string {
	server := fmt.Sprintf("host=%s port=%d user=%s", quote(target.Host), target.Port, quote(target.User))
	if target.Password != "" {
		server += " password=" + quote(target.Password)
	}
	return strings.Join([]string{
		"[databases]",
		"* = " + server,
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		fmt.Sprintf("listen_port = %d", port),
		"unix_socket_dir =",
		"auth_type = any",
		"pool_mode = transaction",
		"max_client_conn = 200",
		"default_pool_size = 10",
		"ignore_startup_parameters = extra_float_digits",
		"",
	}, "\n")
}

func quote(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" }
