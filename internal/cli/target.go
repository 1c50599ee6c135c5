package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/stream"
)

// targetFlags say where a verb is sent: to a server, or to the same API in this
// process, on a database.
type targetFlags struct {
	databaseFlags
	URL       string   `name:"url" placeholder:"URL" help:"The server to ask, such as http://127.0.0.1:7070. Without one, --db is opened here."`
	Key       string   `placeholder:"KEY" help:"The API key for the server, hf_…."`
	Workspace string   `placeholder:"NAME" help:"The workspace, where no key says it. By default default."`
	ScopeKind []string `hidden:"" placeholder:"KIND" sep:"none" help:"How scopes of a kind behave, such as cart:budget=5s,retries=10,ttl=48h: how long a change may take, how often it is tried again, how long a scope lives after its last change; none or never is no limit. May be given again for another kind, or have several with ; between them."`
	SecretKey string   `hidden:"" placeholder:"KEY" help:"Seals the secrets that calls to handlers and webhooks are signed with: 32 bytes in base64 or hex. With several, separated by commas, the first seals and all open."`
	Output    string   `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"How to tell it: table or json."`
}

// idempotencyFlags are for what changes something.
type idempotencyFlags struct {
	targetFlags
	KeyOnce string `setting:"-" placeholder:"KEY" help:"The same command under the same key is done once (Idempotency-Key)."`
}

// options are those of the call.
func (f idempotencyFlags) options(d *connection) []client.Option { return d.options(f.KeyOnce) }

// pageFlags are for lists.
type pageFlags struct {
	targetFlags
	Limit  int    `setting:"-" default:"100" placeholder:"N" help:"How many at the most, up to 1000. By default 100."`
	Cursor string `setting:"-" placeholder:"CURSOR" help:"Where to go on: what the list before ended with."`
}

func (f pageFlags) page() client.Page { return client.Page{Limit: f.Limit, Cursor: f.Cursor} }

// target is where a verb is sent, before that is open.
type target struct {
	*program
	targetFlags
	kong   *kong.Context
	answer json.RawMessage // the last one, as it came
	close  func() error

	// For an engine in this process:
	create bool // the database may be made, and its schema brought up to date
	feed   bool // events are to be numbered
}

// target is that of the command which was read.
func (f targetFlags) target(p *program, k *kong.Context) *target {
	return &target{program: p, targetFlags: f, kong: k, close: func() error { return nil }}
}

// connection is a target that is open.
type connection struct {
	*target
	*client.Client
}

// raw keeps an answer as it comes, for JSON.
func (t *target) raw() client.Option { return client.Raw(&t.answer) }

// options are those of a call that is done once under its key, if it has one.
func (t *target) options(key string) []client.Option {
	all := []client.Option{t.raw()}
	if key != "" {
		all = append(all, client.Key(key))
	}
	return all
}

// open opens the target. It is closed when the command has run. What stands on the command
// line counts more than what the environment and the file say.
func (t *target) open(ctx context.Context) (*connection, error) {
	url, db := t.given("url"), t.given("db")
	switch {
	case url && db:
		return nil, misuse("--url asks a server, and --db opens a database here: give one of them")
	case t.URL != "" && !db:
		return t.remote()
	case t.given("key"):
		return nil, misuse("--key is for a server: give its address with --url")
	}
	return t.local(ctx)
}

// openUnless opens the target, unless something is wrong with what was asked for.
func (t *target) openUnless(ctx context.Context, wrong ...error) (*connection, error) {
	for _, err := range wrong {
		if err != nil {
			return nil, err
		}
	}
	return t.open(ctx)
}

// given says whether a flag stands on the command line.
func (t *target) given(name string) bool {
	return slices.ContainsFunc(t.kong.Path, func(at *kong.Path) bool {
		return at.Flag != nil && !at.Resolved && at.Flag.Name == name
	})
}

func (t *target) remote() (*connection, error) {
	c, err := client.New(t.URL, client.Options{Key: t.Key, Workspace: t.Workspace, UserAgent: "holdfast/" + build().Version})
	if err != nil {
		return nil, err
	}
	t.close = func() error { c.Close(); return nil }
	return &connection{t, c}, nil
}

// local serves the API in this process: a verb does the same on either side.
func (t *target) local(ctx context.Context) (*connection, error) {
	if path, ok := t.sqlitePath(); ok && !t.create && isMissing(path) {
		return nil, fault.New(fault.NotFound, "there is no database %s: name one with --db, make one with \"holdfast migrate\", or ask a server with --url", path)
	}
	o := httpapi.Options{Log: t.log, NoKeys: true}
	engine, err := t.engine(ctx, &o)
	if err != nil {
		return nil, err
	}
	t.close = engine.Close
	api := httpapi.New(engine, o)
	c, err := client.New("http://in-process", client.Options{Workspace: t.Workspace, HTTP: &http.Client{Transport: inMemory{api}}})
	if err == nil && t.feed {
		err = number(ctx, engine)
	}
	if err != nil {
		return nil, err
	}
	stop := func() {}
	if t.feed {
		stop = background(ctx, engine)
	}
	t.close = func() error {
		api.Stop()
		stop()
		return engine.Close()
	}
	return &connection{t, c}, nil
}

// isMissing says that there is no such file.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return path != "" && errors.Is(err, fs.ErrNotExist)
}

func (t *target) engine(ctx context.Context, o *httpapi.Options) (*holdfast.Engine, error) {
	db, err := t.databaseFlags.open()
	if err != nil {
		return nil, err
	}
	if o.SecretKeys, err = secretKeys(t.SecretKey); err != nil {
		return nil, err
	}
	kinds, err := scopeKinds(t.ScopeKind)
	if err != nil {
		return nil, err
	}
	parts := []holdfast.Part{httpapi.Handlers(*o), kinds}
	store, err := t.store("") // as a server has it that is told nothing else
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

// number gives all events that are there their place in the feed, so that who reads
// it once reads all of them.
func number(ctx context.Context, hf *holdfast.Engine) error {
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
