package reactions

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/store"
)

// notice reports that a stream was blocked, skipped, unblocked or reset. Workers,
// the janitor and users do that in transactions that may be rolled back. A notice
// is therefore sent as a wake topic of the commit, so that all of them are logged
// and counted in one place. No poller waits on such a topic.
type notice struct {
	What     string // blocked, unblocked, skipped, reset
	Reaction string
	Stream   string
	Version  int64  // the version that failed
	Error    string // the error of a block or a skip
}

const noticePrefix = "notice/"

func (n notice) topic() string { return noticePrefix + store.JSON(n) }

func isNotice(topic string) bool { return strings.HasPrefix(topic, noticePrefix) }

// Tally is the key of a counter: what happened, by kind of reaction ([Kind]).
type Tally struct{ What, Kind string }

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
		count, _ := w.tallies.LoadOrStore(Tally{n.What, Kind(n.Reaction)}, new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
		switch {
		case n.What == "blocked":
			w.Log.Error("reaction blocked on a stream; unblock or reset the stream, or skip the event", "reaction", n.Reaction, "stream", n.Stream, "version", n.Version, "error", n.Error)
		case n.Error != "":
			w.Log.Error("reaction skipped a permanently failed event", "reaction", n.Reaction, "stream", n.Stream, "version", n.Version, "error", n.Error)
		default:
			w.Log.Info("reaction continues after a repair", "how", n.What, "reaction", n.Reaction, "stream", n.Stream)
		}
	}
	return others
}

// Tallies returns the counters since the node started.
func (w *Worker) Tallies() map[Tally]int64 {
	all := make(map[Tally]int64)
	w.tallies.Range(func(key, n any) bool {
		all[key.(Tally)] = n.(*atomic.Int64).Load()
		return true
	})
	return all
}
