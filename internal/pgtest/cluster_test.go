package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

func TestClusterAnswers(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	conn := open(t, c.URL())
	for setting, want := range map[string]string{
		"fsync":                     "off",
		"full_page_writes":          "off",
		"synchronous_commit":        "on",
		"jit":                       "off",
		"autovacuum":                "on",
		"max_connections":           "300",
		"max_prepared_transactions": "10",
		"shared_buffers":            "256MB",
		"unix_socket_directories":   "",
		"server_encoding":           "UTF8",
		"TimeZone":                  "UTC",
	} {
		if got := one(t, conn, "SELECT current_setting($1)", setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if got := one(t, conn, "SELECT current_user || ' ' || current_database()"); got != "postgres postgres" {
		t.Errorf("connected as %q", got)
	}
}

// Verifies that the server of a benchmark has PostgreSQL's own durability, in the given directory.
func TestDurableCluster(t *testing.T) {
	t.Parallel()
	needServer(t)
	const parent = "/tmp" // the server's user can enter it, even if this process is root
	c, err := StartDurable(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	conn := open(t, c.URL())
	for _, setting := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if got := one(t, conn, "SELECT current_setting($1)", setting); got != "on" {
			t.Errorf("%s is %q, want on", setting, got)
		}
	}
	if got := one(t, conn, "SHOW data_directory"); !strings.HasPrefix(got, parent) {
		t.Errorf("the data is in %s, want it below %s", got, parent)
	}
}

func TestClusterKeepsDataOverStopAndRestart(t *testing.T) {
	t.Parallel()
	testlevel.Long(t)
	c := cluster(t)
	url, addr := c.URL(), c.Addr()
	exec1(t, open(t, url), "CREATE TABLE kept (n int)")
	for i, mode := range []string{"fast", "immediate"} {
		exec1(t, open(t, url), "INSERT INTO kept VALUES (1)")
		if err := c.Stop(mode); err != nil {
			t.Fatal(err)
		}
		if err := ping(t.Context(), url); err == nil {
			t.Fatalf("%s: the server responds after Stop", mode)
		}
		if err := c.Restart(); err != nil {
			t.Fatal(err)
		}
		if got := one(t, open(t, url), "SELECT count(*)::text FROM kept"); got != strconv.Itoa(i+1) {
			t.Errorf("%s: got %s rows, want %d", mode, got, i+1)
		}
	}
	if c.URL() != url || c.Addr() != addr {
		t.Errorf("URL changed from %s to %s", url, c.URL())
	}
}

func TestClusterRestartsWhileRunning(t *testing.T) {
	t.Parallel()
	testlevel.Long(t)
	c := cluster(t)
	before := one(t, open(t, c.URL()), "SELECT pg_postmaster_start_time()::text")
	if err := c.Restart(); err != nil {
		t.Fatal(err)
	}
	if after := one(t, open(t, c.URL()), "SELECT pg_postmaster_start_time()::text"); after == before {
		t.Error("the server was not restarted")
	}
}

func TestClusterRefusesAnUnknownStop(t *testing.T) {
	t.Parallel()
	if err := new(Cluster).Stop("gently"); err == nil {
		t.Error("Stop with an unknown mode returned no error")
	}
}

func TestClusterClosesTwice(t *testing.T) {
	t.Parallel()
	testlevel.Long(t)
	c := cluster(t)
	pid := postmaster(t, c.sup.dir)
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !gone(pid) || !absent(c.sup.dir) {
		t.Error("Close left the server or its directory")
	}
	if err := c.Stop("fast"); err != nil {
		t.Errorf("Stop after Close: %v", err)
	}
	if err := c.Restart(); err == nil {
		t.Error("Restart after Close: no error")
	}
}

func TestClusterReportsTheLogOfAFailedStart(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	if err := c.configure([]string{"max_connections = 'many'"}); err != nil {
		t.Fatal(err)
	}
	err := c.Restart()
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "max_connections") {
		t.Errorf("got error %v", err)
	}
}

func TestClusterEndsAStartThatIsCancelled(t *testing.T) {
	t.Parallel()
	testlevel.Long(t)
	needServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
}

// TestClusterGoesWithAKilledProcess verifies that a killed process, which cannot clean up, leaves
// neither a server nor a directory.
func TestClusterGoesWithAKilledProcess(t *testing.T) {
	t.Parallel()
	needServer(t)
	cmd := child(t, "cluster")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(line)
	pid := postmaster(t, dir)
	if gone(pid) {
		t.Fatal("the server of the child process does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it reports that the process was killed
	testkit.Eventually(t, "server gone", func() bool { return gone(pid) })
	testkit.Eventually(t, "directory gone", func() bool { return absent(dir) })
}

// childCluster starts a cluster, prints its address, and waits to be killed.
func childCluster() {
	c, err := Start(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(c.sup.dir)
	select {}
}

func postmaster(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return true
	}
	return p.Signal(syscall.Signal(0)) != nil
}

func absent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
