package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/stream"
)

// append is the other half of the story: two writers who loaded the same version
// of a stream. One is told the version that it lost to, and writes after it.
func (d demo) append(ctx context.Context) error {
	name := "order-" + d.run
	loaded, err := stream.Append(ctx, d.engine, name, stream.None, stream.Event{Name: "placed"})
	if err != nil {
		return err
	}
	written, told := d.twoWriters(ctx, name, loaded)
	winner, loser, err := whoWon(told)
	if err != nil {
		return err
	}
	refusal, _ := errors.AsType[*fault.Error](told[loser])
	truth, ok := refusal.Fields["lastVersion"].(int64)
	if !ok || stream.Version(truth) != written[winner] {
		return fault.New(fault.Internal, "the demo found what must not be: the loser was told version %v, and the stream was at %d", refusal.Fields["lastVersion"], written[winner])
	}
	after, err := stream.Append(ctx, d.engine, name, stream.Version(truth), stream.Event{Name: "changed"})
	if err != nil {
		return err
	}
	all, err := stream.Read(ctx, d.engine, name, 0, 0)
	if err != nil {
		return err
	}
	d.say("two writers on stream %s, both at version %d: writer %d wrote version %d, writer %d was told %d and wrote version %d; the stream has %d events\n\n",
		name, loaded, winner+1, written[winner], loser+1, truth, after, len(all))
	return nil
}

func (d demo) twoWriters(ctx context.Context, name string, loaded stream.Version) (written [2]stream.Version, told [2]error) {
	start := make(chan struct{})
	var both sync.WaitGroup
	for i := range told {
		both.Go(func() {
			<-start
			written[i], told[i] = stream.Append(ctx, d.engine, name, loaded, stream.Event{Name: "changed", Actor: caller(i)})
		})
	}
	close(start)
	both.Wait()
	return written, told
}

func whoWon(told [2]error) (winner, loser int, err error) {
	for _, err := range told {
		if err != nil && !errors.Is(err, holdfast.ErrConcurrency) {
			return 0, 0, err
		}
	}
	switch {
	case told[0] == nil && told[1] != nil:
		return 0, 1, nil
	case told[0] != nil && told[1] == nil:
		return 1, 0, nil
	}
	return 0, 0, fault.New(fault.Internal, "the demo found what must not be: of two appends that expect the same version, not one was refused (%v, %v)", told[0], told[1])
}
