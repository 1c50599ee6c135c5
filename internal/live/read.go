package live

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Item is an event: one of the histories, with an id and a stamp, or one of the users', with a position.
type Item struct {
	Position int64
	Stamp    int64
	ID       string
	N        int64
	events.Event
}

// Batch is the result of a read.
type Batch struct {
	Items []Item
	Place Place     // after it
	At    time.Time // of the database
	More  bool      // there is more than the limit
	Far   bool      // it went back far
	Reset bool      // events before it were left out
	start Place     // before it, with the horizon of the read; see step
}

// step returns the place after one more event of a batch. The first one begins at its start.
func (b *Batch) step(p Place, i *Item) Place {
	switch one := []Item{*i}; {
	case i.Position > 0: // users' events come after all others of the batch
		p = b.Place
		p.Position = i.Position
	case p.After != "":
		p.After, p.N = i.ID, i.N
	case b.Far:
		p.Far = p.Far.with(one)
	default:
		p.Near = p.Near.with(one)
	}
	return p
}

// limit is how many events of the histories a read of the shared reader returns.
var limit = 5000

// brief is how many bytes the data of an event may have, or it is left out: 5,000 events of a batch take at most 20 MB.
const brief = 4096

type listArgs struct {
	after    string `arg:"after"`
	n        int64  `arg:"n"`
	limit    int    `arg:"limit"`
	bytes    int64  `arg:"bytes"`
	farNext  int64  `arg:"far_next"`
	farOpen  string `arg:"far_open"`
	farRead  string `arg:"far_read"`
	from     string `arg:"from"`
	nearNext int64  `arg:"near_next"`
	nearOpen string `arg:"near_open"`
	nearRead string `arg:"near_read"`
	uptoNext int64  `arg:"upto_next"`
	uptoOpen string `arg:"upto_open"`
}

// found is what one statement returned.
type found struct {
	snapshot *Horizon // nil on SQLite
	far      bool
	now      time.Time
	items    []Item
}

// position is where a reader that wants only what is new begins.
type position struct {
	snapshot string
	next     int64
	read     string
}

type horizonArgs struct {
	after string `arg:"after"`
}

var (
	listVerb    = store.VerbOf[listArgs](store.Decl{Name: "history.list_new", Lane: store.Read}, nil, scanItem)
	horizonVerb = store.VerbOf[horizonArgs](store.Decl{Name: "history.get_horizon", Lane: store.Read}, nil,
		func(p *position, row store.Row) error { return row.Scan(&p.snapshot, &p.next, &p.read) })
)

// scanItem scans a row. Each row has the snapshot; a row without a version has nothing else.
func scanItem(f *found, row store.Row) error {
	var i Item
	var snapshot string
	err := row.Scan(&snapshot, &f.now, &i.Stamp, &i.ID, &i.N, &i.Stream, &i.Version, &i.Name, &i.Data, &i.Correlation, &i.Causation, &i.Actor, &i.At)
	if err != nil {
		return err
	}
	if f.snapshot == nil && snapshot != "" {
		h, err := parseSnapshot(snapshot)
		if err != nil {
			return err
		}
		f.snapshot = &h
	}
	if i.Version >= 0 {
		f.items = append(f.items, i)
	}
	return nil
}

// Start returns the place after everything that is visible now, in the context's workspace. On SQLite, a few of the last
// events may be told as new: those that are as new as the newest one, but have an old id.
func Start(ctx context.Context, d store.Doer) (Place, error) {
	begun := retention.Now()
	from, low := retention.Back(begun, near), retention.Back(begun, reach)
	at, err := horizonVerb.Do(ctx, d, horizonArgs{from})
	if err == nil && at.snapshot == "" && at.next == 0 { // SQLite: the newest event, or an earlier one, is older
		at, err = horizonVerb.Do(ctx, d, horizonArgs{low})
	}
	if err != nil {
		return Place{}, err
	}
	h := Horizon{Next: at.next}
	if at.snapshot != "" {
		if h, err = parseSnapshot(at.snapshot); h.open(math.MaxInt64) { // it may have written long ago
			low = retention.Back(begun, longest)
		}
	} else {
		err = json.Unmarshal([]byte(at.read), &h.Read)
	}
	if err != nil {
		return Place{}, err
	}
	head, err := feed.Head(ctx, d)
	return Place{Position: head, Far: h, Near: h, From: from, Low: low}, err
}

