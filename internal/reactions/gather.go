package reactions

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Gathering takes marks away, where appends leave them, and notes what they say
// where takes look for it. It remembers how far it has come with each reaction, on
// one shard, and begins again at the beginning when there is nothing more behind
// that. Not safe for concurrent use.
type Gathering struct {
	come map[string]place
}

// place is the key of a mark, of one reaction.
type place struct {
	workspace, stream string
	version           int64
}

var beginning = place{version: -1}

// gatherLimit is how many marks one statement takes away at the most, of each
// reaction.
const gatherLimit = 2000

type picked struct {
	gone     int64
	reaction string
	last     place
}

var gatherVerb = store.NewVerb(store.Decl{Name: "reactions.gather", Lane: store.Work}, nil,
	func(from [][4]any, args *store.Args) {
		args.Text(text(from))
		args.Int(gatherLimit)
	},
	func(all *[]picked, row store.Row) error {
		var p picked
		err := row.Scan(&p.gone, &p.reaction, &p.last.workspace, &p.last.stream, &p.last.version)
		*all = append(*all, p)
		return err
	})

// Next gathers some marks of some reactions, and says whether there were any.
func (g *Gathering) Next(ctx context.Context, d store.Doer, at store.Place, names []string) (bool, error) {
	if g.come == nil {
		g.come = make(map[string]place)
	}
	for {
		from := make([][4]any, len(names))
		for i, n := range names {
			p := g.from(n)
			from[i] = [4]any{n, p.workspace, p.stream, p.version}
		}
		some, err := gatherVerb.DoAt(ctx, d, at, from)
		if err != nil {
			return false, err
		}
		if again := g.advance(names, some); !again || (len(some) > 0 && some[0].gone > 0) {
			return len(some) > 0 && some[0].gone > 0, nil
		}
	}
}

func (g *Gathering) from(name string) place {
	if p, ok := g.come[name]; ok {
		return p
	}
	return beginning
}

// advance notes how far the reactions have come, and says whether some begin again
// at the beginning.
func (g *Gathering) advance(names []string, some []picked) (again bool) {
	was := g.come
	g.come = make(map[string]place, len(some))
	for _, p := range some {
		g.come[p.reaction] = p.last
	}
	for _, n := range names {
		_, before := was[n]
		_, now := g.come[n]
		again = again || (before && !now)
	}
	return again
}

// Gather gathers some marks from the beginning.
func Gather(ctx context.Context, d store.Doer, at store.Place, names []string) (bool, error) {
	return new(Gathering).Next(ctx, d, at, names)
}
