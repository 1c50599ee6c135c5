package live

import (
	"context"
	"encoding/json"
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
}

// limit is how many events of the histories one read returns.
var limit = 5000

// brief is how many bytes the data of an event may have, or it is left out.
const brief = 512

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
	err := row.Scan(&snapshot, &f.now, &i.Stamp, &i.ID, &i.N, &i.Stream, &i.Version, &i.Name, &i.Data, &i.Actor, &i.At)
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
		if h, err = parseSnapshot(at.snapshot); len(h.Open) > 0 { // they may have written long ago
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
// leave events for a later read whose ids are old: those of transactions that were long.
func Read(ctx context.Context, d store.Doer, from Place, far bool) (Batch, error) {
	begun := retention.Now()
	far = from.Going || far && from.Upto == nil
	f, err := listVerb.Do(store.Whole(ctx), d, from.args(far))
	f.far = far
	switch {
	case err != nil:
		return Batch{}, err
	case f.snapshot != nil && from.Far.Next > f.snapshot.Next, f.snapshot == nil && from.Far.Next > f.now.Add(time.Minute).UnixMilli():
		return Batch{}, ahead()
	}
	b := Batch{Items: f.items, At: f.now, Far: far}
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

// args returns the arguments of the statement that continues at a place.
func (p *Place) args(far bool) listArgs {
	a := listArgs{after: p.From, limit: limit, bytes: brief, farNext: p.Far.Next, farOpen: p.Far.open(), farRead: p.Far.read(),
		from: p.From, nearNext: p.Near.Next, nearOpen: p.Near.open(), nearRead: p.Near.read(), uptoOpen: "[]"}
	switch {
	case p.Upto != nil:
		a.after, a.n, a.uptoNext, a.uptoOpen = p.After, p.N, p.Upto.Next, p.Upto.open()
	case far:
		a.after = p.Low
	}
	return a
}
