package entities

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// QueueOf returns the queue of a lifecycle's operations, which the nodes with that lifecycle serve.
func QueueOf(lifecycle string) string { return "l:" + lifecycle }

// Workers returns the queue of a handler's workers.
func Workers(workspace, handler string) string { return "h:" + workspace + ":" + handler }

// QueueTopic returns the topic that is woken when an operation enters a queue of workers.
func QueueTopic(queue string) string { return "queue/" + queue }

// QueueArgs passes a claimed operation to a queue.
type QueueArgs struct {
	Ticket
	Queue string `arg:"queue,null"` // "" is the lifecycle's queue
	Stage string `arg:"stage"`
	Claim string `arg:"claim"` // the claim status
}

var enqueueVerb = store.VerbOf[QueueArgs](store.Decl{Name: "entities.enqueue", Events: store.HistoryEvents},
	func(a QueueArgs) []string { return []string{key(a.Lifecycle, a.ID)} }, scanClaim).
	RecoverWith(func(a QueueArgs, m store.CommitProof) result { return recovered(m) }).
	Emits(func(a QueueArgs) store.Emission { return emits(a.Lifecycle, a.ID, EventQueued) }).
	Wakes(func(a QueueArgs) []string {
		if a.Queue == "" {
			return []string{Topic(a.Lifecycle)}
		}
		return []string{QueueTopic(a.Queue)}
	})

// Queue passes a claimed operation to a queue, or returns [fault.LeaseLost].
func Queue(ctx context.Context, d store.Doer, at store.Partition, a QueueArgs) (Entity, error) {
	r, err := enqueueVerb.DoAt(store.InWorkspace(ctx, at.Workspace), d, at, a)
	e := named(r.entity, a.Lifecycle, a.ID)
	if err == nil && !r.applied {
		err = Lost(ctx, d, at, a.Ticket, "enqueue", &e)
	}
	return e, err
}

type queued struct{ queue, stage string }

var (
	getQueueVerb = store.NewVerb(store.Decl{Name: "entities.get_queue", Lane: store.Read}, nil,
		func(a [2]string, args *store.Args) { args.Text("lifecycle", a[0]); args.Text("entity", a[1]) },
		func(q *queued, row store.Row) error { return row.Scan(&q.queue, &q.stage) })
	countQueuedVerb = store.NewVerb(store.Decl{Name: "entities.count_queued", Lane: store.Read}, nil, store.TextArg("queue"), store.ScanValue[int64])
)

// Queued returns the queue and the stage of an entity's last operation: "" if it was never queued.
func Queued(ctx context.Context, d store.Doer, lifecycle, id string) (queue, stage string, err error) {
	q, err := getQueueVerb.Do(ctx, d, [2]string{lifecycle, id})
	return q.queue, q.stage, err
}

// Waiting returns how many operations wait in a queue or are claimed from it, up to a thousand.
func Waiting(ctx context.Context, d store.Doer, queue string) (int64, error) {
	return countQueuedVerb.Do(ctx, d, queue)
}
