package cli

import (
	"context"
	_ "embed" // for help.md
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

const about = `Holdfast makes actions that must not happen twice safe under double-clicks,
redelivery and crashes, on the database you already have.

  holdfast dev --demo                     try it: a server, and a race to watch
  holdfast dev --listen 127.0.0.1:8080    a server on ./holdfast.db
  holdfast migrate --print                the SQL that it would run
  holdfast keys create --role admin       the first key for "holdfast serve"`

// grammar is the whole command line. Its flags are settings: each is also a variable
// and a key of the file, but for --help, --config itself, and what belongs to one use
// of a verb (setting:"-").
type grammar struct {
	Help      helpFlag `short:"h" help:"Show this help."`
	Config    string   `placeholder:"FILE" help:"Read settings from this file. Without it, holdfast.yaml is read if it exists."`
	LogLevel  string   `enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"How much to log to stderr: debug, info, warn or error."`
	LogFormat string   `enum:"text,json" default:"text" placeholder:"FORMAT" help:"How to log: text or json."`

	Dev     devCommand     `cmd:"" help:"Run a server to develop against: loopback, no keys."`
	Serve   serveCommand   `cmd:"" help:"Run a server."`
	Migrate migrateCommand `cmd:"" help:"Bring the database's schema up to date."`
	Check   checkCommand   `cmd:"" help:"Hold what is in the database to the invariants."`
	Lint    lintCommand    `cmd:"" help:"Judge the configs of lifecycles, and the definitions of workflows."`
	Diagram diagramCommand `cmd:"" help:"Draw the config of a lifecycle."`

	Keys       keysCommand       `cmd:"" help:"API keys: create, list, show, rotate, revoke."`
	Lifecycles lifecyclesCommand `cmd:"" help:"Lifecycles that are put through the API: list, put, diagram."`
	Handlers   handlersCommand   `cmd:"" help:"Code elsewhere, URLs and workers: list, put, delete."`
	Entities   entitiesCommand   `cmd:"" help:"Entities of lifecycles: create, list, show, history."`
	Fire       fireCommand       `cmd:"" help:"Do a step of an entity."`
	Claim      claimCommand      `cmd:"" help:"A claim by hand: take, renew, settle, release."`
	Claims     claimsCommand     `cmd:"" help:"Who works on what: list."`
	Operations operationsCommand `cmd:"" help:"What is not at its end: list, resolve, withdraw, ack."`
	Streams    streamsCommand    `cmd:"" help:"Streams of events: append, read, close."`
	Events     eventsCommand     `cmd:"" help:"Read the feed over all streams, or follow it."`
	Reactions  reactionsCommand  `cmd:"" help:"Reactions: list, show, put, delete, streams, unblock, skip, reset."`

	Runs     runsCommand     `cmd:"" help:"Workflows: define, definitions, start, list, show, steps, follow, cancel, pause, resume, retry, signal, approvals, approve, reject."`
	Batches  batchesCommand  `cmd:"" help:"Batches of items that cost something: create, add, seal, list, show, items, follow, finalize, cancel."`
	Wallet   walletCommand   `cmd:"" help:"Wallets of points: list, put, show, credit, ledger, audit."`
	Scope    scopeCommand    `cmd:"" help:"Versioned state that many change at once: get, patch, inc, push, set, delete, watch."`
	Webhooks webhooksCommand `cmd:"" help:"URLs that events are sent to: list, create, rotate, delete."`

	Completion completionCommand `cmd:"" help:"Print the completion script of a shell."`
	Version    versionCommand    `cmd:"" help:"Tell what this program is made of."`

	DemoCaller demoCallerCommand `cmd:"" hidden:""`
}

type databaseFlags struct {
	DB     string `name:"db" default:"sqlite:holdfast.db" placeholder:"DATABASE" help:"Where everything is kept: sqlite:FILE, postgres://… or host=…. By default sqlite:holdfast.db."`
	Schema string `default:"holdfast" placeholder:"NAME" help:"The schema that holds the tables (PostgreSQL). By default holdfast."`
}

type serverFlags struct {
	Listen            string        `default:"127.0.0.1:7070" placeholder:"ADDRESS" help:"Where to listen. By default 127.0.0.1:7070; port 0 takes a free one."`
	ShutdownTimeout   time.Duration `default:"30s" placeholder:"DURATION" help:"How long requests in flight may take after a signal to stop. By default 30s."`
	JanitorEvery      time.Duration `default:"10s" placeholder:"DURATION" help:"How often to look for what a crash left held. By default 10s; a lifecycle's own janitor may say that it is looked at less often."`
	JanitorStuckAfter time.Duration `default:"5m" placeholder:"DURATION" help:"How long a claim is held that nobody renews, unless its lifecycle or who claims says otherwise. By default 5m."`
	KeepRuns          time.Duration `default:"720h" placeholder:"DURATION" help:"How long a run is kept beyond its end, unless its definition says otherwise. By default 720h, which is 30 days; 0s keeps it for ever."`
	Artifacts         string        `placeholder:"WHERE" help:"Where items of batches keep artifacts, to be deleted with them: file:FOLDER, s3://BUCKET/FOLDER?endpoint=URL&region=REGION, or none. By default a folder beside a SQLite file."`
	ScopeKind         []string      `placeholder:"KIND" sep:"none" help:"How scopes of a kind behave, such as cart:budget=5s,retries=10,ttl=48h: how long a change may take, how often it is tried again, how long a scope lives after its last change; none or never is no limit. May be given again for another kind, or have several with ; between them."`
	SecretKey         string        `placeholder:"KEY" help:"Seals the secrets that calls to handlers and webhooks are signed with: 32 bytes in base64 or hex. With several, separated by commas, the first seals and all open."`
	AllowPrivate      string        `placeholder:"NETWORKS" help:"Networks that handlers and webhooks may be on although they are not public, separated by commas, such as 10.1.0.0/16."`
}

type devCommand struct {
	databaseFlags
	serverFlags
	Demo bool `help:"Show races, kills and what becomes of them, then go on serving."`
}

type serveCommand struct {
	databaseFlags
	serverFlags
	NoMigrate bool `help:"Refuse a database whose schema is behind, rather than bring it up to date."`
	RateLimit int  `default:"0" placeholder:"N" help:"Requests a second that a key may make which says nothing of its own. By default 0, as many as it likes."`
}

type migrateCommand struct {
	databaseFlags
	Print       bool   `help:"Print the SQL for an empty database, and touch none."`
	RuntimeRole string `placeholder:"NAME" help:"Grant this role what a node needs, and no more (PostgreSQL)."`
}

type versionCommand struct {
	Output string `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"How to tell it: table or json."`
}

// errHelped says that help was asked for and given.
var errHelped = errors.New("help was given")

// helpFlag is our own, because kong's ends the process.
type helpFlag bool

// BeforeReset is called by kong when the flag is given.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	return errors.Join(ctx.PrintUsage(false), errHelped)
}

