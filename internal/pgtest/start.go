package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// startAndWait starts the server of a supervisor and returns when responds returns nil. A server that does
// not start is stopped, and the error has the end of its log.
func startAndWait(ctx context.Context, k *supervisor, responds func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := k.start(); err != nil {
		return err
	}
	err := await(ctx, k, responds)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w; its log ends:\n%s", err, k.logTail())
	return errors.Join(err, k.stop(k.end.force))
}

func await(ctx context.Context, k *supervisor, responds func(context.Context) error) error {
	for {
		up, err := k.alive()
		if err != nil {
			return err
		}
		if !up {
			return errEnded
		}
		if err = responds(ctx); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the server does not respond: %w (%w)", ctx.Err(), err)
		}
	}
}

// FreePort returns a free port of this machine. It picks below the ephemeral ports of outgoing
// connections: another process could take one of those while a test has the server stopped.
func FreePort() (int, error) {
	var last error
	for range 100 {
		port := 15000 + rand.IntN(17000)
		listener, err := net.Listen("tcp", loopback(port))
		if err == nil {
			return port, listener.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("no free port: %w", last)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
