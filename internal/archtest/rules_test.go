package archtest

import "slices"

// root is the path of the root package, holdfast, in the module.
const root = "."

// Groups of packages with common rules.
var (
	// capabilities are the five capabilities. They never import each other: one uses another
	// by name, through the engine.
	capabilities = []string{"lifecycle", "stream", "run", "batch", "scope"}

	// adapters have the SQL of one database each.
	adapters = []string{"sqlite", "postgres"}

	// ground has the packages that all others may use.
	ground = []string{"fault", "internal/clock", "internal/strictjson", "internal/store"}

	// inner has the packages that the capabilities share. Add new packages of this kind here.
	inner = []string{
		"internal/lease", "internal/meter", "internal/wake", "internal/events",
		"internal/entities", "internal/scopestore", "internal/reactions", "internal/retention", "internal/feed", "internal/streamclose", "internal/snapshots", "internal/subjectkey",
		"internal/effects", "internal/refusals", "internal/audit", "internal/lifecycleconfig", "internal/configdoc", "internal/diagram", "internal/workflow", "internal/keys", "internal/idempotency", "internal/claimtoken", "internal/seal", "internal/secretref", "internal/secrets", "internal/quota", "internal/webhooks", "internal/remotehandler", "internal/remote", "internal/wallets", "internal/batchengine", "internal/runengine", "internal/transition", "internal/timeline",
		"internal/bulk", "internal/check", "internal/crash", "internal/nodes", "internal/inbox", "internal/live",
	}

	// core has the packages that root and the capabilities may use.
	core = join(ground, inner, []string{"internal/files", "internal/engine", "internal/lifecycleengine"})
)

// Groups of libraries with common rules. A package may not use a library outside the list of its
// rule.
var (
	// plainLibs compute, and do no input or output.
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
	// anyLib is for outer packages, which a program that embeds Holdfast does not link.
	// [Confined] still applies.
	anyLib = []string{"*"}
)

// Rule defines the allowed imports of a package: the packages of this module in May, and the
// modules in Libs. The standard library is allowed, except for [Confined].
type Rule struct {
	Pkg  string // a folder of the module; "x/..." is x and all packages below it
	May  []string
	Libs []string
	Why  string
}