// Read returns the events of the context's workspace that reads up to a place have not returned. If far is false, it may
// leave events for a later read whose ids are old: those of transactions that were long. It returns up to limit events of the
// histories.
func Read(ctx context.Context, d store.Doer, from Place, far bool, limit int) (Batch, error) {
	if from.Upto == nil && from.After != "" {
		return readOld(ctx, d, from, limit)
	}
	begun := retention.Now()
	far = from.Going || far && from.Upto == nil
	f, err := listVerb.Do(store.Whole(ctx), d, from.args(far, limit))
	f.far = far
	switch {
	case err != nil:
		return Batch{}, err
	case f.snapshot != nil && from.Far.Next > f.snapshot.Next, f.snapshot == nil && from.Far.Next > f.now.Add(time.Minute).UnixMilli():
		return Batch{}, ahead()
	}
	b := Batch{Items: f.items, At: f.now, Far: far, start: from}
	b.start.Going = far
	if b.start.Upto == nil && f.snapshot != nil {
		b.start.Upto, b.start.Begun, b.start.After = f.snapshot, begun, from.args(far, limit).after
	}
	b.Place, b.More = from.after(&f, begun, limit)
	page, err := feed.ReadBrief(store.Whole(ctx), d, from.Position, events.MaxRead, brief)
	if err != nil {
		return Batch{}, err
	}
	for _, e := range page.Items {
		b.Items = append(b.Items, Item{Position: e.Position, Event: e.Event})
	}
	b.Place.Position = page.Next
	b.More = b.More || len(page.Items) == events.MaxRead
	return b, nil
}

// oldBytes is the approximate size of what readOld returns at once.
const oldBytes = store.PageBytes / 256

// readOld reads what a place from long ago has missed on SQLite, in the order of ids and up to Begun. In the order of times,
// each page would sort everything that is left.
func readOld(ctx context.Context, d store.Doer, from Place, limit int) (Batch, error) {
	budget := store.NewBudget(oldBytes)
	ctx, limit = budget.In(ctx), budget.Rows(limit)
	rows, err := retention.Tail(ctx, d, from.After, from.N, limit)
	if err != nil {
		return Batch{}, err
	}
	b := Batch{Place: from, start: from, More: true}
	ends := len(rows) < limit && !store.Cut(ctx)
	for _, t := range rows {
		i := Item{Stamp: t.At.UnixMilli(), ID: t.ID, N: t.N, Event: t.Event}
		if ends = ends || t.ID > from.Begun; t.ID > from.Begun {
			break
		}
		if b.Place.After, b.Place.N = t.ID, t.N; !from.covers(&i) {
			b.Items = append(b.Items, i)
		}
	}
	if ends { // what is newer is read in the order of times
		b.Place.From, b.Place.Low = max(from.From, from.Begun), from.Begun
		b.Place.Begun, b.Place.After, b.Place.N = "", "", 0
	}
	return b, nil
}

// args returns the arguments of the statement that continues at a place.
func (p *Place) args(far bool, limit int) listArgs {
	a := listArgs{after: p.From, limit: limit, bytes: brief, farNext: p.Far.Next, farOpen: p.Far.openList(), farRead: p.Far.read(),
		from: p.From, nearNext: p.Near.Next, nearOpen: p.Near.openList(), nearRead: p.Near.read(), uptoOpen: "[]"}
	switch {
	case p.Upto != nil:
		a.after, a.n, a.uptoNext, a.uptoOpen = p.After, p.N, p.Upto.Next, p.Upto.openList()
	case far:
		a.after = p.Low
	}
	return a
}
