package live

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/retention"
)

// Horizon describes the events of the histories that were visible to a read. On PostgreSQL, the stamp of an event is the
// transaction that wrote it; on SQLite, its time.
type Horizon struct {
	// Next is the first stamp that was not visible.
	Next int64 `json:"n,omitempty"`
	// Open are smaller stamps that were not visible either: of open transactions (PostgreSQL).
	Open []int64 `json:"o,omitempty"`
	// Begun is how many transactions had begun that are not smaller than Next (PostgreSQL): Next is only greater than those that had
	// ended, so a transaction may be open and not in Open.
	Begun int64 `json:"x,omitempty"`
	// Read are the events with the stamp Next that were visible: the last n by the end of the id (SQLite).
	Read map[string]int64 `json:"r,omitempty"`
}

// parseSnapshot parses a pg_snapshot, xmin:xmax:xip,xip,…, and the number of transactions that had begun since xmax.
func parseSnapshot(text string) (h Horizon, err error) {
	parts := strings.SplitN(text, ":", 4)
	if len(parts) != 4 {
		return h, fault.New(fault.Internal, "%q is not a snapshot", text)
	}
	if h.Begun, err = strconv.ParseInt(parts[3], 10, 64); err != nil {
		return h, err
	}
	if h.Next, err = strconv.ParseInt(parts[1], 10, 64); err != nil || parts[2] == "" {
		return h, err
	}
	for one := range strings.SplitSeq(parts[2], ",") {
		open, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			return h, err
		}
		h.Open = append(h.Open, open)
	}
	return h, nil
}

// open reports whether a transaction was open that had begun before a stamp.
func (h Horizon) open(before int64) bool {
	return h.Begun > 0 && h.Next < before || slices.ContainsFunc(h.Open, func(x int64) bool { return x < before })
}

func (h Horizon) covers(i *Item) bool {
	if i.Stamp != h.Next {
		return i.Stamp < h.Next && !slices.Contains(h.Open, i.Stamp)
	}
	n, ok := h.Read[ending(i.ID)]
	return ok && i.N <= n
}

// includes reports whether everything that another horizon covers is covered.
func (h Horizon) includes(o Horizon) bool {
	if h.Next != o.Next || len(h.Read)+len(o.Read) == 0 {
		return h.Next >= o.Next && !slices.ContainsFunc(h.Open, func(x int64) bool { return x < o.Next && !slices.Contains(o.Open, x) })
	}
	for id, n := range o.Read {
		if last, ok := h.Read[id]; !ok || last < n {
			return false
		}
	}
	return true
}

// ending returns the part of an id by which Read knows it.
func ending(id string) string { return id[min(22, len(id)):] }

// with returns the horizon after further events, in the order of their stamps (SQLite).
func (h Horizon) with(items []Item) Horizon {
	if len(items) == 0 {
		return h
	}
	if last := items[len(items)-1].Stamp; last > h.Next {
		h = Horizon{Next: last}
	}
	h.Read = maps.Clone(h.Read)
	if h.Read == nil {
		h.Read = make(map[string]int64)
	}
	for i := range items {
		if items[i].Stamp == h.Next {
			h.Read[ending(items[i].ID)] = items[i].N
		}
	}
	return h
}

// later returns the later of two horizons of SQLite. If their times are equal, it has the events of both.
func (h Horizon) later(o Horizon) Horizon {
	if h.Next != o.Next {
		if h.Next > o.Next {
			return h
		}
		return o
	}
	all := maps.Clone(h.Read)
	if all == nil {
		all = make(map[string]int64)
	}
	for id, n := range o.Read {
		all[id] = max(n, all[id])
	}
	return Horizon{Next: h.Next, Read: all}
}

// openList returns Open as a JSON list.
func (h Horizon) openList() string {
	text, _ := json.Marshal(append([]int64{}, h.Open...)) // integers always marshal
	return string(text)
}

// read returns Read as a JSON object.
func (h Horizon) read() string {
	if h.Read == nil {
		return "{}"
	}
	text, _ := json.Marshal(h.Read) // integers always marshal
	return string(text)
}

// Place is how far a workspace has been read: exactly which events were returned. It is the content of a cursor.
//
// The histories have no positions, because a counter would be a lock that every commit waits for. They are read in the
// order of ids, which are made before the transaction commits. So a read has to go back, and to leave out what an earlier
// read has returned. To go back far at every read would be expensive: most reads go back to From only, and some to Low.
type Place struct {
	// Position is that of the last event of the feed: the users' events.
	Position int64 `json:"p,omitempty"`
	// Far covers every event. Near covers only those with an id greater than From.
	Far  Horizon `json:"f"`
	Near Horizon `json:"t"`
	From string  `json:"i"`
	Low  string  `json:"l"`
	// On PostgreSQL, a read that does not return everything at once continues after an id, with what Upto covers. It began
	// at Begun, which is an id, too. On SQLite, a reader that was away for long continues after an id up to Begun, without Upto.
	Upto  *Horizon `json:"u,omitempty"`
	Begun string   `json:"b,omitempty"`
	After string   `json:"a,omitempty"`
	N     int64    `json:"m,omitempty"`
	// Going reports that a read that goes back to Low is not complete.
	Going bool `json:"g,omitempty"`
}

const (
	// near is how far reads usually go back.
	near = 2 * time.Second
	// reach is how much older than its transaction the id of an event may be.
	reach = 30 * time.Second
	// oldest is how old a place may be. The cost of a read grows with it, whether there are events or not.
	oldest = 15 * time.Minute
	// longest is how long a transaction of PostgreSQL may be open so that its events are still found.
	longest = 10 * time.Minute
)