// Rules are the import rules, from the outer to the inner packages. If two rules match a
// package, the longer pattern applies. Test files may import anything.
var Rules = slices.Concat(
	[]Rule{
		{
			Pkg: "cmd/holdfast", May: []string{"internal/cli"},
			Why: "main only starts the command line",
		},
		{
			Pkg:  "internal/cli/...",
			May:  join(core, capabilities, adapters, []string{root, "client", "wire", "httpapi", "web", "idem", "s3", "run/httpcall", "internal/demo", "internal/starter", "internal/tlsfiles", "internal/telemetry"}),
			Libs: anyLib,
			Why:  "the command line combines all packages",
		},
		{
			Pkg: "internal/demo", May: join(capabilities, []string{root, "fault", "internal/clock"}), Libs: plainLibs,
			Why: "the demo shows all capabilities through the public API",
		},
		{
			Pkg: "internal/starter", May: nil,
			Why: "a starter project is files",
		},
		{
			Pkg: "internal/starter/go", May: join(capabilities, []string{root, "fault", "sqlite", "holdfasttest"}), Libs: anyLib,
			Why: "a starter project is a user's program: it uses the public API",
		},
		{
			Pkg: "internal/tlsfiles", May: []string{"fault"},
			Why: "TLS from files depends on nothing that it protects",
		},
		{
			Pkg: "internal/telemetry", May: []string{"fault", "internal/clock", "internal/tlsfiles"}, Libs: []string{"go.opentelemetry.io/otel", "google.golang.org/protobuf"},
			Why: "the program chooses the trace exporter: only the command line imports it",
		},
		{
			Pkg: "s3", May: []string{"batch", "fault", "internal/clock"},
			Why: "the program chooses the artifact store: an engine links no object store",
		},
		{
			Pkg: "run/httpcall", May: []string{root, "run", "fault", "internal/sameorigin"},
			Why: "the program chooses the HTTP client of runs: an engine links none",
		},
		{
			Pkg: "internal/sameorigin", May: []string{"fault"},
			Why: "it is about HTTP clients, which an engine does not link",
		},
		{
			Pkg: "examples/...", May: join(capabilities, adapters, []string{root, "run/httpcall", "client", "wire", "httpapi", "idem", "fault", "holdfasttest"}), Libs: anyLib,
			Why: "an example is a user's program: it uses the public API",
		},
		{
			Pkg: "httpapi/...", May: join(core, capabilities, []string{root, "run/httpcall", "idem", "wire", "webhook", "internal/sameorigin"}), Libs: anyLib,
			Why: "the API imports no adapter, so that it serves all of them, and no command line",
		},
		{
			Pkg: "idem", May: join(core, []string{root, "wire"}), Libs: plainLibs,
			Why: "idempotency also serves users' own HTTP handlers, without our API",
		},
		{
			Pkg: "web", May: []string{"internal/docsite"},
			Why: "the dashboard is files; whatever it shows or does is a request to the API",
		},
		{
			Pkg: "internal/docsite", May: []string{"internal/markdown", "docs"},
			Why: "the documentation is files",
		},
		{
			Pkg: "docs",
			Why: "the pages are files",
		},
		{
			Pkg: "internal/markdown",
			Why: "Markdown is text",
		},
		{
			Pkg: "webhook", May: []string{"fault", "internal/clock"},
			Why: "receivers of webhooks use it and link no engine",
		},
		{
			Pkg: "client", May: []string{"wire", "fault"}, Libs: plainLibs,
			Why: "a client links no engine",
		},
		{
			Pkg: "wire", May: []string{"fault"},
			Why: "wire types are plain values",
		},
		{
			Pkg: "holdfasttest/...", May: join(core, adapters, []string{root, "internal/pgtest", "internal/testlevel"}), Libs: anyLib,
			Why: "users' tests and ours start an engine on a real database",
		},
	},
	each(capabilities, Rule{
		May: join(core, []string{root}), Libs: plainLibs,
		Why: "a capability is a Part passed to Open; it imports neither other capabilities nor adapters",
	}),
	[]Rule{{
		Pkg: root, May: core, Libs: plainLibs,
		Why: "the root imports no capability and no adapter",
	}},
	[]Rule{{
		Pkg: "internal/engine", May: join(ground, inner), Libs: plainLibs,
		Why: "the engine imports no capability and no adapter; the root is its public API",
	}, {
		Pkg: "internal/lifecycleengine", May: core, Libs: plainLibs,
		Why: "the engine of package lifecycle, which is its public API; the HTTP API uses it too",
	}},
	each(inner, Rule{
		May: core, Libs: plainLibs,
		Why: "shared packages import neither the capabilities nor the root",
	}),
	[]Rule{
		{
			Pkg: "sqlite", May: []string{root, "internal/engine", "internal/store", "internal/sharedsql", "internal/clock", "fault"},
			Libs: []string{"modernc.org/sqlite", "github.com/google/uuid"},
			Why:  "an adapter knows verbs only by name, and imports no other adapter",
		},
		{
			Pkg: "postgres", May: []string{root, "internal/engine", "internal/store", "internal/sharedsql", "internal/clock", "fault"},
			Libs: []string{"github.com/jackc/pgx/v5", "github.com/google/uuid"},
			Why:  "an adapter knows verbs only by name, and imports no other adapter",
		},
		{
			Pkg: "internal/sharedsql", May: []string{"internal/store"},
			Why: "SQL shared by the adapters imports neither of them",
		},
		{
			Pkg: "internal/store", May: []string{"fault", "internal/clock"},
			Libs: []string{"github.com/google/uuid"},
			Why:  "the store interface is below its users and its implementations",
		},
		{
			Pkg: "internal/files", May: []string{"fault"}, Libs: []string{"github.com/rogpeppe/go-internal"},
			Why: "files need the disk, and the file locks of each system",
		},
		{
			Pkg: "internal/strictjson", May: []string{"fault"},
			Why: "strict decoding needs only errors",
		},
		{Pkg: "internal/clock", Why: "the clock uses only the standard library"},
		{Pkg: "fault", Why: "the error type uses only the standard library"},

		// These packages are not linked into programs: only holdfasttest and tests import them.
		{
			Pkg: "internal/storetest/...", May: join(core, adapters, []string{root, "internal/pgtest", "internal/testkit", "internal/testlevel", "holdfasttest", "stream"}), Libs: anyLib,
			Why: "stores are tested with every adapter, through the public API",
		},
		{
			Pkg: "internal/storetest/everyverb", May: join(core, []string{"batch", "lifecycle", "run", "scope", "stream"}),
			Why: "tests of the SQL need every verb of the program",
		},
		{
			Pkg: "internal/pgtest/...", May: []string{"internal/clock", "fault"}, Libs: []string{"github.com/jackc/pgx/v5"},
			Why: "a PostgreSQL for tests does not depend on the tested packages",
		},
		{
			Pkg: "internal/browser", May: []string{"internal/pgtest", "internal/testlevel"},
			Why: "a browser for tests does not depend on the tested packages",
		},
		{
			Pkg: "internal/testkit", May: []string{"internal/clock", "fault"},
			Why: "test helpers do not depend on the tested packages",
		},
		{Pkg: "internal/testlevel", Why: "test levels do not depend on the tested packages"},
		{
			Pkg: "internal/testrun", May: []string{"internal/clock", "internal/pgtest", "internal/testlevel"},
			Why: "the test runner does not depend on the tested packages",
		},
		{Pkg: "internal/docstest", May: []string{"internal/markdown"}, Why: "pages are read as they are rendered"},
		{Pkg: "internal/release", Why: "it runs before there is a release, so it uses only the standard library"},
		{Pkg: "internal/archtest", Why: "the architecture tests use only the standard library"},
	},
)

