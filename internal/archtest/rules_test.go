package archtest

import "slices"

// root is the root package's place in the module; its name is holdfast.
const root = "."

// Groups of packages that the table speaks of together.
var (
	// capabilities are the five. They never know each other: what one needs of
	// another goes by name through the engine.
	capabilities = []string{"lifecycle", "stream", "run", "batch", "scope"}

	// adapters hold the SQL of one database each.
	adapters = []string{"sqlite", "postgres"}

	// ground is what everything stands on.
	ground = []string{"fault", "internal/clock", "internal/strictjson", "internal/store"}

	// inner is the machinery that the capabilities share. A new package of this
	// kind is added here.
	inner = []string{
		"internal/lease", "internal/wake", "internal/events",
		"internal/entities", "internal/scopestore", "internal/reactions", "internal/retention", "internal/feed", "internal/streamclose", "internal/snapshots", "internal/subjectkey",
		"internal/effects", "internal/refusals", "internal/lifecycleconfig", "internal/configdoc", "internal/workflow", "internal/keys", "internal/idempotency", "internal/claimtoken", "internal/seal", "internal/webhooks", "internal/remotehandler", "internal/remote", "internal/wallets", "internal/batchengine", "internal/runengine", "internal/transition",
		"internal/check", "internal/crash",
	}

	// core is what root and the capabilities may use.
	core = join(ground, inner, []string{"internal/files", "internal/engine", "internal/lifecycleengine"})
)

// Libraries that the table speaks of together. A library outside of a rule's
// list is a dependency that nobody agreed to there.
var (
	// plainLibs compute and do no input or output of their own.
	plainLibs = []string{
		"github.com/google/uuid",
		"github.com/goccy/go-yaml",
		"github.com/expr-lang/expr",
		"github.com/santhosh-tekuri/jsonschema/v6",
		"github.com/netresearch/go-cron",
		"golang.org/x/sync",
		"golang.org/x/time",
		"go.opentelemetry.io/otel",
	}
	// anyLib is for the outer packages, which a program that embeds Holdfast
	// need not link. [Confined] still applies.
	anyLib = []string{"*"}
)

// Rule says what one package may import: of this module the packages in May, of
// other modules those in Libs. The standard library is free but for [Confined].
type Rule struct {
	Pkg  string // a folder of the module; "x/..." is x and all below it
	May  []string
	Libs []string
	Why  string
}

