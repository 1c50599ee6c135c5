package chaos

import (
	"cmp"
	"context"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
)

// caller sends requests to random servers and retries until a response is conclusive.
type caller struct {
	clients []*client.Client
	within  time.Duration // timeout of one attempt; 0 means attempt
}

// attempt is the timeout of one attempt: longer than any response takes, shorter than a process
// is stopped.
const attempt = 3 * time.Second

func newCaller(urls []string, key string) (*caller, error) {
	c := new(caller)
	for _, u := range urls {
		x, err := client.New(u, client.Options{APIKey: key, MaxAttempts: 1, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}})
		if err != nil {
			return nil, err
		}
		c.clients = append(c.clients, x)
	}
	return c, nil
}

// retryCodes are the codes after which the outcome is unknown or the request must be repeated.
var retryCodes = []fault.Code{fault.Unavailable, fault.KeyInFlight, fault.OutcomeUnknown, fault.MutationTimeout, fault.RateLimited}

func conclusive(err error) bool { return err == nil || !slices.Contains(retryCodes, fault.CodeOf(err)) }

// api is the public client, whose methods are the calls.
type api = *client.Client

// call is an API call that can be repeated.
type call[T any] func(context.Context, api, ...client.Option) (T, error)

func with1[A, T any](f func(api, context.Context, A, ...client.Option) (T, error), a A) call[T] {
	return func(ctx context.Context, c api, o ...client.Option) (T, error) { return f(c, ctx, a, o...) }
}

func with2[A, B, T any](f func(api, context.Context, A, B, ...client.Option) (T, error), a A, b B) call[T] {
	return func(ctx context.Context, c api, o ...client.Option) (T, error) { return f(c, ctx, a, b, o...) }
}

func with3[A, B, C, T any](f func(api, context.Context, A, B, C, ...client.Option) (T, error), a A, b B, c C) call[T] {
	return func(ctx context.Context, x api, o ...client.Option) (T, error) { return f(x, ctx, a, b, c, o...) }
}

func with4[A, B, C, D, T any](f func(api, context.Context, A, B, C, D, ...client.Option) (T, error), a A, b B, c C, d D) call[T] {
	return func(ctx context.Context, x api, o ...client.Option) (T, error) { return f(x, ctx, a, b, c, d, o...) }
}

// try repeats a call until the response is conclusive or ctx ends. It returns the number of
// attempts.
func try[T any](ctx context.Context, c *caller, f call[T], o ...client.Option) (out T, attempts int, err error) {
	for {
		one, cancel := context.WithTimeout(ctx, cmp.Or(c.within, attempt))
		out, err = f(one, c.clients[rand.IntN(len(c.clients))], o...)
		cancel()
		if attempts++; conclusive(err) || !pause(ctx, time.Duration(20+rand.IntN(100))*time.Millisecond) {
			return out, attempts, err
		}
	}
}

// request is like try, without the number of attempts.
func request[T any](ctx context.Context, c *caller, f call[T], o ...client.Option) (T, error) {
	out, _, err := try(ctx, c, f, o...)
	return out, err
}

func all1[A, T any](f func(api, context.Context, A) iter.Seq2[T, error], a A) call[[]T] {
	return func(ctx context.Context, c api, _ ...client.Option) ([]T, error) { return collect(f(c, ctx, a)) }
}

func all2[A, B, T any](f func(api, context.Context, A, B) iter.Seq2[T, error], a A, b B) call[[]T] {
	return func(ctx context.Context, c api, _ ...client.Option) ([]T, error) { return collect(f(c, ctx, a, b)) }
}

func collect[T any](read iter.Seq2[T, error]) (all []T, err error) {
	for x, err := range read {
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// list reads all pages of a list.
func list[T any](ctx context.Context, c *caller, f call[[]T]) ([]T, error) {
	return request(ctx, &caller{clients: c.clients, within: 20 * time.Second}, f)
}

// pause waits. It returns false if ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
