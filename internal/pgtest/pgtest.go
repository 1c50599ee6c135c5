// Package pgtest gives tests a real PostgreSQL by itself.
//
// A test asks for a database and gets one that nobody else uses:
//
//	url, drop, err := pgtest.Database(ctx, pgtest.Options{})
//	if err != nil {
//		t.Fatal(err)
//	}
//	defer drop()
//
// The server is the one that HOLDFAST_TEST_POSTGRES_URL names. Without it, the
// first test of a process starts a throwaway cluster from the programs that are
// installed on the machine, and the cluster goes when the process does, however
// that ends. The command pgrun gives one cluster to many processes.
//
// The package knows nothing of testing.T, so that a command may use it too.
package pgtest

import (
	"context"
	"os"
	"sync"
	"time"
)

// EnvURL names the environment variable with the superuser's URL of a server to
// use instead of a throwaway one. Any form that pgx accepts will do.
const EnvURL = "HOLDFAST_TEST_POSTGRES_URL"

// sharedLimit bounds the start of the shared cluster. It is long because
// PostgreSQL may have to be installed first.
const sharedLimit = 10 * time.Minute

// sharedCluster also keeps the cluster reachable: were it collected, the pipe to
// its keeper would close and the server would stop.
var sharedCluster = sync.OnceValues(func() (*Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sharedLimit)
	defer cancel()
	return Start(ctx)
})

// Shared returns the superuser's URL of the server that all tests of this
// process share, and starts the server at the first call.
//
// A cancel of ctx keeps a call from starting; it does not end a start that
// other callers wait for too.
func Shared(ctx context.Context) (string, error) {
	if given := os.Getenv(EnvURL); given != "" {
		return given, nil
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	c, err := sharedCluster()
	if err != nil {
		return "", err
	}
	return c.URL(), nil
}
