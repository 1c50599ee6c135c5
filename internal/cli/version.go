package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/sqlite"
)

// version and revision are the version and the commit of a release, which the linker sets (-X). Without them, the Go command
// knows the version of a module that it has downloaded, and the commit of a checkout.
var version, revision string

// versions is the version information of the program.
type versions struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Schema   int    `json:"schema"`
	SQLite   string `json:"sqliteDriver,omitempty"`
	Postgres string `json:"postgresDriver,omitempty"`
}

// build reads the build information of the binary.
func build() versions {
	v := versions{Version: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	v.Version = cmp.Or(version, info.Main.Version, v.Version)
	set := make(map[string]string)
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	v.Revision = set["vcs.revision"]
	if set["vcs.modified"] == "true" {
		v.Revision += " (modified)"
	}
	v.Revision = cmp.Or(revision, v.Revision)
	for _, d := range info.Deps {
		switch d.Path {
		case "modernc.org/sqlite":
			v.SQLite = d.Path + " " + d.Version
		case "github.com/jackc/pgx/v5":
			v.Postgres = d.Path + " " + d.Version
		}
	}
	return v
}

// Run prints the version information.
func (c *versionCommand) Run(p *program) (err error) {
	v := build()
	if v.Schema, err = knownSchema(); err != nil {
		return err
	}
	if c.Output == "json" {
		return p.showJSON(v)
	}
	return facts("holdfast", v.Version, "revision", v.Revision, "go", v.Go, "schema", strconv.Itoa(v.Schema),
		"sqlite driver", v.SQLite, "postgres driver", v.Postgres).write(p.stdout)
}

var migrationHeading = regexp.MustCompile(`(?m)^-- migration (\d+): `)

// knownSchema returns the number of the newest migration. Both adapters have the same
// migrations, and the script has a heading for each.
func knownSchema() (int, error) {
	script, err := store.DatabaseOf(sqlite.File("unused.db")).Script(store.Options{})
	if err != nil {
		return 0, err
	}
	all := migrationHeading.FindAllStringSubmatch(script, -1)
	if len(all) == 0 {
		return 0, fmt.Errorf("the migration script has no migration heading")
	}
	return strconv.Atoi(all[len(all)-1][1])
}
