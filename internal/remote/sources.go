package remote

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Sources are all task sources of one process.
type Sources struct {
	all   []Source
	takes atomic.Int64
}

// NewSources combines task sources.
func NewSources(all ...Source) *Sources { return &Sources{all: all} }

// Of returns the source of a task, or [fault.NotFound].
func (s *Sources) Of(id string) (Source, error) {
	for _, x := range s.all {
		if x.Owns(id) {
			return x, nil
		}
	}
	return nil, fault.New(fault.NotFound, "task %q does not exist", id)
}

// Offers returns the offers of all sources for a claim.
func (s *Sources) Offers(ctx context.Context, c Claim) (Offers, error) {
	o := Offers{all: make([]Offer, len(s.all)), takes: &s.takes}
	for i, x := range s.all {
		var err error
		if o.all[i], err = x.Offer(ctx, c); err != nil {
			return Offers{}, err
		}
	}
	return o, nil
}

// Offers are the offers of all sources for a claim.
type Offers struct {
	all   []Offer
	takes *atomic.Int64 // number of takes, for the rotation of sources
}

// Topics returns the topics that are woken when there may be tasks.
func (o Offers) Topics() (topics []string) {
	for _, x := range o.all {
		topics = append(topics, x.Topics...)
	}
	return topics
}

// Needs returns the kinds of work of which [Offers.Take] needs at least one to find a task.
func (o Offers) Needs() (needs []wake.WorkKind) {
	for _, x := range o.all {
		needs = append(append(needs, wake.WorkKind{Kind: x.Leased}), x.Due...)
	}
	return needs
}

// Take takes tasks of the due kinds of work. In a transaction it takes from only one
// source, the first that has tasks. Outside of a transaction the taken tasks are leased
// already, so they are returned even if a later source fails.
func (o Offers) Take(ctx context.Context, d store.Doer, due map[wake.WorkKind]bool, limit int) (all []Task, err error) {
	_, inTx := d.(*store.Tx)
	first := int(o.takes.Add(1) % int64(len(o.all)))
	for i := range o.all { // rotate the first source, so that none starves
		x := o.all[(first+i)%len(o.all)]
		if len(all) >= limit || inTx && len(all) > 0 {
			break
		}
		if !slices.ContainsFunc(x.Due, func(n wake.WorkKind) bool { return due[n] }) {
			continue
		}
		if all, err = x.takeInto(ctx, d, all, limit); err != nil {
			break
		}
	}
	if len(all) > 0 && !inTx {
		err = nil
	}
	return all, err
}

// AtOnce is the number of leases per take. Up to so many tasks may exceed the bytes of a
// page, because their size is known only after the take.
const AtOnce = 16

// takeInto appends tasks of the source to all, until the source has none left, the limit
// is reached, or the tasks have the bytes of a page.
func (o Offer) takeInto(ctx context.Context, d store.Doer, all []Task, limit int) ([]Task, error) {
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
