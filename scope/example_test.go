package scope_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scope"
)

// Inc is applied where the state is stored, so concurrent callers lose nothing. Atomic reads, decides and writes, and
// an error of the function writes nothing. A store in memory behaves like a database.
func ExampleScope_Atomic() {
	type Cart struct {
		Cents int      `json:"cents"`
		Items []string `json:"items"`
	}
	store, err := scope.MemoryStore()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	cart := scope.Of[Cart](store, scope.Session, "s-17")
	if _, err := cart.Inc(ctx, "cents", 250); err != nil {
		log.Fatal(err)
	}
	add := func(item string) func(context.Context, Cart) (Cart, error) {
		return func(_ context.Context, c Cart) (Cart, error) {
			if len(c.Items) == 1 {
				return c, errors.New("the cart is full")
			}
			c.Items = append(c.Items, item)
			return c, nil
		}
	}
	now, err := cart.Atomic(ctx, add("apples"))
	fmt.Println(now.State, now.Version, err)
	_, err = cart.Atomic(ctx, add("pears"))
	fmt.Println(err)
	_, err = scope.Of[Cart](store, scope.Session, "s-17", scope.ExpectVersion(0)).Inc(ctx, "cents", 1)
	fmt.Println(errors.Is(err, holdfast.ErrConcurrency))
	// Output:
	// {250 [apples]} 1 <nil>
	// the cart is full
	// true
}
