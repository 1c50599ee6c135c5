package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/sqlite"
)

type Cart struct {
	Items []string `json:"items"`
	Cents int64    `json:"cents"`
}

var errTooMuch = errors.New("the cart is too expensive")

// The page docs/scopes.md shows this program.
func Example_scopes() {
	defer tempFolder()() // [hide]
	ctx := context.Background()
	hf, err := holdfast.Open(ctx, sqlite.File("app.db"), holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer hf.Close()

	cart := scope.In[Cart](hf, scope.Session, "s-17") // a handle on hf or on a transaction; creating it costs nothing

	s, err := cart.Push(ctx, "items", "apples") // applied in the database, so it cannot conflict
	fmt.Println(s.Version, s.State, err)
	s, err = cart.Inc(ctx, "cents", 250)
	fmt.Println(s.Version, s.State, err)

	s, err = cart.Atomic(ctx, func(_ context.Context, c Cart) (Cart, error) {
		if c.Cents > 200 {
			return c, errTooMuch // nothing is written, and the caller gets this error
		}
		c.Items = append(c.Items, "pears")
		return c, nil
	})
	fmt.Println(s.Changed, err)
	// Output:
	// 0 {[apples] 0} <nil>
	// 1 {[apples] 250} <nil>
	// false the cart is too expensive
}
