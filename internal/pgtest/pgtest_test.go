package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"
)

// envChild makes the test binary do one job for a test and nothing else.
const envChild = "HOLDFAST_PGTEST_CHILD"

func TestMain(m *testing.M) {
	switch job := os.Getenv(envChild); job {
	case "":
		os.Exit(m.Run())
	case "cluster":
		childCluster()
	case "template":
		childTemplate()
	default:
		fmt.Println("no such job:", job)
		os.Exit(2)
	}
}

// child returns this test binary as a command for another process.
func child(t *testing.T, job string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(append(os.Environ(), envChild+"="+job), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// needServer skips the test if no server can be started: with a URL given in the environment the
// binaries need not be on this machine.
func needServer(t *testing.T) {
	t.Helper()
	if _, err := findServer(t.Context()); err != nil {
		t.Skip(err)
	}
}

// cluster starts a cluster for this test.
func cluster(t *testing.T) *Cluster {
	t.Helper()
	needServer(t)
	c, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// shared returns the server's URL, for tests that need only a server.
func shared(t *testing.T) string {
	t.Helper()
	if os.Getenv(EnvURL) == "" {
		needServer(t)
	}
	url, err := Shared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return url
}

func open(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec1(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// one returns the single value of a query, as text.
func one(t *testing.T, conn *pgx.Conn, sql string, args ...any) string {
	t.Helper()
	var value string
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}
