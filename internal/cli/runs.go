package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/workflow"
	"github.com/holdfast-go/holdfast/wire"
)

type runsCommand struct {
	Define      runsDefine      `cmd:"" help:"Store a workflow definition."`
	Definitions runsDefinitions `cmd:"" help:"List the workflow definitions of a workspace."`
	Diagram     runsDiagram     `cmd:"" help:"Draw a workflow definition."`
	Start       runsStart       `cmd:"" help:"Start a run."`
	List        runsList        `cmd:"" help:"List the runs of a workspace, newest first."`
	Show        runsShow        `cmd:"" help:"Show a run."`
	Steps       runsSteps       `cmd:"" help:"List the step visits of a run."`
	Follow      runsFollow      `cmd:"" help:"Follow the events of a run until it ends."`
	Cancel      runsCancel      `cmd:"" help:"Cancel a run."`
	Pause       runsPause       `cmd:"" help:"Pause a run before its next step."`
	Resume      runsResume      `cmd:"" help:"Resume a paused run."`
	Retry       runsRetry       `cmd:"" help:"Retry a failed run."`
	Signal      runsSignal      `cmd:"" help:"Send a signal to a run."`
	Approvals   runsApprovals   `cmd:"" help:"List approval requests."`
	Approve     runsApprove     `cmd:"" help:"Approve an approval request."`
	Reject      runsReject      `cmd:"" help:"Reject an approval request."`
}

type runArg struct {
	ID string `arg:"" help:"Run id."`
}

// text returns the text, or "" for nil.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func runFacts(r wire.Run, before ...string) *table {
	output := string(r.Output)
	if output == "null" {
		output = ""
	}
	return facts(append(before, "run", r.ID, "definition", r.DefinitionID, "run key", text(r.IdempotencyKey), "status", r.Status, "version", number64(r.Version),
		"step", text(r.CurrentStepName), "cancel requested", yes(r.CancelRequested), "input", string(r.Input), "state", string(r.State), "output", output,
		"error", text(r.Error), "created", at(r.CreatedAt), "finished", at(r.FinishedAt), "updated", at(r.UpdatedAt))...)
}

type runsDefine struct {
	idempotencyFlags
	File   string `arg:"" help:"Workflow definition, in JSON or YAML."`
	DryRun bool   `setting:"-" help:"Validate the definition without storing it."`
}

func (c *runsDefine) Run(ctx context.Context, to *target) error {
	data, err := readConfig(c.File)
	if err != nil {
		return err
	}
	def, violations, _ := workflow.Check(data, workflow.Known{})
	if err := firstOf(c.File, violations); err != nil {
		return err
	}
	d, err := to.open(ctx)
	if err != nil {
		return err
	}
	x, err := d.PutDefinition(ctx, def.JSON(), dryRun(c.DryRun, c.options(d))...)
	if err != nil {
		return err
	}
	for _, w := range x.Warnings {
		fmt.Fprintf(d.stderr, "warning: %s: %s (%s)\n", w.Path, w.Message, w.Rule)
	}
	return d.show(facts("definition", x.ID, "steps", number64(int64(len(x.Steps))), "stored", yes(!c.DryRun), "created", at(x.CreatedAt)), nil)
}

type runsDefinitions struct {
	pageFlags
}

func (c *runsDefinitions) Run(ctx context.Context, d *connection) error {
	l, err := d.ListDefinitionsPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"DEFINITION", "STEPS", "CREATED"}}
	for _, x := range l.Items {
		t.add(x.ID, number64(int64(len(x.Steps))), at(x.CreatedAt))
	}
	return d.showList(t, l.Next, err)
}

type runsDiagram struct {
	targetFlags
	Definition string `arg:"" help:"Definition, as name@version."`
	Format     string `enum:"svg,mermaid,layout" default:"svg" placeholder:"FORMAT" help:"Output format: svg, mermaid, or layout (coordinates as JSON)."`
}

func (c *runsDiagram) Run(ctx context.Context, d *connection) error {
	return d.showDiagram(d.GetDefinitionDiagram(ctx, c.Definition, c.Format, d.raw()))
}

type runsStart struct {
	idempotencyFlags
	Definition string `arg:"" help:"Definition, as name@version."`
	Input      string `setting:"-" placeholder:"JSON" help:"Run input: a JSON object, or @FILE."`
	RunKey     string `setting:"-" placeholder:"KEY" help:"Run key. If a run with this key exists, that run is returned and no new run is started."`
	Follow     bool   `setting:"-" help:"Follow the run until it ends."`
}

