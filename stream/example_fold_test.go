package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// The state of an account is folded from its events. It is never overdrawn, because a withdrawal is appended only at the
// version of the state that it was decided on.
func ExampleFold() {
	type account struct{ Cents int }
	accounts := stream.Fold("account-", func(a account, e stream.Event) (account, error) {
		var moved struct{ Cents int }
		err := json.Unmarshal(e.Data, &moved)
		if e.Name == "withdrawn" {
			moved.Cents = -moved.Cents
		}
		a.Cents += moved.Cents
		return a, err
	}, stream.SnapshotEvery(100, "account 1"))

	deposit := func(cents int) func(account) ([]stream.Event, error) {
		return func(account) ([]stream.Event, error) {
			return []stream.Event{{Name: "deposited", Data: fmt.Appendf(nil, `{"cents": %d}`, cents)}}, nil
		}
	}
	withdraw := func(cents int) func(account) ([]stream.Event, error) {
		return func(a account) ([]stream.Event, error) {
			if a.Cents < cents {
				return nil, fmt.Errorf("%d cents are not enough", a.Cents)
			}
			return []stream.Event{{Name: "withdrawn", Data: fmt.Appendf(nil, `{"cents": %d}`, cents)}}, nil
		}
	}

	ctx, hf, end := openExample()
	defer end()
	fmt.Println(accounts.Do(ctx, hf, "7", deposit(1000)))
	fmt.Println(accounts.Do(ctx, hf, "7", withdraw(700)))
	_, err := accounts.Do(ctx, hf, "7", withdraw(700))
	fmt.Println(err)
	fmt.Println(accounts.Load(ctx, hf, "7"))
	// Output:
	// {1000} <nil>
	// {300} <nil>
	// 300 cents are not enough
	// {300} 1 <nil>
}

// The data about a person is encrypted with a key of that person, and cannot be read after the key is deleted. The event
// itself stays.
func ExampleVault() {
	master := []byte("32 random bytes, out of a secret") // from where you keep secrets
	vault, err := stream.NewVault(master)
	if err != nil {
		log.Fatal(err)
	}
	ctx, hf, end := openExample()
	defer end()
	show := func() {
		all, err := holdfast.Collect(vault.Read(ctx, hf, "customer-7", 0))
		for _, e := range all {
			fmt.Println(e.Name, string(e.Data), e.Forgotten, err)
		}
	}

	moved := stream.Event{Name: "moved", Subject: "person-7", Data: []byte(`{"city": "Paris"}`)}
	if _, err := vault.Append(ctx, hf, "customer-7", stream.Any, moved); err != nil {
		log.Fatal(err)
	}
	show()
	fmt.Println(vault.Forget(ctx, hf, "person-7"))
	show()
	_, err = vault.Append(ctx, hf, "customer-7", stream.Any, moved)
	fmt.Println(errors.Is(err, holdfast.ErrConflict))
	// Output:
	// moved {"city": "Paris"} false <nil>
	// true <nil>
	// moved null true <nil>
	// true
}

// openExample opens an engine on a file that is deleted when the example ends.
func openExample() (context.Context, *holdfast.Engine, func()) {
	folder, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	hf, err := holdfast.Open(ctx, sqlite.File(filepath.Join(folder, "app.db")), holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return ctx, hf, func() {
		hf.Close()
		os.RemoveAll(folder)
	}
}
