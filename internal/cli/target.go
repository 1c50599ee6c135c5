package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/tlsfiles"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/stream"
)

// targetFlags select where API calls go: to a server, or to the same API in this process,
// on a database.
type targetFlags struct {
	databaseFlags
	URL           string   `name:"url" placeholder:"URL" help:"URL of a server, such as http://127.0.0.1:7070. Without a URL, the command opens the database given in --db."`
	Key           string   `placeholder:"KEY" help:"API key (hf_…) or token of an issuer, for the server."`
	CA            string   `name:"ca" placeholder:"FILE" help:"Trust a server whose certificate is signed by one of these (PEM), instead of the system's."`
	Cert          string   `name:"cert" placeholder:"FILE" help:"Certificate of this client (PEM), for a server with --tls-client-ca."`
	CertKey       string   `name:"cert-key" placeholder:"FILE" help:"Private key of the certificate (PEM)."`
	Workspace     string   `placeholder:"NAME" help:"Workspace, unless the API key sets it. Default: default."`
	ScopeKind     []string `hidden:"" placeholder:"KIND" sep:"none" help:"Options for scopes of a kind, such as cart:budget=5s,retries=10,ttl=48h; none means no limit. Repeat the flag for each kind, or separate kinds with semicolons."`
	JanitorModule []string `hidden:"" placeholder:"MODULE" sep:"," help:"Modules whose published lifecycles the standard janitor recovers, even if their configs do not set janitor: values of owning_module. Repeat the flag, or separate modules with commas."`
	EntityTable   []string `hidden:"" placeholder:"TABLE" sep:"none" mapping:"" help:"Table of yours in which published lifecycles may have their entities, such as orders:table=shop.orders,id=nr,status=state,version=rev,workspace-column=tenant,write=total note. Configs name it as entity_table. Repeat the flag for each table, or separate tables with semicolons."`
	SecretKey     string   `hidden:"" placeholder:"KEY" commas:"" help:"Secret key that encrypts named secrets and the secrets of handlers and webhooks: 32 bytes in base64 or hex. Separate several secret keys with commas: the first one encrypts, and all of them decrypt."`
	Output        string   `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"Output format: table or json."`
}

// idempotencyFlags are the flags of commands that change data.
type idempotencyFlags struct {
	targetFlags
	IdempotencyKey string `setting:"-" aliases:"key-once" placeholder:"KEY" help:"Idempotency key. Repeating the command with the same idempotency key changes nothing and returns the same result."`
}

// options returns the options of the API call.
func (f idempotencyFlags) options(d *connection) []client.Option { return d.options(f.IdempotencyKey) }

// dryRun adds the option of a command's --dry-run.
func dryRun(yes bool, o []client.Option) []client.Option {
	if yes {
		o = append(o, client.DryRun())
	}
	return o
}

// pageFlags are the flags of commands that list.
type pageFlags struct {
	targetFlags
	Limit  int    `setting:"-" default:"100" placeholder:"N" help:"Maximum number of results, up to 1000. Default: 100."`
	Cursor string `setting:"-" placeholder:"CURSOR" help:"Cursor of the next page, as printed with the previous page."`
}

func (f pageFlags) page() client.Page { return client.Page{Limit: f.Limit, Cursor: f.Cursor} }

// target is the destination of API calls, not opened yet.
type target struct {
	*program
	targetFlags
	kong     *kong.Context
	response json.RawMessage // the last one, as received
	close    func() error

	// For an engine in this process:
	create bool // the database may be created and migrated
	feed   bool // the feed is read, so events must have positions
	closes bool // events are removed, so they must have positions if the feed is on
}

// target returns the target of the parsed command.
func (f targetFlags) target(p *program, k *kong.Context) *target {
	return &target{program: p, targetFlags: f, kong: k, close: func() error { return nil }}
}

// connection is an opened target.
type connection struct {
	*target
	*client.Client
}

// raw stores the response as received, for -o json.
func (t *target) raw() client.Option { return client.Raw(&t.response) }

// options returns the options of a call with an idempotency key, which may be empty.
func (t *target) options(key string) []client.Option {
	all := []client.Option{t.raw()}
	if key != "" {
		all = append(all, client.Key(key))
	}
	return all
}

