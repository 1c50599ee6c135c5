package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type scopeCommand struct {
	Kinds  scopeKindsList `cmd:"" help:"List the kinds of scopes."`
	List   scopeList      `cmd:"" help:"List the scopes of a kind."`
	Get    scopeGet       `cmd:"" help:"Show the state of a scope."`
	Put    scopePut       `cmd:"" help:"Replace the state of a scope."`
	Patch  scopePatch     `cmd:"" help:"Merge a document into the state of a scope."`
	Inc    scopeInc       `cmd:"" help:"Increment an integer field of a scope."`
	Push   scopePush      `cmd:"" help:"Append an item to a list field of a scope."`
	Set    scopeSet       `cmd:"" help:"Set a record in an object field of a scope."`
	Delete scopeDelete    `cmd:"" help:"Delete a scope, or one record of it."`
	Watch  scopeWatch     `cmd:"" help:"Print the state of a scope after each change."`
}

type scopeArgs struct {
	Kind string `arg:"" help:"Scope kind, such as session."`
	ID   string `arg:"" help:"Scope id."`
}

// changeFlags are the flags of commands that change a scope.
type changeFlags struct {
	targetFlags
	IdempotencyKey string `setting:"-" aliases:"key-once" placeholder:"KEY" help:"Idempotency key. Repeating the command with the same idempotency key changes nothing and returns the same result."`
	IfVersion      *int64 `setting:"-" placeholder:"N" help:"Fail unless the scope is at this version; use =-1 to require that the scope does not exist."`
}

// options returns the options of the API call.
func (f changeFlags) options(to *target) ([]client.Option, error) {
	all := to.options(f.IdempotencyKey)
	switch {
	case f.IfVersion == nil:
		return all, nil
	case *f.IfVersion < -1:
		return nil, misuse("--if-version must be 0 or more, or -1 if the scope must not exist, got %d", *f.IfVersion)
	case *f.IfVersion == -1:
		return append(all, client.Absent()), nil
	}
	return append(all, client.ExpectVersion(*f.IfVersion)), nil
}

// change runs a call that changes a scope and shows the new state.
func (f changeFlags) change(ctx context.Context, to *target, call func(*connection, ...client.Option) (wire.ChangedScope, error)) error {
	options, bad := f.options(to)
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	x, err := call(d, options...)
	state := string(x.State)
	if state == "null" {
		state = ""
	}
	return d.show(facts("version", number64(x.Version), "changed", yes(x.Changed), "state", state), err)
}

// value reads a JSON argument: the text itself, @FILE, or - for stdin.
func value(name, text string) (json.RawMessage, error) {
	if text == "-" {
		raw, err := io.ReadAll(os.Stdin)
		if err != nil {
			return nil, misuse("cannot read %s from stdin: %v", name, err)
		}
		if !json.Valid(raw) {
			return nil, misuse("%s must be valid JSON, but stdin is empty or contains something else", name)
		}
		return raw, nil
	}
	if text == "" {
		return nil, misuse("%s must be valid JSON, but is empty", name)
	}
	if !strings.HasPrefix(text, "@") && !strings.ContainsAny(text[:1], `{["`) && !json.Valid([]byte(text)) {
		return nil, misuse("%s must be valid JSON, got %s: quote a string first for JSON and then for the shell, such as '%s'", name, text, strconv.Quote(text))
	}
	return document(name, text)
}

type scopeKindsList struct{ pageFlags }

func (c *scopeKindsList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListScopeKindsPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"KIND"}}
	for _, k := range l.Items {
		t.add(k.Kind)
	}
	return d.showList(t, l.Next, err)
}

type scopeList struct {
	pageFlags
	Kind   string `arg:"" help:"Scope kind, such as session."`
	Prefix string `setting:"-" placeholder:"TEXT" help:"List only scopes whose ids begin with this text."`
}

