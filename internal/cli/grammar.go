package cli

import (
	"context"
	_ "embed" // for help.md
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

const about = `Holdfast makes actions that must not happen twice safe under double-clicks,
redelivery and crashes, on the database you already have.

  holdfast dev --demo                     start a server and watch a demo of races
  holdfast init shop                      write a starter project in Go
  holdfast dev --listen 127.0.0.1:8080    start a server on ./holdfast.db
  holdfast migrate --print                print the SQL of the schema
  holdfast keys create --role admin       create the first API key for "holdfast serve"

Exit codes: 0 success, 1 failure or refusal, 2 wrong usage, 3 server or database
unreachable.`

// grammar defines the command line. Each flag is also a setting: an environment
// variable and a name in the settings file. Exceptions are --help, --config, and flags
// that apply to one invocation only (setting:"-"). The tags commas and mapping say that the
// settings file may also have a list, or a mapping from names to options, as the value.
type grammar struct {
	Help      bool   `short:"h" help:"Show this help."`
	Config    string `placeholder:"FILE" help:"Settings file. Default: holdfast.yaml, if it exists."`
	LogLevel  string `enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"Log level: debug, info, warn or error. Logs go to stderr."`
	LogFormat string `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Log format: text or json."`

	Init    initCommand    `cmd:"" help:"Write a starter project."`
	Dev     devCommand     `cmd:"" help:"Run a development server on loopback, without API keys."`
	Serve   serveCommand   `cmd:"" help:"Run a server that requires API keys."`
	Migrate migrateCommand `cmd:"" help:"Migrate the database schema to this program's version."`
	Check   checkCommand   `cmd:"" help:"Check the database against Holdfast's invariants."`
	Bench   benchCommand   `cmd:"" help:"Measure Holdfast's performance on your database."`
	Lint    lintCommand    `cmd:"" help:"Validate lifecycle configs and workflow definitions."`
	Diagram diagramCommand `cmd:"" help:"Draw a lifecycle config or a workflow definition."`

	Keys       keysCommand       `cmd:"" help:"Manage API keys: create, list, show, rotate, revoke."`
	Lifecycles lifecyclesCommand `cmd:"" help:"Manage published lifecycles: list, show, put, diagram."`
	Handlers   handlersCommand   `cmd:"" help:"Manage remote handlers: list, put, delete."`
	Entities   entitiesCommand   `cmd:"" help:"Manage lifecycle entities: create, list, show, history, timeline."`
	Fire       fireCommand       `cmd:"" help:"Fire a step of an entity."`
	Claim      claimCommand      `cmd:"" help:"Claim a step manually: take, renew, settle, release."`
	Claims     claimsCommand     `cmd:"" help:"Inspect claims: list."`
	Operations operationsCommand `cmd:"" help:"Manage operations: list, show, resolve, release, withdraw, ack."`
	Streams    streamsCommand    `cmd:"" help:"Manage event streams: list, show, append, read, close, truncate."`
	Events     eventsCommand     `cmd:"" help:"Read, search or follow the feed of all events."`
	Timeline   timelineCommand   `cmd:"" help:"List the events, refusals and effects of a stream, newest first."`
	Races      racesCommand      `cmd:"" help:"List refused writes, newest first, grouped by what they lost to."`
	Reactions  reactionsCommand  `cmd:"" help:"Manage reactions: list, show, put, delete, streams, unblock, skip, reset."`

	Runs     runsCommand     `cmd:"" help:"Manage workflow definitions and runs: define, definitions, diagram, start, list, show, steps, follow, cancel, pause, resume, retry, signal, approvals, approve, reject."`
	Batches  batchesCommand  `cmd:"" help:"Manage batches of items: create, add, seal, list, show, items, follow, finalize, cancel."`
	Wallet   walletCommand   `cmd:"" help:"Manage wallets, which hold points: list, put, show, credit, ledger, audit."`
	Scope    scopeCommand    `cmd:"" help:"Read and change scopes (versioned state): kinds, list, get, put, patch, inc, push, set, delete, watch."`
	Webhooks webhooksCommand `cmd:"" help:"Manage webhooks: list, create, rotate, delete."`
	Secrets  secretsCommand  `cmd:"" help:"Manage named secrets: list, show, set, delete, reseal."`

	Search      searchCommand      `cmd:"" help:"Find objects by the beginning of their ids, keys or names."`
	Inbox       inboxCommand       `cmd:"" help:"List what needs a person or is stuck."`
	Overview    overviewCommand    `cmd:"" help:"Count what a workspace has."`
	Nodes       nodesCommand       `cmd:"" help:"List the nodes that run on the database."`
	Rates       ratesCommand       `cmd:"" help:"List what each node did in each minute, newest first."`
	Quotas      quotasCommand      `cmd:"" help:"List the quotas of a workspace, and what it uses of them."`
	Bulk        bulkCommand        `cmd:"" help:"Act on many runs, streams of reactions or operations in the background: retry-runs, cancel-runs, pause-runs, resume-runs, unblock, skip, release, resolve, withdraw, list, show, members, cancel."`
	Watch       watchCommand       `cmd:"" help:"Print what changes in a workspace, as it happens."`
	Maintenance maintenanceCommand `cmd:"" help:"Run the background work of a node now."`
	Requests    requestsCommand    `cmd:"" help:"Inspect requests with an idempotency key: show, list."`
	Audit       auditCommand       `cmd:"" help:"List administrative actions, newest first."`

	Completion completionCommand `cmd:"" help:"Print a completion script for a shell."`
	Version    versionCommand    `cmd:"" help:"Print version information."`

	DemoCaller demoCallerCommand `cmd:"" hidden:""`
}

type databaseFlags struct {
	DB     string `name:"db" default:"sqlite:holdfast.db" placeholder:"DATABASE" help:"Database: sqlite:FILE, postgres://… or host=…. Default: sqlite:holdfast.db."`
	Schema string `default:"holdfast" placeholder:"NAME" help:"Schema for Holdfast's tables (PostgreSQL). Default: holdfast."`
}

type serverFlags struct {
	Listen            string         `default:"127.0.0.1:7070" placeholder:"ADDRESS" help:"Address to listen on; port 0 picks a free port. Default: 127.0.0.1:7070."`
	ShutdownTimeout   time.Duration  `default:"30s" placeholder:"DURATION" help:"How long to drain requests in flight after SIGTERM or SIGINT. Default: 30s."`
	JanitorEvery      time.Duration  `default:"10s" placeholder:"DURATION" help:"Interval at which the janitor releases expired leases. A lifecycle may set a longer interval. Default: 10s."`
	JanitorStuckAfter time.Duration  `default:"5m" placeholder:"DURATION" help:"How long a manual claim lasts, and how long an entity may be in a claim status without a claim, unless the lifecycle sets stuck_after. Default: 5m."`
	JanitorModule     []string       `placeholder:"MODULE" sep:"," help:"Modules whose published lifecycles the standard janitor recovers, even if their configs do not set janitor: values of owning_module. Repeat the flag, or separate modules with commas."`
	KeepRuns          time.Duration  `default:"720h" placeholder:"DURATION" help:"Retention of finished runs whose definition sets no retention; 0s keeps them forever. Default: 720h (30 days)."`
	KeepRunKeys       time.Duration  `default:"0s" placeholder:"DURATION" help:"How long the keys of deleted runs are kept, so that a late retry does not start a run again; 0s keeps them forever. Default: 0s."`
	KeepBatches       *time.Duration `placeholder:"DURATION" help:"Retention of the items of ended batches; 0s keeps them forever. Default: 720h, or 0s for a database that was in use before its first server."`
	KeepHistory       *time.Duration `placeholder:"DURATION" help:"Minimum retention of histories, at least 1h; 0s keeps them forever. Default: 720h (30 days), or 0s for a database that was in use before its first server."`
	Artifacts         string         `placeholder:"WHERE" help:"Store for the artifacts of batch items: file:FOLDER, s3://BUCKET/FOLDER?endpoint=URL&region=REGION, or none. Default: a folder next to the database file (SQLite), or none (PostgreSQL)."`
	ScopeKind         []string       `placeholder:"KIND" sep:"none" help:"Options for scopes of a kind, such as cart:budget=5s,retries=10,ttl=48h; none means no limit. Repeat the flag for each kind, or separate kinds with semicolons."`
	EntityTable       []string       `placeholder:"TABLE" sep:"none" mapping:"" help:"Table of yours in which published lifecycles may have their entities, such as orders:table=shop.orders,id=nr,status=state,version=rev,workspace-column=tenant,write=total note. Configs name it as entity_table. Repeat the flag for each table, or separate tables with semicolons."`
	Quota             []string       `placeholder:"QUOTA" sep:"none" mapping:"" help:"Limits of a workspace, such as shop:requests=500,storage=10GiB; * is for all others. Repeat the flag for each workspace, or separate workspaces with semicolons."`
	SecretKey         string         `placeholder:"KEY" commas:"" help:"Secret key that encrypts named secrets and the secrets of handlers and webhooks: 32 bytes in base64 or hex. Separate several secret keys with commas: the first one encrypts, and all of them decrypt."`
	NoDashboard       bool           `help:"Serve neither the dashboard at / nor the documentation at /docs."`
	AllowPrivate      string         `placeholder:"NETWORKS" commas:"" help:"Private networks that the URLs of handlers and webhooks may reach, separated by commas, such as 10.1.0.0/16."`
}

type devCommand struct {
	databaseFlags
	serverFlags
	Demo bool `help:"Run the demo of races and crashes first, then keep a small company working for the dashboard. Unless --db is set, it uses holdfast-demo.db, and deletes histories there that are older than six hours."`
}

type serveCommand struct {
	databaseFlags
	serverFlags
	TLSCert      string   `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate (PEM, with its intermediate certificates). A changed file is used for new connections."`
	TLSKey       string   `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate (PEM)."`
	TLSClientCA  string   `name:"tls-client-ca" placeholder:"FILE" help:"Require a certificate of every client, signed by one of these (PEM; mutual TLS)."`
	OIDCIssuer   string   `name:"oidc-issuer" placeholder:"URL" help:"Accept tokens of this OpenID Connect issuer, beside API keys. Tokens must have exactly this URL in iss."`
	OIDCAudience string   `name:"oidc-audience" placeholder:"NAME" help:"Audience (aud) that a token must have."`
	OIDCJWKS     string   `name:"oidc-jwks" placeholder:"WHERE" help:"Public keys of the issuer (JWKS): a file or a URL. Default: the URL that the issuer publishes."`
	OIDCGrant    []string `name:"oidc-grant" placeholder:"GRANT" sep:"none" mapping:"" help:"Rights of the tokens that have a value of a claim, such as staff:claim=groups,value=staff,workspace=shop,role=operate,requesters=alice bob. Repeat the flag for each grant, or separate grants with semicolons."`
	AllowFrom    *string  `placeholder:"NETWORKS" commas:"" help:"Networks from which requests are accepted, separated by commas, such as 10.1.0.0/16. Default: all."`
	TrustedProxy string   `placeholder:"NETWORKS" commas:"" help:"Networks of proxies whose X-Forwarded-For is believed, separated by commas. Default: none."`
	NoMigrate    bool     `help:"Fail if the database schema is out of date, instead of migrating it."`
	RateLimit    int      `default:"0" placeholder:"N" help:"Rate limit for API keys that have no limit of their own, in requests per second; 0 means unlimited. Default: 0."`
}

type migrateCommand struct {
	databaseFlags
	Print       bool   `help:"Print the SQL for an empty database without connecting to one."`
	RuntimeRole string `placeholder:"NAME" help:"Grant this role the privileges that a node needs (PostgreSQL)."`
	Restored    bool   `help:"The database was restored from a backup: refuse nodes, workers and readers from before. Ends all other connections (PostgreSQL)."`
}

type versionCommand struct {
	Output string `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"Output format: table or json."`
}

// errHelped reports that help was printed, so that the command ends with exit code 0.
var errHelped = errors.New("help was printed")

// command parses args and runs the command that they name.
func (p *program) command(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	var g grammar
	parser, err := p.parser(&g, only(args[0])...)
	if err != nil {
		return err
	}
	parsed, err := p.parse(parser, args)
	if err != nil {
		return err
	}
	p.log = newLog(p.stderr, g.LogLevel, g.LogFormat)
	return p.runCommand(ctx, parsed)
}

// runCommand runs the selected command. Run of a command has one of five parameter lists.
func (p *program) runCommand(ctx context.Context, parsed *kong.Context) error {
	switch c := parsed.Selected().Target.Addr().Interface().(type) {
	case interface{ Run(*program) error }:
		return c.Run(p)
	case interface {
		Run(*program, *kong.Context) error
	}:
		return c.Run(p, parsed)
	case interface {
		Run(context.Context, *program) error
	}:
		return c.Run(ctx, p)
	case interface {
		Run(context.Context, *target) error
		target(*program, *kong.Context) *target
	}:
		t := c.target(p, parsed)
		return errors.Join(c.Run(ctx, t), t.close())
	case interface {
		Run(context.Context, *connection) error
		target(*program, *kong.Context) *target
	}:
		t := c.target(p, parsed)
		d, err := t.open(ctx)
		if err != nil {
			return errors.Join(err, t.close())
		}
		return errors.Join(c.Run(ctx, d), t.close())
	}
	return errors.New("the command cannot be run: it has no method Run with known parameters")
}

// helpTexts has the detailed help of each command, in sections headed by the command's name.
//
//go:embed help.md
var helpTexts string

// describe sets the detailed help of each command.
func describe(k *kong.Kong) error {
	details := make(map[string]string)
	for section := range strings.SplitSeq("\n"+helpTexts, "\n# ") {
		command, text, _ := strings.Cut(section, "\n")
		details[command] = strings.Trim(text, "\n")
	}
	for _, leaf := range k.Model.Leaves(false) {
		text := details[strings.TrimPrefix(leaf.FullPath(), "holdfast ")]
		if strings.HasPrefix(text, "    ") { // kong trims the text: without its indentation, the first example would be wrapped
			text = "Examples:\n\n" + text
		}
		leaf.Detail = text
	}
	return nil
}

// only returns options with which the parser omits all commands but one, because building the whole grammar takes
// half of the time of a short command. It returns none if the first argument does not name a command, and for
// "completion", which prints all commands.
func only(first string) []kong.Option {
	var others []string
	named := false
	for field := range reflect.TypeFor[grammar]().Fields() {
		if _, command := field.Tag.Lookup("cmd"); !command {
			continue
		}
		if strings.ToLower(field.Name) == first {
			named = true
		} else {
			others = append(others, field.Name)
		}
	}
	if !named || first == "completion" {
		return nil
	}
	return []kong.Option{kong.IgnoreFields(`^grammar\.(` + strings.Join(others, "|") + `)$`)}
}

// ofServer reports whether a flag is one of a server. Their help says once how to name them in variables and in the settings file.
func ofServer(v *kong.Value) bool {
	for _, of := range []reflect.Type{reflect.TypeFor[serverFlags](), reflect.TypeFor[serveCommand]()} {
		for field := range of.Fields() {
			if !field.Anonymous && strings.EqualFold(field.Name, strings.ReplaceAll(v.Name, "-", "")) {
				return true
			}
		}
	}
	return false
}

func (p *program) parser(g *grammar, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(g, append(options,
		kong.Name("holdfast"), kong.Description(about), kong.PostBuild(describe),
		kong.NoDefaultHelp(), kong.Writers(p.stdout, p.stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, NoAppDescFormat: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ValueFormatter(func(v *kong.Value) string {
			if v.Name == "help" || v.Flag == nil || !isSetting(v.Flag) && v.Name != "config" || ofServer(v) {
				return v.Help
			}
			return fmt.Sprintf("%s ($%s)", v.Help, variable(v.Name))
		}))...)
}