// Rules are the arrows, from the outside in. Where two rules match a package the
// longer one holds. Test files are free: a test may look down from anywhere.
var Rules = slices.Concat(
	[]Rule{
		{
			Pkg: "cmd/holdfast", May: []string{"internal/cli"},
			Why: "main only starts the command line",
		},
		{
			Pkg:  "internal/cli/...",
			May:  join(core, capabilities, adapters, []string{root, "client", "wire", "httpapi", "idem", "s3", "run/httpcall", "internal/demo", "internal/telemetry"}),
			Libs: anyLib,
			Why:  "the command line puts the whole together",
		},
		{
			Pkg: "internal/demo", May: join(capabilities, []string{root, "fault", "internal/clock"}), Libs: plainLibs,
			Why: "the demo tells the whole story, by what is public",
		},
		{
			Pkg: "internal/telemetry", May: []string{"fault"}, Libs: []string{"go.opentelemetry.io/otel"},
			Why: "where spans go is the program's choice: only the command line imports it",
		},
		{
			Pkg: "s3", May: []string{"batch", "fault"}, Libs: []string{"github.com/minio/minio-go/v7"},
			Why: "where artifacts are kept is the program's choice: an engine links no object store",
		},
		{
			Pkg: "run/httpcall", May: []string{root, "run", "fault"},
			Why: "who calls URLs for runs is the program's choice: an engine links no HTTP client",
		},
		{
			Pkg: "examples/...", May: join(capabilities, adapters, []string{root, "run/httpcall", "client", "wire", "httpapi", "idem", "fault", "holdfasttest"}), Libs: anyLib,
			Why: "an example is a user's program: it sees what is public",
		},
		{
			Pkg: "httpapi/...", May: join(core, capabilities, []string{root, "run/httpcall", "idem", "wire", "webhook"}), Libs: anyLib,
			Why: "the door knows no adapter, so it serves them all, and no command line",
		},
		{
			Pkg: "idem", May: join(core, []string{root, "wire"}), Libs: plainLibs,
			Why: "edge idempotency also serves users' own handlers, without our API",
		},
		{
			Pkg: "webhook", May: []string{"fault", "internal/clock"},
			Why: "who is called verifies with it, and links no engine",
		},
		{
			Pkg: "client", May: []string{"wire", "fault"}, Libs: plainLibs,
			Why: "a client links no engine",
		},
		{
			Pkg: "wire", May: []string{"fault"},
			Why: "the shapes of the wire are plain values",
		},
		{
			Pkg: "holdfasttest/...", May: join(core, adapters, []string{root, "internal/pgtest", "internal/testlevel"}), Libs: anyLib,
			Why: "users' tests and ours start an engine on a real database",
		},
	},
	each(capabilities, Rule{
		May: join(core, []string{root}), Libs: plainLibs,
		Why: "a capability is a Part handed to Open; it knows neither its siblings nor where rows are kept",
	}),
	[]Rule{{
		Pkg: root, May: core, Libs: plainLibs,
		Why: "the root knows no capability and no adapter by name",
	}},
	[]Rule{{
		Pkg: "internal/engine", May: join(ground, inner), Libs: plainLibs,
		Why: "the engine knows no capability and no adapter by name; the root is its public face",
	}, {
		Pkg: "internal/lifecycleengine", May: core, Libs: plainLibs,
		Why: "the runtime of package lifecycle, which is its public face, as the HTTP API uses it",
	}},
	each(inner, Rule{
		May: core, Libs: plainLibs,
		Why: "what the capabilities share knows none of them, nor the root",
	}),
	[]Rule{
		{
			Pkg: "sqlite", May: []string{root, "internal/engine", "internal/store", "internal/sharedsql", "internal/clock", "fault"},
			Libs: []string{"modernc.org/sqlite", "github.com/google/uuid"},
			Why:  "an adapter knows verbs by name alone, and no other adapter",
		},
		{
			Pkg: "postgres", May: []string{root, "internal/engine", "internal/store", "internal/sharedsql", "internal/clock", "fault"},
			Libs: []string{"github.com/jackc/pgx/v5", "github.com/google/uuid"},
			Why:  "an adapter knows verbs by name alone, and no other adapter",
		},
		{
			Pkg: "internal/sharedsql", May: []string{"internal/store"},
			Why: "SQL that both adapters have knows neither",
		},
		{
			Pkg: "internal/store", May: []string{"fault", "internal/clock"},
			Libs: []string{"github.com/google/uuid"},
			Why:  "the port is below everyone who meets at it",
		},
		{
			Pkg: "internal/files", May: []string{"fault"}, Libs: []string{"github.com/rogpeppe/go-internal"},
			Why: "whole files need a disk, and the way that each system locks",
		},
		{
			Pkg: "internal/strictjson", May: []string{"fault"},
			Why: "strict input needs nothing but a way to refuse",
		},
		{Pkg: "internal/clock", Why: "the node's time stands on the standard library alone"},
		{Pkg: "fault", Why: "the error type stands on the standard library alone"},

		// Not linked into any program of ours: nobody above imports them but
		// holdfasttest and tests.
		{
			Pkg: "internal/storetest/...", May: join(core, adapters, []string{root, "internal/pgtest", "internal/testlevel", "holdfasttest", "stream"}), Libs: anyLib,
			Why: "what a store must do is tested against every adapter, through the calls that users make",
		},
		{
			Pkg: "internal/storetest/everyverb", May: join(core, []string{"batch", "lifecycle", "run", "scope", "stream"}),
			Why: "tests of the SQL know every verb of the program",
		},
		{
			Pkg: "internal/pgtest/...", May: []string{"internal/clock", "fault"}, Libs: []string{"github.com/jackc/pgx/v5"},
			Why: "a PostgreSQL for tests knows nothing of what is tested",
		},
		{
			Pkg: "internal/testkit", May: []string{"internal/clock", "fault"},
			Why: "what many tests need knows nothing of what is tested",
		},
		{Pkg: "internal/testlevel", Why: "how thorough a test is depends on nothing that is tested"},
		{
			Pkg: "internal/testrun", May: []string{"internal/clock", "internal/pgtest", "internal/testlevel"},
			Why: "what runs the tests knows nothing of what is tested",
		},
		{Pkg: "internal/archtest", Why: "what judges the house stands on the standard library alone"},
	},
)

