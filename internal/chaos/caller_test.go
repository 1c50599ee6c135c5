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

// caller speaks to the servers in turn, and asks again what was not answered.
type caller struct {
	doors  []*client.Client
	within time.Duration // one try; 0 is attempt
}

// attempt is how long one try may take: longer than any answer, shorter than a stop lasts.
const attempt = 3 * time.Second

func newCaller(urls []string, key string) (*caller, error) {
	c := new(caller)
	for _, u := range urls {
		x, err := client.New(u, client.Options{Key: key, Attempts: 1, HTTP: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}})
		if err != nil {
			return nil, err
		}
		c.doors = append(c.doors, x)
	}
	return c, nil
}

// notAnswered are the codes after which the caller does not know, or is to come again.
var notAnswered = []fault.Code{fault.Unavailable, fault.KeyInFlight, fault.OutcomeUnknown, fault.MutationTimeout, fault.RateLimited}

func answered(err error) bool { return err == nil || !slices.Contains(notAnswered, fault.CodeOf(err)) }

// api is the public client, whose methods are the calls.
type api = *client.Client

// call is a call of the API that can be made again.
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

// try calls until there is an answer, or until ctx ends. It returns how often it called.
func try[T any](ctx context.Context, c *caller, f call[T], o ...client.Option) (out T, tries int, err error) {
	for {
		one, cancel := context.WithTimeout(ctx, cmp.Or(c.within, attempt))
		out, err = f(one, c.doors[rand.IntN(len(c.doors))], o...)
		cancel()
		if tries++; answered(err) || !pause(ctx, time.Duration(20+rand.IntN(100))*time.Millisecond) {
			return out, tries, err
		}
	}
}

// ask is try for who does not count.
func ask[T any](ctx context.Context, c *caller, f call[T], o ...client.Option) (T, error) {
	out, _, err := try(ctx, c, f, o...)
	return out, err
}

func all1[A, T any](f func(api, context.Context, A) iter.Seq2[T, error], a A) call[[]T] {
	return func(ctx context.Context, c api, _ ...client.Option) ([]T, error) { return whole(f(c, ctx, a)) }
}

func all2[A, B, T any](f func(api, context.Context, A, B) iter.Seq2[T, error], a A, b B) call[[]T] {
	return func(ctx context.Context, c api, _ ...client.Option) ([]T, error) { return whole(f(c, ctx, a, b)) }
}

func whole[T any](read iter.Seq2[T, error]) (all []T, err error) {
	for x, err := range read {
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// list reads a list to its end.
func list[T any](ctx context.Context, c *caller, f call[[]T]) ([]T, error) {
	return ask(ctx, &caller{doors: c.doors, within: 20 * time.Second}, f)
}

// pause waits; false says that ctx has ended.
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
