package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type scopeCommand struct {
	Get    scopeGet    `cmd:"" help:"Show a scope."`
	Patch  scopePatch  `cmd:"" help:"Merge a document into a scope's state."`
	Inc    scopeInc    `cmd:"" help:"Add to the whole number in a field."`
	Push   scopePush   `cmd:"" help:"Add an item to the list in a field."`
	Set    scopeSet    `cmd:"" help:"Put a record into the object in a field."`
	Delete scopeDelete `cmd:"" help:"Delete a scope, or a record of it."`
	Watch  scopeWatch  `cmd:"" help:"Show a scope whenever it has changed."`
}

type scopeArgs struct {
	Kind string `arg:"" help:"The kind, such as session."`
	ID   string `arg:"" help:"The id."`
}

// changeFlags are for what changes a scope.
type changeFlags struct {
	targetFlags
	KeyOnce   string `setting:"-" aliases:"idempotency-key" placeholder:"KEY" help:"The same command under the same key is done once (Idempotency-Key); --idempotency-key is the same."`
	IfVersion *int64 `setting:"-" placeholder:"N" help:"Only if the scope is at this version; =-1 if there is none yet."`
}

// options are those of the call.
func (f changeFlags) options(to *target) ([]client.Option, error) {
	all := to.options(f.KeyOnce)
	switch {
	case f.IfVersion == nil:
		return all, nil
	case *f.IfVersion < -1:
		return nil, misuse("--if-version is %d: it is a version, 0 or more, or -1 for a scope that must not be there", *f.IfVersion)
	case *f.IfVersion == -1:
		return append(all, client.IfAbsent()), nil
	}
	return append(all, client.IfMatch(*f.IfVersion)), nil
}

// change runs a verb that changes a scope, and shows what has become of it.
func (f changeFlags) change(ctx context.Context, to *target, verb func(*connection, ...client.Option) (wire.ChangedScope, error)) error {
	options, bad := f.options(to)
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	x, err := verb(d, options...)
	state := string(x.State)
	if state == "null" {
		state = ""
	}
	return d.show(facts("version", number64(x.Version), "changed", yes(x.Changed), "state", state), err)
}

// value reads an argument that is JSON: the text itself, @FILE, or - for stdin.
func value(name, text string) (json.RawMessage, error) {
	if text == "-" {
		raw, err := io.ReadAll(os.Stdin)
		if err != nil {
			return nil, misuse("%s cannot be read from stdin: %v", name, err)
		}
		if !json.Valid(raw) {
			return nil, misuse("%s wants JSON, and stdin has none", name)
		}
		return raw, nil
	}
	if text == "" {
		return nil, misuse("%s is empty, and wants JSON", name)
	}
	if !strings.HasPrefix(text, "@") && !strings.ContainsAny(text[:1], `{["`) && !json.Valid([]byte(text)) {
		return nil, misuse("%s is %s, which is not JSON: quote a text as JSON does, and once more for the shell, as '%s'", name, text, strconv.Quote(text))
	}
	return document(name, text)
}

type scopeGet struct {
	targetFlags
	scopeArgs
}

func (c *scopeGet) Run(ctx context.Context, d *connection) error {
	x, err := d.GetScope(ctx, c.Kind, c.ID, d.raw())
	return d.show(facts("kind", x.Kind, "id", x.ID, "version", number64(x.Version), "state", string(x.State)), err)
}

type scopePatch struct {
	changeFlags
	scopeArgs
	JSON string `arg:"" help:"An object, @FILE, or - for stdin. Its members replace those of the state, object in object; null takes one out."`
}

func (c *scopePatch) Run(ctx context.Context, to *target) error {
	merge, err := value("JSON", c.JSON)
	if err != nil {
		return err
	}
	return c.change(ctx, to, func(d *connection, o ...client.Option) (wire.ChangedScope, error) {
		return d.PatchScope(ctx, c.Kind, c.ID, merge, o...)
	})
}

type scopeInc struct {
	changeFlags
	scopeArgs
	Field string `arg:"" help:"The field. One that is missing is 0."`
	By    int64  `arg:"" default:"1" help:"How much; by default 1. What is negative comes last, after --."`
}

func (c *scopeInc) Run(ctx context.Context, to *target) error {
	return c.change(ctx, to, func(d *connection, o ...client.Option) (wire.ChangedScope, error) {
		return d.IncScope(ctx, c.Kind, c.ID, wire.IncScope{Field: c.Field, By: &c.By}, o...)
	})
}

type scopePush struct {
	changeFlags
	scopeArgs
	Field string `arg:"" help:"The field. One that is missing is an empty list."`
	JSON  string `arg:"" help:"The item, @FILE, or - for stdin."`
}

func (c *scopePush) Run(ctx context.Context, to *target) error {
	item, err := value("JSON", c.JSON)
	if err != nil {
		return err
	}
	return c.change(ctx, to, func(d *connection, o ...client.Option) (wire.ChangedScope, error) {
		return d.PushScope(ctx, c.Kind, c.ID, wire.PushScope{Field: c.Field, Value: item}, o...)
	})
}

type scopeSet struct {
	changeFlags
	scopeArgs
	Field string `arg:"" help:"The field. One that is missing is an empty object."`
	Key   string `arg:"" help:"The key of the record."`
	JSON  string `arg:"" help:"The record, @FILE, or - for stdin."`
}

func (c *scopeSet) Run(ctx context.Context, to *target) error {
	record, err := value("JSON", c.JSON)
	if err != nil {
		return err
	}
	return c.change(ctx, to, func(d *connection, o ...client.Option) (wire.ChangedScope, error) {
		return d.SetScopeRecord(ctx, c.Kind, c.ID, c.Field, c.Key, record, o...)
	})
}

type scopeDelete struct {
	changeFlags
	scopeArgs
	// nil is not given. What is given and empty is no name, and never the whole scope.
	Field *string `arg:"" optional:"" help:"The field that holds the record."`
	Key   *string `arg:"" optional:"" help:"The key of the record. Without field and key all of the scope is deleted."`
}

func (c *scopeDelete) Run(ctx context.Context, to *target) error {
	switch {
	case c.Field != nil && *c.Field == "":
		return misuse("the field is empty: name the record by its field and its key, or leave both away to delete the whole scope")
	case c.Key != nil && *c.Key == "":
		return misuse("the key is empty: name the record by its field and its key, or leave both away to delete the whole scope")
	case c.Field != nil && c.Key == nil:
		return misuse("a field is given, and no key: name the record, or neither to delete the whole scope")
	}
	return c.change(ctx, to, func(d *connection, o ...client.Option) (wire.ChangedScope, error) {
		if c.Field == nil {
			return d.DeleteScope(ctx, c.Kind, c.ID, o...)
		}
		return d.DeleteScopeRecord(ctx, c.Kind, c.ID, *c.Field, *c.Key, o...)
	})
}

type scopeWatch struct {
	targetFlags
	scopeArgs
}

// Run watches a scope. To be stopped is its end, and no failure.
func (c *scopeWatch) Run(ctx context.Context, d *connection) error {
	for x, err := range d.WatchScope(ctx, c.Kind, c.ID) {
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil
		}
		if err == nil {
			err = d.showChange(x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// showChange shows a scope in a line.
func (d *connection) showChange(x wire.Scope) error {
	if d.Output == "json" {
		return d.showLine(x)
	}
	if x.Version < 0 {
		_, err := fmt.Fprintln(d.stdout, "none")
		return err
	}
	_, err := fmt.Fprintf(d.stdout, "%d  %s\n", x.Version, cell(string(x.State)))
	return err
}