func (c *scopeList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListScopesPage(ctx, c.Kind, client.ScopeFilter{Prefix: c.Prefix}, c.page(), d.raw())
	t := &table{heads: []string{"ID", "VERSION", "CREATED", "UPDATED", "EXPIRES"}}
	for _, s := range l.Items {
		t.add(s.ID, number64(s.Version), at(s.CreatedAt), at(s.UpdatedAt), at(s.ExpiresAt))
	}
	return d.showList(t, l.Next, err)
}

type scopePut struct {
	changeFlags
	scopeArgs
	JSON string `arg:"" help:"New state: a JSON object, @FILE, or - for stdin."`
}

func (c *scopePut) Run(ctx context.Context, to *target) error {
	state, err := value("the argument JSON", c.JSON)
	if err != nil {
		return err
	}
	return c.change(ctx, to, func(d *connection, o ...client.Option) (wire.ChangedScope, error) {
		return d.PutScope(ctx, c.Kind, c.ID, state, o...)
	})
}

type scopeGet struct {
	targetFlags
	scopeArgs
	At *int64 `setting:"-" placeholder:"VERSION" help:"Show the scope as it was at this version. Default: the current version."`
}

func (c *scopeGet) Run(ctx context.Context, d *connection) error {
	o := []client.Option{d.raw()}
	if c.At != nil {
		o = append(o, client.At(*c.At))
	}
	x, err := d.GetScope(ctx, c.Kind, c.ID, o...)
	return d.show(facts("kind", x.Kind, "id", x.ID, "version", number64(x.Version), "state", string(x.State)), err)
}

type scopePatch struct {
	changeFlags
	scopeArgs
	JSON string `arg:"" help:"JSON object, @FILE, or - for stdin. Its fields replace those of the state, recursively in objects; null deletes a field."`
}

func (c *scopePatch) Run(ctx context.Context, to *target) error {
	merge, err := value("the argument JSON", c.JSON)
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
	Field string `arg:"" help:"Field. A missing field counts as 0."`
	By    int64  `arg:"" default:"1" help:"Increment. Put a negative increment last, after --. Default: 1."`
}

func (c *scopeInc) Run(ctx context.Context, to *target) error {
	return c.change(ctx, to, func(d *connection, o ...client.Option) (wire.ChangedScope, error) {
		return d.IncScope(ctx, c.Kind, c.ID, wire.IncScope{Field: c.Field, By: &c.By}, o...)
	})
}

type scopePush struct {
	changeFlags
	scopeArgs
	Field string `arg:"" help:"Field. A missing field counts as an empty list."`
	JSON  string `arg:"" help:"Item: JSON, @FILE, or - for stdin."`
}

func (c *scopePush) Run(ctx context.Context, to *target) error {
	item, err := value("the argument JSON", c.JSON)
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
	Field string `arg:"" help:"Field. A missing field counts as an empty object."`
	Key   string `arg:"" help:"Key of the record."`
	JSON  string `arg:"" help:"Record: JSON, @FILE, or - for stdin."`
}

func (c *scopeSet) Run(ctx context.Context, to *target) error {
	record, err := value("the argument JSON", c.JSON)
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
	// nil means that the argument is missing. An argument that is empty is refused, so that an
	// unset shell variable never deletes the whole scope.
	Field *string `arg:"" optional:"" help:"Field that contains the record."`
	Key   *string `arg:"" optional:"" help:"Key of the record. Without a field and a key, the whole scope is deleted."`
}

func (c *scopeDelete) Run(ctx context.Context, to *target) error {
	switch {
	case c.Field != nil && *c.Field == "":
		return misuse("the field is empty: specify both the field and the key of a record, or neither to delete the whole scope")
	case c.Key != nil && *c.Key == "":
		return misuse("the key is empty: specify both the field and the key of a record, or neither to delete the whole scope")
	case c.Field != nil && c.Key == nil:
		return misuse("the key is missing: specify both the field and the key of a record, or neither to delete the whole scope")
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

// Run watches a scope until ctx is cancelled, which is not an error.
func (c *scopeWatch) Run(ctx context.Context, d *connection) error {
	return untilCancelled(ctx, d.WatchScope(ctx, c.Kind, c.ID), d.showChange)
}

// showChange shows the state of a scope on one line.
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
