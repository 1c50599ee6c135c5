package reactions

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Gathering takes marks away, where appends leave them, and notes what they say
// where takes look for it. It remembers how far it has come with each reaction, on
// one shard, and begins again at the beginning after a page that was not full, and
// after some that were: what is marked before that waits for as long. Not safe for
// concurrent use.
type Gathering struct {
	come  map[string]place
	pages map[string]int // full ones, since the beginning
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

// mostPages is how many full pages are gathered before it begins again.
const mostPages = 16

type picked struct {
	gone     int64
	reaction string
	last     place
	count    int64
}

var gatherVerb = store.NewVerb(store.Decl{Name: "reactions.gather", Lane: store.Work}, nil,
	func(from [][4]any, args *store.Args) {
		args.Text(text(from))
		args.Int(gatherLimit)
	},
	func(all *[]picked, row store.Row) error {
		var p picked
		err := row.Scan(&p.gone, &p.reaction, &p.last.workspace, &p.last.stream, &p.last.version, &p.count)
		*all = append(*all, p)
		return err
	})

// Next gathers some marks of some reactions, and says whether there were any.
func (g *Gathering) Next(ctx context.Context, d store.Doer, at store.Place, names []string) (bool, error) {
	onward := len(g.come) > 0
	some, err := g.page(ctx, d, at, names)
	if err == nil && onward && !gone(some) { // there may be some before
		g.come = nil
		some, err = g.page(ctx, d, at, names)
	}
	return gone(some), err
}

func gone(some []picked) bool { return len(some) > 0 && some[0].gone > 0 }

// page gathers a page, and notes how far the reactions have come.
func (g *Gathering) page(ctx context.Context, d store.Doer, at store.Place, names []string) ([]picked, error) {
	from := make([][4]any, len(names))
	for i, n := range names {
		p, ok := g.come[n]
		if !ok {
			p = beginning
		}
		from[i] = [4]any{n, p.workspace, p.stream, p.version}
	}
	some, err := gatherVerb.DoAt(ctx, d, at, from)
	if err != nil {
		return nil, err
	}
	come, pages := make(map[string]place), make(map[string]int)
	for _, p := range some {
		if n := g.pages[p.reaction] + 1; p.count >= gatherLimit && n < mostPages {
			come[p.reaction], pages[p.reaction] = p.last, n
		}
	}
	g.come, g.pages = come, pages
	return some, nil
}

// Gather gathers some marks from the beginning.
func Gather(ctx context.Context, d store.Doer, at store.Place, names []string) (bool, error) {
	return new(Gathering).Next(ctx, d, at, names)
}
