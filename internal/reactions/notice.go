package reactions

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Streams are blocked and released by workers, by the janitor and by people, each in a
// transaction of its own, which may be rolled back. All of it is logged and counted in one
// place: where a commit says whom it wakes. A notice is such a topic, which nobody waits
// for.
type notice struct {
	What     string // blocked, unblocked, skipped, reset
	Reaction string
	Stream   string
	Version  int64  // that failed
	Error    string // of a block
}

const noticePrefix = "notice/"

func (n notice) topic() string { return noticePrefix + store.JSON(n) }

func isNotice(topic string) bool { return strings.HasPrefix(topic, noticePrefix) }

// Tally counts what became of streams, by kind of reaction ([Kind]).
type Tally struct{ What, Kind string }

// Notice logs and counts the notices among the topics that a commit on this node wakes,
// and returns the others.
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
		count, _ := w.tallies.LoadOrStore(Tally{n.What, Kind(n.Reaction)}, new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
		switch {
		case n.What == "blocked":
			w.Log.Error("reaction blocked: unblock, skip or reset it", "reaction", n.Reaction, "stream", n.Stream, "version", n.Version, "error", n.Error)
		case n.Error != "":
			w.Log.Error("reaction skipped an event that failed for good", "reaction", n.Reaction, "stream", n.Stream, "version", n.Version, "error", n.Error)
		default:
			w.Log.Info("reaction released", "how", n.What, "reaction", n.Reaction, "stream", n.Stream)
		}
	}
	return others
}

// Tallies returns what was counted since the node started.
func (w *Worker) Tallies() map[Tally]int64 {
	all := make(map[Tally]int64)
	w.tallies.Range(func(key, n any) bool {
		all[key.(Tally)] = n.(*atomic.Int64).Load()
		return true
	})
	return all
}