// BenchRules are the import rules of the module in bench/.
var BenchRules = []Rule{
	{Pkg: root, May: []string{"baseline", "peers/peer"}, Libs: anyLib, Why: "a benchmark compares both systems"},
	{
		Pkg:  "baseline",
		Libs: []string{"github.com/holdfast-go/holdfast/internal/clock", "github.com/jackc/pgx/v5", "modernc.org/sqlite", "github.com/google/uuid"},
		Why:  "the hand-written baseline shares no code with Holdfast",
	},
}

// Confinement confines an import to the packages in Only. Test files may import anything.
type Confinement struct {
	Import string // with all packages below it
	Only   []string
	Why    string
}

// Confined are the confined imports.
var Confined = []Confinement{
	{
		Import: "testing", Only: []string{"holdfasttest/...", "internal/browser", "internal/testkit", "internal/testlevel", "internal/testrun", "internal/storetest/..."},
		Why: "a program that imports testing gets its flags",
	},
	{
		Import: "net/http",
		Only: []string{
			"httpapi/...", "idem", "wire", "web", "client", "webhook", "internal/cli/...", "run/httpcall", "s3", "internal/telemetry", "internal/sameorigin",
			"holdfasttest/...", "internal/storetest/...", "internal/pgtest/...", "internal/testkit", "internal/starter/go", "examples/...",
		},
		Why: "a program that embeds the engine chooses whether to serve HTTP",
	},
	{
		Import: "database/sql", Only: []string{"sqlite", "internal/storetest/...", "holdfasttest", "internal/starter/go", "examples/..."},
		Why: "database/sql executed a statement on PostgreSQL twice without an error",
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
		Import: "github.com/prometheus", Only: []string{"httpapi/...", "internal/cli/...", "examples/..."},
		Why: "the core counts with the standard library; the API exports the metrics",
	},
	{
		Import: "github.com/expr-lang/expr", Only: []string{"internal/workflow"},
		Why: "one package for the tokens of expressions",
	},
	{
		Import: "github.com/expr-lang/expr/vm",
		Why:    "our own code evaluates expressions and charges for each operation (decision 036)",
	},
	{
		Import: "github.com/expr-lang/expr/ast",
		Why:    "it looks for methods by name, so the program would contain all methods (decision 057)",
	},
	{
		Import: "github.com/expr-lang/expr/checker",
		Why:    "it looks for methods by name, so the program would contain all methods (decision 057)",
	},
	{
		Import: "github.com/google/go-cmp", Only: []string{"internal/storetest/..."},
		Why: "it panics on values that it cannot compare, and is made for tests",
	},
	{
		Import: "pgregory.net/rapid", Only: []string{"holdfasttest/...", "internal/storetest/..."},
		Why: "property tests are tests",
	},
}

// mayAskTime lists the packages whose product code may read the node's clock. All others use
// internal/clock or the time of the database.
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
