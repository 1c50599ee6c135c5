package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/nodes"
)

var dueVerb = newPatient("list_due_handlers")

// unserved lists due work that no node polls for.
func unserved(ctx context.Context, r *reader) error {
	due, err := dueVerb.DoAt(ctx, r.d, r.at, patientArgs{Patience, 4 * Cap})
	if err != nil || len(due) == 0 {
		return err
	}
	all, err := r.allNodes(ctx)
	if err != nil {
		return err
	}
	served := serves(all, r.at.Workspace)
	versions := make(map[string]bool)
	for _, e := range due {
		if served[nodes.Served{Kind: e.Facts[0], Name: e.Facts[1]}] {
			continue
		}
		e.Kind, e.Deadline = UnservedWork, time.Time{}
		e.unservedWork()
		if e.Kind == UnservedVersion && versions[e.Subject] { // one entry, of the oldest step
			continue
		}
		versions[e.Subject] = e.Kind == UnservedVersion
		r.add(e)
	}
	return nil
}

// serves returns what some nodes poll for in a workspace.
func serves(all []nodes.Node, workspace string) map[nodes.Served]bool {
	served := make(map[nodes.Served]bool)
	for _, n := range all {
		for _, s := range n.Report.Serves {
			if !n.Gone && (s.Workspace == "" || s.Workspace == workspace) {
				served[nodes.Served{Kind: s.Kind, Name: s.Name}] = true
			}
		}
	}
	return served
}

// unservedWork sets the subject and the reason of work that nobody polls for. The name of a step's handler that is part of a
// Go definition begins with the id of the definition.
func (e *Entry) unservedWork() {
	kind, name := e.Facts[0], e.Facts[1]
	definition, step, own := strings.Cut(name, "/")
	switch {
	case kind == "operation" && strings.HasPrefix(name, "l:"):
		name = strings.TrimPrefix(name, "l:")
		e.Subject, e.Reason = "lifecycle "+name, fmt.Sprintf("Operations of lifecycle %q are due, and no node that has this lifecycle is running.", name)
	case kind == "operation":
		name = name[strings.LastIndex(name, ":")+1:]
		e.Subject, e.Reason = "handler "+name, fmt.Sprintf("Operations are due for handler %q, and no worker asks for its tasks.", name)
	case kind == "step" && own && strings.Contains(definition, "@"):
		e.Kind, e.Place, e.Subject = UnservedVersion, definition, definition
		e.Reason = fmt.Sprintf("Runs of %s wait at step %q, and no node that has this version is running.", definition, step)
	case kind == "step" && name == "":
		e.Subject, e.Reason = "timers of runs", "Timers, signals or decisions of runs are due, and no node serves them."
	case kind == "step":
		e.Subject, e.Reason = "handler "+name, fmt.Sprintf("Steps of runs are due for handler %q, and neither a node nor a worker serves it.", name)
	case kind == "batch":
		e.Subject, e.Reason = "handler "+name, fmt.Sprintf("Items of batches are due for handler %q, and neither a node nor a worker serves it.", name)
	default:
		e.Subject, e.Reason = "reaction "+name, fmt.Sprintf("Events are due for reaction %q, and neither a node nor a worker serves it.", name)
	}
}

// ofNodes lists nodes whose janitor has stalled, and old snapshots of the database.
func ofNodes(ctx context.Context, r *reader) error {
	all, err := r.allNodes(ctx)
	if err != nil {
		return err
	}
	snapshots := make(map[string]bool) // every node sees the same ones
	for _, n := range all {
		if n.Gone {
			continue
		}
		if n.Report.Stalled {
			ago := time.Duration(n.Report.JanitorMs) * time.Millisecond
			e := Entry{Kind: StalledJanitor, Place: n.Name, Since: n.Seen.Add(-ago), Owner: n.Name, Subject: "node " + n.Name}
			e.Reason = because(fmt.Sprintf("The janitor of this node has not completed a round for %s", ago.Round(time.Second)), sweepError(n.Report))
			r.add(e)
		}
		if n.SnapshotAt != nil && n.Now.Sub(*n.SnapshotAt) > SnapshotAge && !snapshots[n.SnapshotBy] {
			snapshots[n.SnapshotBy] = true
			r.add(Entry{Kind: OldSnapshot, Place: n.SnapshotBy, Since: *n.SnapshotAt, Owner: n.SnapshotBy, Subject: "database",
				Reason: fmt.Sprintf("The transaction of %s has been open since %s, and until it ends the database cannot remove rows that were deleted or replaced.", n.SnapshotBy, n.SnapshotAt.UTC().Format(time.RFC3339))})
		}
	}
	return nil
}

// sweepError returns the error of a sweep that failed last, or "".
func sweepError(r nodes.Report) string {
	for _, s := range r.Sweeps {
		if s.Error != "" {
			return "sweep " + s.Name + ": " + s.Error
		}
	}
	return ""
}
