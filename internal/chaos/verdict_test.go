package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// judge compares the recorded outcomes with the state that the API returns.
type judge struct {
	*load
	world *world
}

func (j *judge) lost(capability, format string, args ...any) {
	j.rows[capability].lost++
	j.defect("lost: "+format, args...)
}

func (j *judge) twice(capability, format string, args ...any) {
	j.rows[capability].twice++
	j.rows[capability].unreported++
	j.defect("twice: "+format, args...)
}

// there compares the outcome of an operation with the number of times its result exists.
func (j *judge) there(capability string, f outcome, n int, what string) {
	switch {
	case f == acked && n == 0:
		j.lost(capability, "%s was acknowledged but does not exist", what)
	case n > 1:
		j.twice(capability, "%s exists %d times", what, n)
	case f == refused && n > 0:
		j.twice(capability, "%s was refused but exists", what)
	}
}

func (j *judge) all(ctx context.Context) error {
	for _, f := range []func(context.Context) error{j.streams, j.scopes, j.entities, j.chases, j.money} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	for what := range j.unknown {
		j.rows[what[strings.LastIndex(what, " ")+1:]].uncertain++
	}
	for subject, all := range j.late {
		j.rows[capabilityOf(subject)].contradicted += len(all)
	}
	return nil
}

// streams checks each event and its deliveries to the reactions.
func (j *judge) streams(ctx context.Context) error {
	at := make(map[string][]int64) // versions by stream and id
	served := make(map[string]int)
	for _, name := range append(j.names(8, "s-"), "s-desk") {
		events, err := list(ctx, j.caller, all2(api.ReadStream, name, client.StreamRange{}))
		if err != nil {
			return err
		}
		for i, e := range events {
			var data struct{ ID string }
			if err := json.Unmarshal(e.Data, &data); err != nil || e.Version != int64(i) {
				j.defect("event %d of %s has version %d and data %s", i, name, e.Version, e.Data)
			}
			at[name+" "+data.ID] = append(at[name+" "+data.ID], e.Version)
			if name == "s-desk" {
				served[data.ID]++
			}
			for _, reaction := range []string{"watch", "Mail"} {
				x := j.rows["reactions"]
				x.operations++
				if n := j.world.delivered(delivery{reaction, name, e.Version}); n == 0 {
					j.lost("reactions", "%s/%d was not delivered to %s", name, e.Version, reaction)
				} else {
					x.acked++
					x.repeated += n - 1
				}
			}
		}
	}
	for _, a := range j.appends {
		for i, id := range a.ids {
			found := at[a.stream+" "+id]
			j.there("streams", a.outcome, len(found), "event "+id+" of "+a.stream)
			if v := a.last - int64(len(a.ids)-1-i); a.outcome == acked && len(found) == 1 && found[0] != v {
				j.defect("event %s of %s was reported at version %d but is at %d", id, a.stream, v, found[0])
			}
		}
	}
	for id := range j.desks {
		settled := open
		if j.world.delivered(delivery{To: "settled", Stream: id}) > 0 {
			settled = acked
		}
		j.there("claims", settled, served[id], "the event that desk "+id+" was settled with")
	}
	for _, what := range j.world.unordered {
		j.defect("out of order: %s", what)
	}
	return nil
}

