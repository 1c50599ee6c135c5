package remote

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Sources are all that give out tasks in one process.
type Sources struct {
	all   []Source
	turns atomic.Int64
}

// NewSources returns some sources as one.
func NewSources(all ...Source) *Sources { return &Sources{all: all} }

// Of returns the source of a task.
func (s *Sources) Of(id string) (Source, error) {
	for _, x := range s.all {
		if x.Owns(id) {
			return x, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no task %q", id)
}

// Offers are what all sources have for a claim.
func (s *Sources) Offers(ctx context.Context, c Claim) (Offers, error) {
	o := Offers{all: make([]Offer, len(s.all)), turns: &s.turns}
	for i, x := range s.all {
		var err error
		if o.all[i], err = x.Offer(ctx, c); err != nil {
			return Offers{}, err
		}
	}
	return o, nil
}

// Offers are what there is for a claim.
type Offers struct {
	all   []Offer
	turns *atomic.Int64 // of those who take
}

// Topics are what is woken when there may be something.
func (o Offers) Topics() (topics []string) {
	for _, x := range o.all {
		topics = append(topics, x.Topics...)
	}
	return topics
}

// Needs are what there must be for [Offers.Take] to find anything.
func (o Offers) Needs() (needs []wake.WorkKind) {
	for _, x := range o.all {
		needs = append(append(needs, wake.WorkKind{Kind: x.Leased}), x.Due...)
	}
	return needs
}

// Take takes tasks of what is due; in a transaction of the first source alone that has any. What
// was taken outside of one is held, and returned also where a later source fails.
func (o Offers) Take(ctx context.Context, d store.Doer, due map[wake.WorkKind]bool, limit int) (all []Task, err error) {
	_, whole := d.(*store.Tx)
	first := int(o.turns.Add(1) % int64(len(o.all)))
	for i := range o.all { // each source is first in its turn, so that none starves behind the others
		x := o.all[(first+i)%len(o.all)]
		if len(all) >= limit || whole && len(all) > 0 {
			break
		}
		if !slices.ContainsFunc(x.Due, func(n wake.WorkKind) bool { return due[n] }) {
			continue
		}
		if all, err = x.some(ctx, d, all, limit); err != nil {
			break
		}
	}
	if len(all) > 0 && !whole {
		err = nil
	}
	return all, err
}

// AtOnce is how many leases are taken at once: so many may be given out beyond the bytes of a page, because
// their size is known only when they are taken.
const AtOnce = 16

// some adds tasks to those that were taken, until the source has none left, there are enough, or they have the bytes of a page.
func (o Offer) some(ctx context.Context, d store.Doer, all []Task, limit int) ([]Task, error) {
	bytes := 0
	for i := range all {
		bytes += all[i].size()
	}
	for len(all) < limit && bytes < store.PageBytes {
		n := min(limit-len(all), AtOnce)
		more, err := o.Take(ctx, d, n)
		for i := range more {
			bytes += more[i].size()
		}
		all = append(all, more...)
		if err != nil || len(more) < n {
			return all, err
		}
	}
	return all, nil
}