// covers reports whether an event was returned by the reads that led to a place. REQUIRES: the last read was complete.
func (p *Place) covers(i *Item) bool {
	if i.Position > 0 {
		return i.Position <= p.Position
	}
	return p.Far.covers(i) || i.ID > p.From && p.Near.covers(i)
}

// old reports whether a read from a place would have to go back too far.
func (p *Place) old() bool {
	return p.Low != "" && p.Low < retention.Back(retention.Now(), oldest)
}

// Expire makes a place too old to be continued from.
func (p *Place) Expire() { *p = Place{From: retention.First, Low: retention.First} }

// Since returns the place of a reader that has read the users' events up to a position, and no event of the histories after an id.
func Since(position int64, id string) Place { return Place{Position: position, From: id, Low: id} }

// Text returns the content of a cursor. It is short: the open transactions are counted from the end, and Near is left out if
// it is the same as Far.
func (p Place) Text() string {
	if reflect.DeepEqual(p.Near, p.Far) {
		p.Near = Horizon{}
	} else {
		p.Near = p.Near.relative()
	}
	p.Far = p.Far.relative()
	if p.Upto != nil {
		p.Upto = new(p.Upto.relative())
	}
	text, _ := json.Marshal(p) // plain values always marshal
	return string(text)
}

// relative counts the open transactions from Next, or from Next back to what they were.
func (h Horizon) relative() Horizon {
	h.Open = slices.Clone(h.Open)
	for i := range h.Open {
		h.Open[i] = h.Next - h.Open[i]
	}
	return h
}

// Parse returns the place of a cursor, or reports that the text is not one.
func Parse(text string) (p Place, ok bool) {
	if json.Unmarshal([]byte(text), &p) != nil {
		return p, false
	}
	for _, id := range []string{p.From, p.Low} {
		if !isID(id) {
			return p, false
		}
	}
	if reflect.ValueOf(p.Near).IsZero() {
		p.Near = p.Far
	}
	for _, h := range []*Horizon{&p.Far, &p.Near, p.Upto} {
		if h == nil {
			continue
		}
		if h.Next < 0 || h.Begun < 0 || len(h.Open)+len(h.Read) > maxOpen {
			return p, false
		}
		*h = h.relative()
	}
	// Low bounds what is read.
	return p, p.Position >= 0 && p.N >= 0 && p.From >= p.Low && (p.Upto == nil && p.After == "" || isID(p.After) && isID(p.Begun) && p.After >= p.Low)
}

// maxOpen bounds what a cursor that somebody made up makes the database do.
const maxOpen = 100_000

func isID(id string) bool {
	return len(id) == len(retention.First) && strings.Trim(id, "0123456789abcdef") == ""
}

// ahead returns the error for a place that this database has not reached.
func ahead() error {
	return fault.New(fault.Validation, "the cursor is ahead of the database: it belongs to another database, or is newer than a restored backup. Start again without a cursor").
		With("field", "cursor")
}

// after returns the place after a read that began at an id, and whether the read left something because of its limit.
func (p Place) after(f *found, begun string, limit int) (Place, bool) {
	far, full := f.far, len(f.items) >= limit
	p.Going = far && full
	switch {
	case f.snapshot == nil && !far: // SQLite: the events came in the order of their times
		p.Near = p.Near.with(f.items)
		return p, full
	case f.snapshot == nil:
		p.Far = p.Far.with(f.items)
		if !full {
			p.settle(p.Far.later(p.Near), begun, retention.Back(begun, reach))
		}
		return p, full
	}
	until := f.snapshot
	if p.Upto != nil {
		until, begun = p.Upto, p.Begun
	}
	if full {
		last := &f.items[len(f.items)-1]
		p.Upto, p.Begun, p.After, p.N = until, begun, last.ID, last.N
		return p, true
	}
	p.Upto, p.Begun, p.After, p.N = nil, "", "", 0
	if !far {
		p.Near = *until
		return p, false
	}
	low := retention.Back(begun, reach)
	switch {
	case until.open(p.Far.Next + p.Far.Begun): // it has been open since an earlier read
		low = min(low, max(p.Low, retention.Back(begun, longest)))
	case until.open(math.MaxInt64): // it began after the last far read, which may be long ago
		low = min(low, max(retention.Back(p.From, reach), retention.Back(begun, longest)))
	}
	if p.Far.includes(*until) { // a watcher that joined during this read has read more
		until = &p.Far
	}
	p.settle(*until, begun, low)
	return p, false
}

// with returns the place of a member if that of the reader is given: the member may have read more by itself, up to joined, which
// becomes nil when the reader has passed it.
func (p Place) with(joined **Place) Place {
	j := *joined
	switch {
	case j == nil:
		return p
	case p.Position >= j.Position && p.Far.includes(j.Far):
		*joined = nil
		return p
	case p.Far.includes(j.Far):
	case p.Far.Read != nil && j.Far.Read != nil: // SQLite: of the same time, each may have events that the other has not
		p.Far, p.Low = p.Far.later(j.Far), min(p.Low, j.Low)
	default:
		p.Far, p.Low = j.Far, min(p.Low, j.Low)
	}
	p.Position = max(p.Position, j.Position)
	return p
}

// settle ends a read that went back to Low.
func (p *Place) settle(to Horizon, begun, low string) {
	p.Far, p.Near, p.From, p.Low = to, to, retention.Back(begun, near), low
}
