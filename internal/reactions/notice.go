package reactions

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/store"
)

// notice, which is not a due notice, reports that a stream was blocked, skipped, unblocked or reset. Workers,
// the janitor and users do that in transactions that may be rolled back. A notice
// is therefore sent as a wake topic of the commit, so that all of them are logged
// and counted in one place. No poller waits on such a topic.
type notice struct {
	What      string // blocked, unblocked, skipped, reset
	Workspace string
	Reaction  string
	Stream    string
	Version   int64  // the version that failed
	Error     string // the error of a block or a skip
}

const noticePrefix = "notice/"

func (n notice) topic() string { return noticePrefix + store.JSON(n) }

func isNotice(topic string) bool { return strings.HasPrefix(topic, noticePrefix) }

// Tally is the key of a counter: what happened, by kind of reaction ([Kind]).
type Tally struct{ What, Kind string }

// Tallies counts what happens to the streams of reactions on a node. All workers of an engine share one. A nil
// *Tallies counts nothing.
type Tallies struct{ counters sync.Map } // *atomic.Int64 by [Tally]

type talliesKey struct{}

// TalliesOf returns the counters of an engine.
func TalliesOf(e interface {
	Shared(key any, make func() any) any
}) *Tallies {
	return e.Shared(talliesKey{}, func() any { return new(Tallies) }).(*Tallies)
}

func (t *Tallies) add(what, reaction string) {
	if t == nil {
		return
	}
	key := Tally{what, Kind(reaction)}
	n, known := t.counters.Load(key)
	if !known {
		n, _ = t.counters.LoadOrStore(key, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}

// All returns the counters since the node started.
func (t *Tallies) All() map[Tally]int64 {
	all := make(map[Tally]int64)
	t.counters.Range(func(key, n any) bool {
		all[key.(Tally)] = n.(*atomic.Int64).Load()
		return true
	})
	return all
}

// Trace logs and counts what happened to a lease: claimed, acked, failed, deferred, lost, blocked or skipped. A block
// and a skip are counted, and logged as errors, by [Worker.Notice].
func (t *Tallies) Trace(log *slog.Logger, what string, l *Lease, version int64) {
	log.Debug("reaction lease "+what, "workspace", l.Workspace, "reaction", l.Reaction, "stream", l.Stream, "version", version, "epoch", l.Epoch)
	if what != "blocked" && what != "skipped" {
		t.add(what, l.Reaction)
	}
}

// Notice logs and counts the notices among the topics of a commit on this node,
// and returns the other topics.
func (w *Worker) Notice(topics []string) []string {
	if !slices.ContainsFunc(topics, isNotice) {
		return topics
	}
	var others []string
	for _, t := range topics {
		var n notice
		if !isNotice(t) || json.Unmarshal([]byte(t[len(noticePrefix):]), &n) != nil {
			others = append(others, t)
			continue
		}
		w.Tallies.add(n.What, n.Reaction)
		switch {
		case n.What == "blocked":
			w.Log.Error("reaction blocked on a stream; unblock or reset the stream, or skip the event", "workspace", n.Workspace, "reaction", n.Reaction, "stream", n.Stream, "version", n.Version, "error", n.Error)
		case n.Error != "":
			w.Log.Error("reaction skipped an event that failed permanently", "workspace", n.Workspace, "reaction", n.Reaction, "stream", n.Stream, "version", n.Version, "error", n.Error)
		default:
			w.Log.Info("reaction resumed after a repair", "outcome", n.What, "workspace", n.Workspace, "reaction", n.Reaction, "stream", n.Stream)
		}
	}
	return others
}
