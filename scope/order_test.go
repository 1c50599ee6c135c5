package scope_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/scope"
)

// waits waits until n calls are at a scope, running or waiting.
func waits[T any](ctx context.Context, s scope.Scope[T], n int) {
	for scope.Queued(ctx, s) < n {
		runtime.Gosched()
	}
}

// holds begins a change of a scope that lasts until it is let go, and returns what came of
// it then.
func holds[T any](e *env, s scope.Scope[T]) (letGo func() error) {
	e.Helper()
	begun, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := s.Atomic(e.ctx, func(_ context.Context, t T) (T, error) {
			close(begun)
			<-free
			return t, nil
		})
		done <- err
	}()
	select {
	case <-begun:
	case err := <-done:
		e.Fatalf("the call ended before it was released: %v", err)
	}
	return func() error { close(free); return <-done }
}

// TestSubmissionOrder verifies, with 1,000 who change one container, that they are run one by
// one in the order in which they came; and that one in ten that panics, and one in ten that
// fails, do not stop the next: a panic goes on in its own caller, and an error is its caller's.
func TestSubmissionOrder(t *testing.T) {
	each(t, func(e *env) {
		const n = 1000
		s := at[cart](e, "thing", "u", scope.Budget(-1))
		_, err := s.Patch(e.ctx, cart{})
		e.ok(err)
		letGo := holds(e, s)
		var (
			ran   []int
			group sync.WaitGroup
		)
		for i := range n {
			group.Go(func() {
				err := orPanic(func() error {
					_, err := s.Atomic(e.ctx, func(_ context.Context, c cart) (cart, error) {
						ran = append(ran, i)
						switch i % 10 {
						case 3:
							panic(fmt.Sprint("panic of ", i))
						case 7:
							return c, fmt.Errorf("%w of %d", errMine, i)
						}
						c.Total++
						return c, nil
					})
					return err
				})
				if want := map[int]string{3: fmt.Sprint("panic of ", i), 7: fmt.Sprint("mine of ", i)}[i%10]; fmt.Sprint(orNil(err)) != want {
					e.Errorf("call %d got %v, want %q", i, err, want)
				}
			})
			waits(e.ctx, s, i+2)
		}
		e.ok(letGo())
		group.Wait()
		if len(ran) != n {
			e.Fatalf("%d of %d functions ran", len(ran), n)
		}
		for i, r := range ran {
			if i != r {
				e.Fatalf("call %d ran as number %d", r, i)
			}
		}
		got, err := s.Get(e.ctx)
		e.ok(err)
		e.equal("total", got.State.Total, n*8/10)
		e.equal("left in the queue", scope.Queued(e.ctx, s), 0)
	})
}

func orNil(err error) any {
	if err == nil {
		return ""
	}
	return err
}

// orPanic returns what f returns, or what it panicked with as an error.
func orPanic(f func() error) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *scope.PanicError:
			err = fmt.Errorf("%v", v.Value)
			if len(v.Stack) == 0 || v.Error() == "" {
				err = errors.New("a panic without a stack")
			}
		default:
			err = fmt.Errorf("it panicked with %v, want a PanicError", v)
		}
	}()
	return f()
}

// TestPanic verifies that what a function panics with goes on in its caller, that an error
// among it can be found, that a function that ends its goroutine ends its caller's, and that
// the container is free afterwards and unchanged.
func TestPanic(t *testing.T) {
	each(t, func(e *env) {
		e.has("u", full)
		for _, budget := range []scope.Option{scope.Budget(0), scope.Budget(-1)} {
			func() {
				defer func() {
					p, ok := recover().(*scope.PanicError)
					if !ok || !errors.Is(p, errMine) {
						e.Errorf("panicked with %v, want errMine", p)
					}
				}()
				_, err := at[cart](e, "thing", "u", budget).Atomic(e.ctx, func(context.Context, cart) (cart, error) { panic(errMine) })
				e.Errorf("returned %v instead of panicking", err)
			}()
			ended := make(chan bool, 1)
			go func() {
				defer func() { ended <- recover() == nil }()
				_, err := at[cart](e, "thing", "u", budget).Atomic(e.ctx, func(context.Context, cart) (cart, error) { runtime.Goexit(); return cart{}, nil })
				e.Errorf("returned %v instead of ending the goroutine", err)
			}()
			e.equal("ended without a panic", <-ended, true)
		}
		e.is("u", full, 0)
		_, err := e.raw("u").Inc(e.ctx, "n", 1)
		e.ok(err)
	})
}

// TestContainersNeverWaitForEachOther verifies that a function that hangs at one scope delays
// nobody at another, whatever they do there.
func TestContainersNeverWaitForEachOther(t *testing.T) {
	each(t, func(e *env) {
		letGo := holds(e, e.raw("hung"))
		for i := range 80 { // more than there are locks of files
			v := verbs[i%len(verbs)]
			if _, err := v.do(e.ctx, e.raw(fmt.Sprint(i))); err != nil {
				e.Errorf("%s of %d: %v", v.name, i, err)
			}
		}
		_, err := at[cart](e, "other", "hung").Inc(e.ctx, "total", 1) // the same id in another kind
		e.ok(err)
		_, err = e.raw("hung").Inc(freshWorkspace(), "n", 1) // and in another workspace
		e.ok(err)
		s, err := e.raw("hung").Get(e.ctx) // who reads waits for nobody
		e.ok(err)
		e.absent(s, -1, false)
		e.ok(letGo())
	})
}

// TestTheQueueLetsGo verifies that who leaves the line, or came in and failed, leaves nothing
// behind: the line is free, and those behind go on.
func TestTheQueueLetsGo(t *testing.T) {
	each(t, func(e *env) {
		s := e.raw("u")
		letGo := holds(e, s)
		ctx, cancel := context.WithCancel(e.ctx)
		left := make(chan error, 20)
		for i := range 20 {
			go func() {
				_, err := verbs[i%len(verbs)].do(ctx, s)
				left <- err
			}()
		}
		waits(e.ctx, s, 21)
		stays := make(chan error, 1)
		go func() {
			_, err := s.Inc(e.ctx, "n", 1)
			stays <- err
		}()
		waits(e.ctx, s, 22)
		cancel()
		for range 20 {
			if err := <-left; !errors.Is(err, context.Canceled) {
				e.Errorf("canceled caller got %v, want context.Canceled", err)
			}
		}
		e.equal("at the scope", scope.Queued(e.ctx, s), 2)
		e.ok(letGo())
		e.ok(<-stays)
		e.equal("at the scope", scope.Queued(e.ctx, s), 0)
		e.is("u", `{"n":1}`, 1)
	})
}