// BenchRules are the arrows of the module in bench/.
var BenchRules = []Rule{
	{Pkg: root, May: []string{"baseline"}, Libs: anyLib, Why: "a benchmark sees both systems"},
	{
		Pkg:  "baseline",
		Libs: []string{"github.com/holdfast-go/holdfast/internal/clock", "github.com/jackc/pgx/v5", "modernc.org/sqlite", "github.com/google/uuid"},
		Why:  "hand-written SQL to compare with shares nothing with what it is compared to",
	},
}

// Confinement keeps one import to the packages in Only. Test files are free.
type Confinement struct {
	Import string // with all below it
	Only   []string
	Why    string
}

// Confined are the imports that are kept to few places.
var Confined = []Confinement{
	{
		Import: "testing", Only: []string{"holdfasttest/...", "internal/testkit", "internal/testlevel", "internal/testrun", "internal/storetest/..."},
		Why: "a program that imports testing carries its flags",
	},
	{
		Import: "net/http",
		Only: []string{
			"httpapi/...", "idem", "wire", "client", "webhook", "internal/cli/...", "run/httpcall",
			"holdfasttest/...", "internal/storetest/...", "internal/pgtest/...", "examples/...",
		},
		Why: "who embeds the engine chooses whether to serve it",
	},
	{
		Import: "database/sql", Only: []string{"sqlite", "internal/storetest/...", "holdfasttest", "examples/..."},
		Why: "through database/sql a statement on PostgreSQL ran twice without an error",
	},
	{
		Import: "modernc.org/sqlite", Only: []string{"sqlite", "internal/storetest/...", "examples/..."},
		Why: "one adapter, one driver",
	},
	{
		Import: "github.com/jackc/pgx", Only: []string{"postgres", "internal/pgtest/...", "internal/storetest/...", "examples/..."},
		Why: "one adapter, one driver",
	},
	{
		Import: "github.com/minio/minio-go", Only: []string{"s3"},
		Why: "one port, one library behind it",
	},
	{
		Import: "github.com/danielgtaylor/huma", Only: []string{"httpapi/..."},
		Why: "the core serves nothing",
	},
	{
		Import: "github.com/alecthomas/kong", Only: []string{"internal/cli/..."},
		Why: "the core has no command line",
	},
	{
		Import: "go.opentelemetry.io/otel/sdk", Only: []string{"internal/telemetry"},
		Why: "a library traces through the API; the program chooses the SDK",
	},
	{
		Import: "go.opentelemetry.io/otel/exporters", Only: []string{"internal/telemetry"},
		Why: "a library traces through the API; the program chooses where to",
	},
	{
		Import: "github.com/prometheus", Only: []string{"httpapi/...", "internal/cli/...", "examples/..."},
		Why: "the core counts with what the standard library has; the door tells it",
	},
	{
		Import: "github.com/expr-lang/expr", Only: []string{"internal/workflow"},
		Why: "one language of expressions, one package that knows its library",
	},
	{
		Import: "github.com/expr-lang/expr/vm",
		Why:    "expressions are evaluated by our own code, which pays for each operation (decision 036)",
	},
	{
		Import: "github.com/google/go-cmp", Only: []string{"internal/storetest/..."},
		Why: "it panics on what it cannot compare, and is made for tests",
	},
	{
		Import: "pgregory.net/rapid", Only: []string{"holdfasttest/...", "internal/storetest/..."},
		Why: "property tests are tests",
	},
}

// mayAskTime are the packages whose product code may read the node's clock; all
// others go through internal/clock, or ask the database.
var mayAskTime = []string{"internal/clock", "internal/pgtest/...", "internal/storetest/...", "examples/..."}

func join(lists ...[]string) []string { return slices.Concat(lists...) }

// each returns the rule r for every package in pkgs.
func each(pkgs []string, r Rule) []Rule {
	rules := make([]Rule, len(pkgs))
	for i, pkg := range pkgs {
		rules[i] = r
		rules[i].Pkg = pkg
	}
	return rules
}
