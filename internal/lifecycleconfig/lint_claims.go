package lifecycleconfig

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// claimUse is a claim of a step.
type claimUse struct {
	use[Claim]
	step int
}

// claims checks R2 to R8.
func (l *linter) claims() {
	for i := range l.c.Steps {
		for _, u := range uses(l.claimPath(i), l.c.Steps[i].Claim) {
			if l.isSound(&l.c.Steps[i], u) {
				l.sound = append(l.sound, claimUse{u, i})
			}
		}
	}
	l.reverts()
	l.intoClaims()
}

// isSound checks R2 to R5 for one claim.
func (l *linter) isSound(s *Step, u use[Claim]) bool {
	before := len(l.Violations)
	for i, status := range []string{u.value.Into, u.value.Revert} {
		if !l.known[status] {
			l.Refuse("R2", configdoc.Item(u.path, i), "%s is not in status_types: add it there, or correct it", configdoc.Show(status))
		}
	}
	into := u.value.Into
	if into == u.value.Revert {
		l.Refuse("R3", u.path, "claim_into and revert_to are both %s: give claim_into a status of its own", configdoc.Show(into))
	}
	if slices.Contains(s.Status, into) {
		l.Refuse("R4", u.path, "claim_into is %s, where the step starts, so a second caller could also claim: give it a status of its own", configdoc.Show(into))
	}
	if slices.Contains(beside(u, s.Success), into) {
		l.Refuse("R5", u.path, "claim_into is %s, which is also the successful_state, so a success would change nothing: give it a status of its own", configdoc.Show(into))
	}
	if slices.Contains(beside(u, s.Failed), into) {
		l.Refuse("R5", u.path, "claim_into is %s, which is also the failed_state, so a failure would change nothing: give it a status of its own", configdoc.Show(into))
	}
	return len(l.Violations) == before
}

// reverts checks R6 and R7.
func (l *linter) reverts() {
	first := make(map[string]claimUse)
	for _, u := range l.sound {
		into, revert := u.value.Into, u.value.Revert
		was, again := first[into]
		if !again {
			first[into] = u
		}
		if again && was.value.Revert != revert {
			l.Refuse("R6", u.path, "%s reverts to %s here and to %s at %s, so the janitor cannot decide: use a separate claim status for each",
				configdoc.Show(into), configdoc.Show(revert), configdoc.Show(was.value.Revert), was.path)
		}
		if status := l.c.Steps[u.step].Status; len(status) == 1 && status[0] != revert {
			l.Refuse("R7", configdoc.Item(u.path, 1), "revert_to is %s, but the step starts at %s: a claim must revert to the status in which the step starts", configdoc.Show(revert), configdoc.Show(status[0]))
		}
	}
}

// intoClaims checks R8 for all ways into and out of claim statuses.
func (l *linter) intoClaims() {
	at := make(map[string]string)
	for _, u := range l.sound {
		if at[u.value.Into] == "" {
			at[u.value.Into] = u.path
		}
	}
	if path := at[l.c.InitialStatus]; path != "" {
		l.Refuse("R8", "/initial_status", "%s is a claim status (%s), and a new entity has no claim: start at another status", configdoc.Show(l.c.InitialStatus), path)
	}
	for i := range l.c.Steps {
		s := &l.c.Steps[i]
		for _, status := range s.Status {
			if path := at[status]; path != "" {
				l.Refuse("R8", stepPath(i, "status"), "the step starts at %s, which is a claim status (%s): only the step that takes the claim leaves it", configdoc.Show(status), path)
			}
		}
		for _, u := range slices.Concat(uses(stepPath(i, "successful_state"), s.Success), uses(stepPath(i, "failed_state"), s.Failed)) {
			if path := at[u.value]; path != "" {
				l.Refuse("R8", u.path, "the step leads to %s, which is a claim status (%s): only a claim may lead there", configdoc.Show(u.value), path)
			}
		}
	}
}

// startingPoint is a step key with a status where it can be fired.
type startingPoint struct{ key, status string }

// caller is a requester that may fire a step at a starting point.
type caller struct {
	step      int
	requester string
}

// skippedClaims checks R9. A step may be written as several entries, so they are compared by key
// and status.
func (l *linter) skippedClaims() {
	callers, order := l.callers()
	for _, p := range order {
		claimant := slices.IndexFunc(callers[p], l.isClaimed)
		if claimant < 0 {
			continue
		}
		for _, by := range callers[p] {
			if l.isClaimed(by) || l.c.Serialized(p.key, p.status, by.requester) {
				continue
			}
			l.Refuse("R9", l.successPath(by), "%s fires %s without the claim that %s takes, so both could act concurrently: add a claim here, or list the requester in serialized, which leases the entity in its status while it acts",
				requesterText(by.requester), configdoc.Show(p.key), requesterText(callers[p][claimant].requester))
		}
	}
}

// callers returns the requesters by starting point, and the starting points in the order of declaration.
func (l *linter) callers() (by map[startingPoint][]caller, order []startingPoint) {
	by = make(map[startingPoint][]caller)
	for i := range l.c.Steps {
		s := &l.c.Steps[i]
		for _, status := range s.Status {
			p := startingPoint{s.Key, status}
			if by[p] == nil {
				order = append(order, p)
			}
			for _, r := range s.Offered() {
				by[p] = append(by[p], caller{i, r})
			}
		}
	}
	return by, order
}

func (l *linter) isClaimed(by caller) bool {
	_, ok := l.c.Steps[by.step].Claim.For(by.requester)
	return ok
}

// successPath returns the pointer of the field that offers a step to a caller.
func (l *linter) successPath(by caller) string {
	path := stepPath(by.step, "successful_state")
	if l.c.Steps[by.step].Success.All != nil {
		return path
	}
	return configdoc.Child(path, by.requester)
}

// repeats checks R12.
func (l *linter) repeats() {
	ids := make(map[int]int)
	taken := make(map[startingPoint][]caller)
	for i := range l.c.Steps {
		s := &l.c.Steps[i]
		if first, again := ids[s.ID]; again && l.Given(stepPath(i, "step_id")) {
			l.Refuse("R12", stepPath(i, "step_id"), "step_id %d is already used by %s: give each step its own", s.ID, configdoc.Item("/steps", first))
		} else if l.Given(stepPath(i, "step_id")) {
			ids[s.ID] = i
		}
		for _, status := range s.Status {
			if status == "" {
				continue
			}
			p := startingPoint{s.Key, status}
			l.clash(i, p, taken[p])
			for _, r := range s.Offered() {
				taken[p] = append(taken[p], caller{i, r})
			}
		}
	}
}

// clash refuses a step that an earlier one already offers.
func (l *linter) clash(i int, p startingPoint, taken []caller) {
	s := &l.c.Steps[i]
	if !l.Given(stepPath(i, "step_key")) {
		return
	}
	for _, t := range taken {
		both := s.Offers(t.requester) || t.requester == anyOther && len(s.Success.By) > 0
		if both && t.step != i {
			l.Refuse("R12", configdoc.Item("/steps", i), "%s also offers %s at %s: keep one of them, or give them different requesters or keys",
				configdoc.Item("/steps", t.step), configdoc.Show(p.key), configdoc.Show(p.status))
			return
		}
	}
}