// command reads args and runs what they name.
func (p *program) command(ctx context.Context, args []string) error {
	var g grammar
	parser, err := p.parser(&g)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return err
	}
	p.log = newLog(p.stderr, g.LogLevel, g.LogFormat)
	parsed.BindTo(ctx, (*context.Context)(nil))
	verb, ok := parsed.Selected().Target.Addr().Interface().(interface {
		target(*program, *kong.Context) *target
	})
	if !ok {
		return parsed.Run()
	}
	t := verb.target(p, parsed)
	parsed.Bind(t)
	if err := parsed.BindToProvider(t.open); err != nil {
		return err
	}
	return errors.Join(parsed.Run(), t.close())
}

// helpTexts has what the help of each command says beside its flags, under the command's name.
//
//go:embed help.md
var helpTexts string

// describe gives each command its text.
func describe(k *kong.Kong) error {
	details := make(map[string]string)
	for section := range strings.SplitSeq("\n"+helpTexts, "\n# ") {
		command, text, _ := strings.Cut(section, "\n")
		details[command] = strings.Trim(text, "\n")
	}
	for _, leaf := range k.Model.Leaves(false) {
		leaf.Detail = details[strings.TrimPrefix(leaf.FullPath(), "holdfast ")]
	}
	return nil
}

func (p *program) parser(g *grammar) (*kong.Kong, error) {
	return kong.New(g,
		kong.Name("holdfast"), kong.Description(about), kong.PostBuild(describe),
		kong.NoDefaultHelp(), kong.Writers(p.stdout, p.stderr), kong.Bind(p),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, NoAppDescFormat: true, WrapUpperBound: 100}),
		kong.ValueFormatter(func(v *kong.Value) string {
			if v.Name == "help" || v.Flag == nil || !isSetting(v.Flag) && v.Name != "config" {
				return v.Help
			}
			return fmt.Sprintf("%s ($%s)", v.Help, variable(v.Name))
		}))
}