func (c *runsStart) Run(ctx context.Context, to *target) error {
	input, bad := document("--input", c.Input)
	in := wire.StartRun{DefinitionID: c.Definition, Input: input}
	if to.given("run-key") {
		in.IdempotencyKey = &c.RunKey
	}
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	x, err := d.StartRun(ctx, in, c.options(d)...)
	if err != nil {
		return err
	}
	if c.Follow {
		return d.followRun(ctx, x.Run.ID)
	}
	return d.show(runFacts(x.Run, "new", yes(x.Created)), nil)
}

type runsList struct {
	pageFlags
	Status     string `setting:"-" placeholder:"STATUS" help:"List only runs with this status, such as FAILED."`
	Definition string `setting:"-" placeholder:"ID" help:"List only runs of this definition, as name@version."`
	RunKey     string `setting:"-" placeholder:"KEY" help:"List only the run with this run key."`
	Step       string `setting:"-" placeholder:"NAME" help:"List only runs whose current step has this name."`
	Handler    string `setting:"-" placeholder:"NAME" help:"List only runs whose current step has this handler."`
	timeFlags
}

func (c *runsList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListRunsPage(ctx, client.RunFilter{Status: c.Status, Definition: c.Definition, Key: c.RunKey, Step: c.Step, Handler: c.Handler, TimeRange: c.times()}, c.page(), d.raw())
	t := &table{heads: []string{"RUN", "DEFINITION", "STATUS", "VERSION", "STEP", "RUN KEY", "CREATED", "ERROR"}}
	for _, r := range l.Items {
		t.add(r.ID, r.DefinitionID, r.Status, number64(r.Version), text(r.CurrentStepName), text(r.IdempotencyKey), at(r.CreatedAt), text(r.Error))
	}
	return d.showList(t, l.Next, err)
}

type runsShow struct {
	targetFlags
	runArg
}

func (c *runsShow) Run(ctx context.Context, d *connection) error {
	return d.showRun(ctx, c.ID)
}

// showRun shows the current state of a run.
func (d *connection) showRun(ctx context.Context, id string) error {
	r, err := d.GetRun(ctx, id, d.raw())
	return d.show(runFacts(r), err)
}

type runsSteps struct {
	pageFlags
	runArg
}

func (c *runsSteps) Run(ctx context.Context, d *connection) error {
	l, err := d.ListStepsPage(ctx, c.ID, c.page(), d.raw())
	t := &table{heads: []string{"STEP", "VISIT", "TYPE", "STATUS", "ATTEMPTS", "HOLDER", "OUTPUT", "ERROR"}}
	for _, s := range l.Items {
		status := s.Status
		if s.Uncertain {
			status += " (uncertain)"
		}
		t.add(s.Name, number64(s.Visit), s.Type, status, number64(s.Attempts), text(s.Holder), string(s.Output), text(s.Error))
	}
	return d.showList(t, l.Next, err)
}

type runsFollow struct {
	targetFlags
	runArg
}

func (c *runsFollow) Run(ctx context.Context, d *connection) error {
	return d.followRun(ctx, c.ID)
}

// followRun shows the events of a run until it ends, then the run.
func (d *connection) followRun(ctx context.Context, id string) error {
	return d.followed(d.FollowRun(ctx, id), func(e wire.Event) error {
		_, err := fmt.Fprintf(d.stderr, "%s  %s\n", at(e.At), runLine(e))
		return err
	}, func() error { return d.showRun(ctx, id) })
}

// runLine formats an event of a run as one line.
func runLine(e wire.Event) string {
	var data struct {
		Step  string
		Visit int64
		Error string
	}
	_ = json.Unmarshal(e.Data, &data) // missing fields are not shown
	line := e.Name
	if data.Step != "" && !strings.HasPrefix(data.Error, data.Step+": ") { // else the error names the step already
		line += " " + data.Step
	}
	if data.Visit > 1 {
		line += fmt.Sprintf(" (visit %d)", data.Visit)
	}
	if data.Error != "" {
		line += ": " + data.Error
	}
	return cell(line)
}

// moveFlags are the flags of commands that change the status of a run.
type moveFlags struct {
	idempotencyFlags
	runArg
	ExpectedVersion *int64 `setting:"-" placeholder:"N" help:"Fail unless the run is at this version."`
}