// open opens the target, which is closed after the command has run. Flags on the command
// line override the environment and the file: --db overrides HOLDFAST_URL.
func (t *target) open(ctx context.Context) (*connection, error) {
	url, db := t.given("url"), t.given("db")
	switch {
	case url && db:
		return nil, misuse("--url and --db cannot be combined: use --url to call a server, or --db to open a database")
	case t.URL != "" && !db:
		return t.remote()
	case t.given("key"):
		return nil, misuse("--key requires a server: set its address with --url")
	}
	return t.local(ctx)
}

// openUnless opens the target unless one of the errors is not nil.
func (t *target) openUnless(ctx context.Context, errs ...error) (*connection, error) {
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return t.open(ctx)
}

// given reports whether a flag was set on the command line.
func (t *target) given(name string) bool {
	return slices.ContainsFunc(t.kong.Path, func(at *kong.Path) bool {
		return at.Flag != nil && !at.Resolved && at.Flag.Name == name
	})
}

func (t *target) remote() (*connection, error) {
	if strings.HasPrefix(t.URL, "https:") && t.CA == "" {
		trustRoots()
	}
	config, err := tlsfiles.Client(tlsfiles.Files{Cert: t.Cert, Key: t.CertKey, CA: t.CA})
	if err != nil {
		return nil, err
	}
	c, err := client.New(t.URL, client.Options{APIKey: t.Key, Workspace: t.Workspace, UserAgent: "holdfast/" + build().Version, TLS: config})
	if err != nil {
		return nil, err
	}
	t.close = func() error { c.Close(); return nil }
	return &connection{t, c}, nil
}

// local serves the API in this process, so that a command behaves the same with and without
// a server.
func (t *target) local(ctx context.Context) (*connection, error) {
	if path, ok := t.sqlitePath(); ok && !t.create && isMissing(path) {
		return nil, fault.New(fault.NotFound, "database %s does not exist: choose another with --db, create one with \"holdfast migrate\", or use a server with --url", path)
	}
	keys, err := secretKeys(t.SecretKey)
	if err != nil {
		return nil, err
	}
	tables, err := entityTables(t.EntityTable)
	if err != nil {
		return nil, err
	}
	api := httpapi.New(httpapi.Options{Log: t.log, NoKeys: true, SecretKeys: keys, EntityTables: tables, Quotas: noQuotas})
	engine, err := t.engine(ctx, api)
	if err != nil {
		return nil, err
	}
	t.close = engine.Close
	c, err := client.New("http://in-process", client.Options{Workspace: t.Workspace, HTTP: &http.Client{Transport: inMemory{api}}})
	if err == nil && (t.feed || t.closes) {
		err = assignPositions(ctx, engine)
	}
	if err != nil {
		return nil, err
	}
	stop := func() error { return nil }
	if t.feed {
		stop = background(ctx, engine, func() {})
	}
	t.close = func() error {
		api.Stop()
		return errors.Join(stop(), engine.Close())
	}
	return &connection{t, c}, nil
}

// isMissing reports whether the file does not exist.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return path != "" && errors.Is(err, fs.ErrNotExist)
}

func (t *target) engine(ctx context.Context, api *httpapi.API) (*holdfast.Engine, error) {
	db, err := t.databaseFlags.open()
	if err != nil {
		return nil, err
	}
	kinds, err := scopeKinds(t.ScopeKind)
	if err != nil {
		return nil, err
	}
	parts := []holdfast.Part{api, kinds}
	for _, module := range t.JanitorModule {
		parts = append(parts, lifecycle.ModuleJanitor(module))
	}
	store, err := t.store("") // the default store of a server
	if err != nil {
		return nil, err
	}
	if store != nil {
		parts = append(parts, batch.Artifacts(store))
	}
	if t.feed {
		o := stream.FeedOptions{}
		if t.Workspace != "" {
			o.Workspaces = []string{t.Workspace}
		}
		parts = append(parts, stream.Feed(o))
	}
	return holdfast.Open(ctx, db, holdfast.Config{Log: t.log, NoMigrate: !t.create}, parts...)
}

// assignPositions assigns feed positions to all existing events, so that reading the feed once
// returns all of them.
func assignPositions(ctx context.Context, hf *holdfast.Engine) error {
	shards, err := store.Shards(ctx, engine.Of(hf))
	if err != nil {
		return err
	}
	for _, shard := range shards {
		for more := true; more; {
			if more, err = feed.Step(ctx, engine.Of(hf), shard, feed.DefaultBatch); err != nil {
				return err
			}
		}
	}
	return nil
}
