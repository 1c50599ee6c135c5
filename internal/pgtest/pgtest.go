// Package pgtest provides tests with a real PostgreSQL server.
//
// A test requests a database and gets one of its own:
//
//	url, drop, err := pgtest.Database(ctx, pgtest.Options{})
//	if err != nil {
//		t.Fatal(err)
//	}
//	defer drop()
//
// The server is the one that HOLDFAST_TEST_POSTGRES_URL names. Without it, the first test of a
// process starts a throwaway cluster from the installed programs, and the cluster is removed when
// the process ends, however it ends. The command pgrun provides one cluster to many processes.
//
// The package does not depend on testing.T, so that a command can use it too.
package pgtest

import (
	"context"
	"os"
	"sync"
	"time"
)

// EnvURL is the environment variable with the superuser's URL of a server to use instead of a
// throwaway one, in any form that pgx accepts.
const EnvURL = "HOLDFAST_TEST_POSTGRES_URL"

// sharedLimit limits the start of the shared cluster. It is long because PostgreSQL may have to be
// installed first.
const sharedLimit = 10 * time.Minute

// sharedCluster also keeps the cluster reachable: if it were collected, the pipe to its supervisor
// would close and the server would stop.
var sharedCluster = sync.OnceValues(func() (*Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sharedLimit)
	defer cancel()
	return Start(ctx)
})

// Shared returns the superuser's URL of the server that all tests of this process share, and starts
// the server at the first call.
//
// Cancelling ctx prevents a start; it does not end a start that other callers wait for too.
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