type moveCall func(*client.Client, context.Context, string, wire.Command, ...client.Option) (wire.Run, error)

// move changes the status of a run and shows the run.
func (f moveFlags) move(ctx context.Context, d *connection, call moveCall) error {
	r, err := call(d.Client, ctx, f.ID, wire.Command{ExpectedVersion: f.ExpectedVersion}, f.options(d)...)
	return d.show(runFacts(r), err)
}

type runsCancel struct{ moveFlags }

func (c *runsCancel) Run(ctx context.Context, d *connection) error {
	return c.move(ctx, d, (*client.Client).CancelRun)
}

type runsPause struct{ moveFlags }

func (c *runsPause) Run(ctx context.Context, d *connection) error {
	return c.move(ctx, d, (*client.Client).PauseRun)
}

type runsResume struct{ moveFlags }

func (c *runsResume) Run(ctx context.Context, d *connection) error {
	return c.move(ctx, d, (*client.Client).ResumeRun)
}

type runsRetry struct{ moveFlags }

func (c *runsRetry) Run(ctx context.Context, d *connection) error {
	return c.move(ctx, d, (*client.Client).RetryRun)
}

type runsSignal struct {
	idempotencyFlags
	runArg
	Type     string `arg:"" help:"Signal type."`
	Payload  string `setting:"-" placeholder:"JSON" help:"Signal payload: JSON, or @FILE."`
	SignalID string `setting:"-" name:"id" placeholder:"ID" help:"Signal id. Sending a signal again with the same id has no effect. Default: a new id."`
}

func (c *runsSignal) Run(ctx context.Context, to *target) error {
	payload, bad := document("--payload", c.Payload)
	in := wire.Signal{Type: c.Type, Payload: payload}
	if to.given("id") {
		in.ID = &c.SignalID
	}
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	x, err := d.SignalRun(ctx, c.ID, in, c.options(d)...)
	return d.show(facts("signal", x.ID, "new", yes(x.Fresh)), err)
}

type runsApprovals struct {
	pageFlags
	Status string `setting:"-" default:"pending" placeholder:"STATUS" help:"List only approvals with this status, or all. Default: pending."`
	OfRun  string `setting:"-" name:"run" placeholder:"ID" help:"List only approvals of this run."`
}

func (c *runsApprovals) Run(ctx context.Context, d *connection) error {
	f := client.ApprovalFilter{Status: c.Status, Run: c.OfRun}
	if f.Status == "all" {
		f.Status = ""
	}
	l, err := d.ListApprovalsPage(ctx, f, c.page(), d.raw())
	t := &table{heads: []string{"APPROVAL", "RUN", "STEP", "STATUS", "BY", "EXPIRES", "PROMPT"}}
	for _, a := range l.Items {
		t.add(a.ID, a.RunID, a.Step, a.Status, text(a.By), at(a.ExpiresAt), a.Prompt)
	}
	return d.showList(t, l.Next, err)
}

// decideFlags are the flags of commands that decide an approval.
type decideFlags struct {
	idempotencyFlags
	ID      string `arg:"" help:"Approval id."`
	Content string `setting:"-" placeholder:"JSON" help:"Content of the decision: JSON, or @FILE."`
	By      string `setting:"-" placeholder:"NAME" help:"Name of the person who decides."`
}

func (f decideFlags) decide(ctx context.Context, d *connection, decision string) error {
	content, err := document("--content", f.Content)
	if err != nil {
		return err
	}
	a, err := d.DecideApproval(ctx, f.ID, wire.Decide{Decision: decision, Content: content, By: f.By}, f.options(d)...)
	return d.show(facts("approval", a.ID, "run", a.RunID, "step", a.Step, "status", a.Status, "by", text(a.By), "label", text(a.Label), "decided", at(a.DecidedAt)), err)
}

type runsApprove struct {
	decideFlags
	Edited bool `setting:"-" help:"Approve with edits. Pass the edited version in --content."`
}

func (c *runsApprove) Run(ctx context.Context, d *connection) error {
	if c.Edited {
		return c.decide(ctx, d, "edited")
	}
	return c.decide(ctx, d, "approved")
}

type runsReject struct{ decideFlags }

func (c *runsReject) Run(ctx context.Context, d *connection) error {
	return c.decide(ctx, d, "rejected")
}