func (j *judge) names(n int, prefix string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// scopes checks each change of a scope.
func (j *judge) scopes(ctx context.Context) error {
	for _, name := range j.names(4, "c-") {
		s, err := request(ctx, j.caller, with2(api.GetScope, "org", name))
		var state struct {
			Sum     int64
			List    []string
			Patched map[string]int64
		}
		if err == nil {
			err = json.Unmarshal(s.State, &state)
		}
		if err != nil && fault.CodeOf(err) != fault.NotFound { // of a few operations, none may have been on this scope
			return err
		}
		pushed := make(map[string]int)
		for _, x := range state.List {
			pushed[x]++
		}
		var least, most int64
		for _, x := range j.changes {
			switch {
			case x.scope != name:
			case x.kind == "push":
				j.there("scopes", x.outcome, pushed[x.name], "push "+x.name)
			case x.kind == "patch":
				n := 0
				if state.Patched[x.name] == x.by {
					n = 1
				}
				j.there("scopes", x.outcome, n, "patch "+x.name)
			case x.outcome != refused:
				if most += x.by; x.outcome == acked {
					least += x.by
				}
			}
		}
		if state.Sum < least {
			j.lost("scopes", "the sum of %s is %d, but %d was acknowledged", name, state.Sum, least)
		}
		if state.Sum > most {
			j.twice("scopes", "the sum of %s is %d, but only %d was submitted", name, state.Sum, most)
		}
	}
	return nil
}

// charges checks that a subject was charged once, or that each further charge was reported.
func (j *judge) charges(capability, subject string, least int) {
	all := j.world.paid(subject)
	reported := j.resolved[subject] // by the operator, and by late holders
	for _, result := range j.late[subject] {
		if result == "" || result == "null" || slices.ContainsFunc(all, func(c charge) bool { return string(raw(c.Call)) == result }) {
			reported++
		}
	}
	if len(all) < least {
		j.lost(capability, "%s is done, but was charged %d times", subject, len(all))
	}
	if len(all) > 1 {
		j.rows[capability].twice++
		if len(all) > 1+reported {
			j.rows[capability].unreported++
			j.defect("twice unreported: %s was charged %d times, but %d were reported: %+v", subject, len(all), reported, all)
		}
	}
}

// entities checks every order and desk.
func (j *judge) entities(ctx context.Context) error {
	for lifecycle, made := range map[string]map[string]outcome{"order": j.orders, "desk": j.desks} {
		all, err := list(ctx, j.caller, all2(api.ListEntities, lifecycle, client.EntityFilter{}))
		if err != nil {
			return err
		}
		capability, seen := capabilityOf(lifecycle+"/"), make(map[string]int)
		for _, e := range all {
			seen[e.ID]++
			j.charges(capability, lifecycle+"/"+e.ID, 1)
			if lifecycle == "order" && j.world.delivered(delivery{To: "Receipt", Stream: e.ID}) == 0 {
				j.lost(capability, "the receipt of %s was not sent", e.ID)
			}
		}
		for id, f := range made {
			j.there(capability, f, seen[id], lifecycle+" "+id)
		}
	}
	return nil
}

// chases checks every run.
func (j *judge) chases(ctx context.Context) error {
	all, err := list(ctx, j.caller, all1(api.ListRuns, client.RunFilter{}))
	if err != nil {
		return err
	}
	byID, tickets := make(map[string]wire.Run), make(map[string]int)
	for _, r := range all {
		byID[r.ID] = r
		tickets[string(r.Input)]++
	}
	for input, n := range tickets {
		if n > 1 {
			j.twice("runs", "the run of %s was started %d times", input, n)
		}
	}
	for _, r := range j.runs {
		now, ok := byID[r.id]
		if !ok {
			j.lost("runs", "run %s does not exist", r.id)
			continue
		}
		if r.cancelled != (now.Status == "CANCELLED") {
			j.lost("runs", "run %s is %s, but its cancel was acknowledged: %v", r.id, now.Status, r.cancelled)
		}
		least := 0
		if now.Status == "COMPLETED" {
			least = 1
			if err := j.completed(ctx, r); err != nil {
				return err
			}
		}
		j.charges("runs", "run "+r.id+" step pay", least)
	}
	return nil
}

// completed checks a completed run: its steps, its signal, its transition and its note.
func (j *judge) completed(ctx context.Context, r runRecord) error {
	steps, err := list(ctx, j.caller, all1(api.ListSteps, r.id))
	if err != nil {
		return err
	}
	for _, s := range steps {
		if s.Visit != 1 || s.Status != "COMPLETED" {
			j.defect("step %s of run %s is %s at visit %d", s.Name, r.id, s.Status, s.Visit)
		}
		if s.Name == "paid" && r.signalled == acked && !strings.Contains(string(s.Output), r.payload) {
			j.lost("runs", "the signal %s of run %s: the output is %s", r.payload, r.id, s.Output)
		}
	}
	ticket, err := request(ctx, j.caller, with2(api.GetEntity, "ticket", r.ticket))
	if err == nil && (ticket.Status != "booked" || ticket.Version != 1) {
		j.defect("the ticket of run %s is %s at %d", r.id, ticket.Status, ticket.Version)
	}
	if j.world.delivered(delivery{To: "Note", Stream: r.id}) == 0 {
		j.lost("runs", "the note of run %s was not written", r.id)
	}
	return err
}

// money checks every batch and the balances of the wallets.
func (j *judge) money(ctx context.Context) error {
	spent := make(map[string]int64) // by batches, by wallet
	for _, b := range j.batches {
		if b.made != acked {
			continue
		}
		now, err := request(ctx, j.caller, with1(api.GetBatch, b.id))
		if err != nil {
			j.lost("batches", "batch %s: %v", b.id, err)
			continue
		}
		if b.cancelled != (now.Status == "CANCELLED") {
			j.lost("batches", "batch %s is %s, but its cancel was acknowledged: %v", b.id, now.Status, b.cancelled)
		}
		items, err := list(ctx, j.caller, all2(api.ListItems, b.id, client.ItemFilter{}))
		if err != nil {
			return err
		}
		var cost int64
		for _, x := range items {
			done := x.State == "succeeded" && (x.Decision == nil || *x.Decision != "cancelled")
			if cost0, ok := b.costs[x.Key]; !ok || cost0 != x.Cost || x.State == "pending" || x.State == "waiting" || x.State == "running" {
				j.lost("batches", "item %s of %s is %+v", x.Key, b.id, x)
			}
			if done {
				if cost += x.Cost; j.world.delivered(delivery{To: "Scan", Stream: b.id + "/" + x.Key}) == 0 {
					j.lost("batches", "item %s of %s succeeded, but no worker executed it", x.Key, b.id)
				}
			}
		}
		if len(items) != len(b.costs) {
			j.lost("batches", "batch %s has %d items, but %d were acknowledged", b.id, len(items), len(b.costs))
		}
		if now.Charged-now.Refunded != cost {
			j.twice("batches", "batch %s charged %d and refunded %d, but its items cost %d", b.id, now.Charged, now.Refunded, cost)
		}
		spent[b.wallet] += cost
	}
	for _, name := range j.names(3, "w-") {
		if err := j.wallet(ctx, name, spent[name]); err != nil {
			return err
		}
	}
	audit, err := request(ctx, j.caller, with1(api.AuditWallet, "*"))
	if len(audit.Wrong) > 0 {
		j.defect("the audit found %+v", audit.Wrong)
	}
	return err
}

// wallet compares a balance with the credited and the spent points.
func (j *judge) wallet(ctx context.Context, name string, spent int64) error {
	w, err := request(ctx, j.caller, with1(api.GetWallet, name))
	if err != nil {
		return err
	}
	ledger, err := list(ctx, j.caller, all2(api.ReadLedger, name, client.LedgerRange{}))
	if err != nil {
		return err
	}
	var sum, least, most int64
	for _, x := range ledger {
		sum += x.Delta
	}
	for _, x := range j.credits {
		if x.wallet != name || x.outcome == refused {
			continue
		}
		if most += x.points; x.outcome == acked {
			least += x.points
		}
	}
	if sum != w.Balance {
		j.defect("the balance of %s is %d, but the sum of its ledger is %d", name, w.Balance, sum)
	}
	if w.Balance < least-spent {
		j.lost("wallets", "the balance of %s is %d: %d was credited and %d spent", name, w.Balance, least, spent)
	}
	if w.Balance > most-spent {
		j.twice("wallets", "the balance of %s is %d: %d was credited and %d spent", name, w.Balance, most, spent)
	}
	return nil
}

// table returns the summary table.
func (b *opLog) table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "capability\toperations\tacknowledged\trefused\trepeated\tlost\ttwice\ttwice unreported\tuncertain\tcontradicted\tstuck\t")
	var sum row
	line := func(name string, x row) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", name, x.operations, x.acked, x.refused, x.repeated, x.lost, x.twice, x.unreported, x.uncertain, x.contradicted, x.stuck)
	}
	for _, name := range capabilities {
		x := *b.rows[name]
		line(name, x)
		sum = row{sum.operations + x.operations, sum.acked + x.acked, sum.repeated + x.repeated, sum.refused + x.refused, sum.lost + x.lost, sum.twice + x.twice,
			sum.unreported + x.unreported, sum.uncertain + x.uncertain, sum.contradicted + x.contradicted, sum.stuck + x.stuck}
	}
	line("all", sum)
	_ = w.Flush() // never fails: it writes to memory
	return text.String()
}
