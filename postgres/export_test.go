package postgres

import (
	"io/fs"
	"maps"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	MigratedShape = migratedShape
	ShapeSQL      = shapeSQL
)

// Migrations replaces the migrations of a program.
func Migrations(files fs.FS) Option { return Option{func(d *Database) { d.migrations = files }} }

// Pools returns the pools of a store by their names.
func Pools(s store.Store) map[string]*pgxpool.Pool {
	own := s.(*adapter)
	return map[string]*pgxpool.Pool{"pool": own.pool, "quick": own.quick, "vital": own.vital}
}

// Session are the settings of every connection of the engine.
var Session = session

// GateSQL creates what a gated store needs in its database: pass returns its argument once the gate
// is open, and now is the database's time at that moment, regardless of the statement's snapshot.
const GateSQL = `CREATE SCHEMA gate;
CREATE FUNCTION gate.pass(x anyelement) RETURNS anyelement LANGUAGE plpgsql VOLATILE AS
$$ BEGIN PERFORM pg_advisory_xact_lock_shared(22); RETURN x; END $$;
CREATE FUNCTION gate.now() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS
$$ BEGIN RETURN clock_timestamp() + (SELECT c.shift FROM holdfast.clock c); END $$`

// Gated is a store of which one statement at a time can be made to wait at a gate: its snapshot is
// taken, and it has locked nothing. Every predicate names the shard, so nothing is read before the
// shard is known.
type Gated struct {
	*adapter
	all map[string]verb
}

// NewGated returns a store that serves every caller alone: a group's statement is tested by its
// text.
func NewGated(s store.Store) *Gated {
	g := &Gated{adapter: s.(*adapter)}
	g.grouper = nil
	g.quick.Close()
	g.quick = g.pool // pairs wait at the gate for longer than the lock timeout of a group
	now := strings.NewReplacer(tokens(g.schema, true, forms[""]).Replace("{now}"), "gate.now()")
	g.all = make(map[string]verb, len(g.verbs))
	for name, v := range g.verbs {
		g.all[name] = v.each(inlined(g.schema)).each(now.Replace)
	}
	g.verbs = g.all
	return g
}

// Inlined returns the text of every verb; for a verb that calls a function of the schema's owner it
// returns the function's text, under whose plan and locks it runs. The call is under the name of
// the verb and ".call".
func Inlined(schema string) (store.Texts, error) {
	all, err := texts(schema, true)
	inline := inlined(schema)
	for name, text := range maps.Clone(all) {
		if whole := inline(text); whole != text {
			all[name], all[name+".call"] = whole, text
		}
	}
	return all, err
}

// inlined returns a function that replaces a statement that calls an owner's function with the text
// of that function. Their parameters are the same.
func inlined(schema string) func(string) string {
	script, err := opener{URL("", Schema(schema))}.Script(store.Options{})
	if err != nil {
		panic(err)
	}
	bodies := make(map[string]string)
	for _, m := range definer.FindAllStringSubmatch(script, -1) {
		bodies[m[1]] = m[2]
	}
	return func(text string) string {
		if m := calls.FindStringSubmatch(remark.ReplaceAllString(text, "")); m != nil && bodies[m[1]] != "" {
			return bodies[m[1]]
		}
		return text
	}
}

// Forms returns the forms of a verb's statement, if it locks or writes anything.
func (g *Gated) Forms(name string) (all []string) {
	v := g.all[name]
	if !Locks(v.text) {
		return nil
	}
	all = append(all, "")
	if v.fast != "" {
		all = append(all, "fast")
	}
	if v.group != v.text {
		all = append(all, "group")
	}
	return all
}

// Locks reports whether a statement locks or writes anything.
func Locks(text string) bool { return locks.MatchString(remark.ReplaceAllString(text, "")) }

var (
	remark  = regexp.MustCompile(`--.*`)
	definer = regexp.MustCompile(`(?s)\nCREATE FUNCTION "\w+"\.(\w+)\([^)]*\) RETURNS [^$]*SECURITY DEFINER[^$]* AS \$\$(.*?)\$\$`)
	calls   = regexp.MustCompile(`^\s*SELECT (?:1 FROM )?"\w+"\.(\w+)\(\$1::smallint`)
	locks   = regexp.MustCompile(`\b(drop_events|prune_history|FOR UPDATE|FOR (?:KEY )?SHARE|FOR NO KEY UPDATE|INSERT INTO|UPDATE|DELETE FROM|pg_(try_)?advisory_\w+)\b`)
	shard   = regexp.MustCompile(`\$1(?:::smallint(?:\[\])?|\b)`)
)

// Arm makes a verb's statement wait at the gate, in one of its forms, or none.
func (g *Gated) Arm(name, form string) {
	g.verbs = g.all
	if name == "" {
		return
	}
	v := g.all[name]
	switch form {
	case "":
		v.fast = ""
	case "group":
		v.fast, v.text, v.unmarked = "", v.group, v.groupUnmarked
	}
	g.verbs = maps.Clone(g.all)
	g.verbs[name] = v.each(func(text string) string {
		return shard.ReplaceAllStringFunc(text, func(s string) string {
			if s == "$1" {
				s += "::smallint"
			}
			return "(SELECT gate.pass(" + s + "))"
		})
	})
}

// each changes every text of a verb.
func (v verb) each(f func(string) string) verb {
	return verb{f(v.text), f(v.fast), f(v.group), f(v.unmarked), f(v.groupUnmarked)}
}

// Base returns the adapter's own store.
func (g *Gated) Base() store.Store { return g.adapter }
