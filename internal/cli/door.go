package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"

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

// doorFlags say where a verb is sent: to a server, or to the same API in this
// process, on a database.
type doorFlags struct {
	databaseFlags
	URL       string   `name:"url" placeholder:"URL" help:"The server to ask, such as http://127.0.0.1:7070. Without one, --db is opened here."`
	Key       string   `placeholder:"KEY" help:"The API key for the server, hf_…."`
	Workspace string   `placeholder:"NAME" help:"The workspace, where no key says it. By default default."`
	ScopeKind []string `hidden:"" placeholder:"KIND" sep:"none" help:"How scopes of a kind behave, such as cart:budget=5s,retries=10,ttl=48h: how long a change may take, how often it is tried again, how long a scope lives after its last change; none or never is no limit. May be given again for another kind, or have several with ; between them."`
	SecretKey string   `hidden:"" placeholder:"KEY" help:"Seals the secrets that calls to handlers and webhooks are signed with: 32 bytes in base64 or hex. With several, separated by commas, the first seals and all open."`
	Output    string   `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"How to tell it: table or json."`
}

// onceFlags are for what changes something.
type onceFlags struct {
	KeyOnce string `setting:"-" placeholder:"KEY" help:"The same command under the same key is done once (Idempotency-Key)."`
}

// options are those of the call. The answer is kept as it comes, for JSON.
func (f onceFlags) options(raw *json.RawMessage) []client.Option {
	all := []client.Option{client.Raw(raw)}
	if f.KeyOnce != "" {
		all = append(all, client.Key(f.KeyOnce))
	}
	return all
}

// pageFlags are for lists.
type pageFlags struct {
	Limit  int    `setting:"-" default:"100" placeholder:"N" help:"How many at the most, up to 1000. By default 100."`
	Cursor string `setting:"-" placeholder:"CURSOR" help:"Where to go on: what the list before ended with."`
}

func (f pageFlags) page() client.Page { return client.Page{Limit: f.Limit, Cursor: f.Cursor} }

// door is where a verb is sent.
type door struct {
	*program
	*client.Client
	output string
	close  func() error
}

// through runs a verb with its door open.
func (f doorFlags) through(ctx context.Context, p *program, k *kong.Context, verb func(*door) error) error {
	return f.opened(ctx, p, k, inProcess{}, verb)
}

// inProcess is what a verb wants of an engine in this process.
type inProcess struct {
	create bool // the database may be made, and its schema brought up to date
	feed   bool // events are to be numbered
}

func (f doorFlags) opened(ctx context.Context, p *program, k *kong.Context, in inProcess, verb func(*door) error) error {
	d, err := f.open(ctx, p, k, in)
	if err != nil {
		return err
	}
	return errors.Join(verb(d), d.close())
}

// open opens the door that the command line names. What stands there counts more
// than what the environment and the file say.
func (f doorFlags) open(ctx context.Context, p *program, k *kong.Context, in inProcess) (*door, error) {
	url, db := given(k, "url"), given(k, "db")
	switch {
	case url && db:
		return nil, misuse("--url asks a server, and --db opens a database here: give one of them")
	case f.URL != "" && !db:
		return f.remote(p)
	case given(k, "key"):
		return nil, misuse("--key is for a server: give its address with --url")
	}
	return f.local(ctx, p, in)
}

// given says whether a flag stands on the command line.
func given(k *kong.Context, name string) bool {
	for _, at := range k.Path {
		if at.Flag != nil && !at.Resolved && at.Flag.Name == name {
			return true
		}
	}
	return false
}

func (f doorFlags) remote(p *program) (*door, error) {
	c, err := client.New(f.URL, client.Options{Key: f.Key, Workspace: f.Workspace, UserAgent: "holdfast/" + build().Version})
	if err != nil {
		return nil, err
	}
	return &door{program: p, Client: c, output: f.Output, close: func() error { c.Close(); return nil }}, nil
}

// local serves the API in this process: a verb does the same on either side.
func (f doorFlags) local(ctx context.Context, p *program, in inProcess) (*door, error) {
	if path, ok := f.sqlitePath(); ok && !in.create && isMissing(path) {
		return nil, fault.New(fault.NotFound, "there is no database %s: name one with --db, make one with \"holdfast migrate\", or ask a server with --url", path)
	}
	engine, err := f.engine(ctx, p, in)
	if err != nil {
		return nil, err
	}
	o, err := f.api(p)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	api := httpapi.New(engine, o)
	c, err := client.New("http://in-process", client.Options{Workspace: f.Workspace, HTTP: &http.Client{Transport: inMemory{api}}})
	if err == nil && in.feed {
		err = number(ctx, engine)
	}
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	stop := func() {}
	if in.feed {
		stop = background(ctx, engine)
	}
	return &door{program: p, Client: c, output: f.Output, close: func() error {
		api.Stop()
		stop()
		return engine.Close()
	}}, nil
}

// isMissing says that there is no such file.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return path != "" && errors.Is(err, fs.ErrNotExist)
}

func (f doorFlags) engine(ctx context.Context, p *program, in inProcess) (*holdfast.Engine, error) {
	db, err := f.databaseFlags.open()
	if err != nil {
		return nil, err
	}
	o, err := f.api(p)
	if err != nil {
		return nil, err
	}
	kinds, err := scopeKinds(f.ScopeKind)
	if err != nil {
		return nil, err
	}
	parts := []holdfast.Part{httpapi.Handlers(o), kinds}
	store, err := f.databaseFlags.store("") // as a server has it that is told nothing else
	if err != nil {
		return nil, err
	}
	if store != nil {
		parts = append(parts, batch.Artifacts(store))
	}
	if in.feed {
		o := stream.FeedOptions{}
		if f.Workspace != "" {
			o.Workspaces = []string{f.Workspace}
		}
		parts = append(parts, stream.Feed(o))
	}
	return holdfast.Open(ctx, db, holdfast.Config{Log: p.log, NoMigrate: !in.create}, parts...)
}

// api is how the API works in this process.
func (f doorFlags) api(p *program) (o httpapi.Options, err error) {
	o = httpapi.Options{Log: p.log, NoKeys: true}
	o.SecretKeys, err = secretKeys(f.SecretKey)
	return o, err
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
