package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/definitions"
	"github.com/holdfast-go/holdfast/wire"
)

type runsCommand struct {
	Define      runsDefine      `cmd:"" help:"Keep the definition of a workflow."`
	Definitions runsDefinitions `cmd:"" help:"List the definitions of a workspace."`
	Start       runsStart       `cmd:"" help:"Start a run."`
	List        runsList        `cmd:"" help:"List the runs of a workspace, the newest first."`
	Show        runsShow        `cmd:"" help:"Show a run."`
	Steps       runsSteps       `cmd:"" help:"List the visits of a run's steps."`
	Follow      runsFollow      `cmd:"" help:"Show what happens to a run, until its end."`
	Cancel      runsCancel      `cmd:"" help:"Cancel a run."`
	Pause       runsPause       `cmd:"" help:"Have a run begin no further step."`
	Resume      runsResume      `cmd:"" help:"Have a run go on that was paused."`
	Retry       runsRetry       `cmd:"" help:"Have a run go on that has failed."`
	Signal      runsSignal      `cmd:"" help:"Tell a run something."`
	Approvals   runsApprovals   `cmd:"" help:"List what is to be decided."`
	Approve     runsApprove     `cmd:"" help:"Approve what a run asks for."`
	Reject      runsReject      `cmd:"" help:"Reject what a run asks for."`
}

type runArg struct {
	ID string `arg:"" help:"The run."`
}

// text is a text, or nothing.
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
	return facts(append(before, "run", r.ID, "definition", r.DefinitionID, "key", text(r.IdempotencyKey), "status", r.Status, "version", number64(r.Version),
		"step", text(r.CurrentStepName), "cancel requested", yes(r.CancelRequested), "input", string(r.Input), "state", string(r.State), "output", output,
		"error", text(r.Error), "created", at(r.CreatedAt), "finished", at(r.FinishedAt))...)
}

type runsDefine struct {
	doorFlags
	onceFlags
	File   string `arg:"" help:"The definition, in JSON or YAML."`
	DryRun bool   `setting:"-" help:"Judge it, and keep nothing."`
}

// Help is shown by kong.
func (runsDefine) Help() string {
	return `Its handlers are declared first, with "holdfast handlers put". Of a name and version
there is one, and it is not changed:

    holdfast runs define chase.yaml --db sqlite:holdfast.db
    holdfast runs define chase.yaml --dry-run --url http://127.0.0.1:7070`
}

// Run keeps a definition.
func (c *runsDefine) Run(ctx context.Context, p *program, k *kong.Context) error {
	data, err := readConfig(c.File)
	if err != nil {
		return err
	}
	def, violations, _ := definitions.Check(data, definitions.Known{})
	if len(violations) > 0 {
		return fmt.Errorf("%s (%s in all, see \"holdfast lint\")", lintLine(c.File, "", violations[0]), plural(len(violations), "violation"))
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.DefineWorkflow(ctx, def.JSON(), c.DryRun, c.options(&raw)...)
		if err != nil {
			return err
		}
		for _, w := range x.Warnings {
			fmt.Fprintf(d.stderr, "warning: %s: %s (%s)\n", w.Path, w.Message, w.Rule)
		}
		return d.show(raw, facts("definition", x.ID, "steps", number64(int64(len(x.Steps))), "kept", yes(!c.DryRun), "created", at(x.CreatedAt)))
	})
}

type runsDefinitions struct {
	doorFlags
	pageFlags
}

// Help is shown by kong.
func (runsDefinitions) Help() string {
	return `    holdfast runs definitions --db sqlite:holdfast.db`
}

// Run lists definitions.
func (c *runsDefinitions) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListDefinitionsPage(ctx, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"DEFINITION", "STEPS", "CREATED"}}
		for _, x := range l.Items {
			t.add(x.ID, number64(int64(len(x.Steps))), at(x.CreatedAt))
		}
		return d.showList(raw, t, l.Next)
	})
}

type runsStart struct {
	doorFlags
	onceFlags
	Definition     string `arg:"" help:"The definition, as name@version."`
	Input          string `setting:"-" placeholder:"JSON" help:"What the run is given, an object, or @FILE."`
	IdempotencyKey string `setting:"-" placeholder:"KEY" help:"Whoever starts a run under this key, now or later, is given the same."`
	Follow         bool   `setting:"-" help:"Show what happens to it, until its end."`
}

// Help is shown by kong.
func (runsStart) Help() string {
	return `A server, or a program that does its steps, takes it on:

    holdfast runs start chase@1 --input '{"order": "o1"}' --idempotency-key o1 --url http://127.0.0.1:7070
    holdfast runs start chase@1 --input @order.json --follow --url http://127.0.0.1:7070`
}

// Run starts a run.
func (c *runsStart) Run(ctx context.Context, p *program, k *kong.Context) error {
	input, err := document("--input", c.Input)
	if err != nil {
		return err
	}
	in := wire.StartRun{DefinitionID: c.Definition, Input: input}
	if given(k, "idempotency-key") {
		in.IdempotencyKey = &c.IdempotencyKey
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.StartRun(ctx, in, c.options(&raw)...)
		if err != nil {
			return err
		}
		if c.Follow {
			return d.followRun(ctx, x.Run.ID)
		}
		return d.show(raw, runFacts(x.Run, "made now", yes(x.Created)))
	})
}

type runsList struct {
	doorFlags
	pageFlags
	Status     string `setting:"-" placeholder:"STATUS" help:"Only those of this status, such as FAILED."`
	Definition string `setting:"-" placeholder:"ID" help:"Only those of this definition, as name@version."`
}

// Help is shown by kong.
func (runsList) Help() string {
	return `    holdfast runs list --status FAILED --db sqlite:holdfast.db
    holdfast runs list --definition chase@1 --url http://127.0.0.1:7070`
}

// Run lists runs.
func (c *runsList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListRunsPage(ctx, client.RunFilter{Status: c.Status, Definition: c.Definition}, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"RUN", "DEFINITION", "STATUS", "VERSION", "STEP", "KEY", "CREATED", "ERROR"}}
		for _, r := range l.Items {
			t.add(r.ID, r.DefinitionID, r.Status, number64(r.Version), text(r.CurrentStepName), text(r.IdempotencyKey), at(r.CreatedAt), text(r.Error))
		}
		return d.showList(raw, t, l.Next)
	})
}

type runsShow struct {
	doorFlags
	runArg
}

// Help is shown by kong.
func (runsShow) Help() string {
	return `    holdfast runs show run_019a --db sqlite:holdfast.db`
}

// Run shows a run.
func (c *runsShow) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error { return d.showRun(ctx, c.ID) })
}

// showRun shows a run as it is now.
func (d *door) showRun(ctx context.Context, id string) error {
	var raw json.RawMessage
	r, err := d.GetRun(ctx, id, client.Raw(&raw))
	if err != nil {
		return err
	}
	return d.show(raw, runFacts(r))
}

type runsSteps struct {
	doorFlags
	pageFlags
	runArg
}

// Help is shown by kong.
func (runsSteps) Help() string {
	return `    holdfast runs steps run_019a --db sqlite:holdfast.db`
}

// Run lists steps.
func (c *runsSteps) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListStepsPage(ctx, c.ID, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"STEP", "VISIT", "TYPE", "STATUS", "ATTEMPTS", "HOLDER", "OUTPUT", "ERROR"}}
		for _, s := range l.Items {
			status := s.Status
			if s.Uncertain {
				status += " (uncertain)"
			}
			t.add(s.Name, number64(s.Visit), s.Type, status, number64(s.Attempts), text(s.Holder), string(s.Output), text(s.Error))
		}
		return d.showList(raw, t, l.Next)
	})
}

type runsFollow struct {
	doorFlags
	runArg
}

// Help is shown by kong.
func (runsFollow) Help() string {
	return `It ends with the run. With -o json it prints each event, one a line:

    holdfast runs follow run_019a --url http://127.0.0.1:7070`
}

// Run follows a run.
func (c *runsFollow) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error { return d.followRun(ctx, c.ID) })
}

// followRun shows what happens to a run, and how it ended.
func (d *door) followRun(ctx context.Context, id string) error {
	for e, err := range d.FollowRun(ctx, id) {
		if err != nil {
			return err
		}
		if d.output == "json" {
			line, err := json.Marshal(e)
			if err == nil {
				err = writeDocument(d.stdout, line)
			}
			if err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(d.stderr, "%s  %s\n", at(e.At), runLine(e)); err != nil {
			return err
		}
	}
	if d.output == "json" {
		return nil
	}
	return d.showRun(ctx, id)
}

// runLine is an event of a run in a line.
func runLine(e wire.Event) string {
	var data struct {
		Step  string
		Visit int64
		Error string
	}
	_ = json.Unmarshal(e.Data, &data) // what it does not have is not shown
	line := e.Name
	if data.Step != "" && !strings.HasPrefix(data.Error, data.Step+": ") { // else the error names it
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

// commandFlags are for what moves a run.
type commandFlags struct {
	runArg
	ExpectedVersion *int64 `setting:"-" placeholder:"N" help:"Only if the run has this version."`
}

func (f commandFlags) in() wire.Command { return wire.Command{ExpectedVersion: f.ExpectedVersion} }

// commanded shows the run that a command has moved.
func (d *door) commanded(o onceFlags, do func(o ...client.Option) (wire.Run, error)) error {
	var raw json.RawMessage
	r, err := do(o.options(&raw)...)
	if err != nil {
		return err
	}
	return d.show(raw, runFacts(r))
}

type runsCancel struct {
	doorFlags
	onceFlags
	commandFlags
}

// Help is shown by kong.
func (runsCancel) Help() string {
	return `While somebody works on a step of it, that is only noted, and the run is cancelled when
that has ended:

    holdfast runs cancel run_019a --url http://127.0.0.1:7070`
}

// Run cancels a run.
func (c *runsCancel) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		return d.commanded(c.onceFlags, func(o ...client.Option) (wire.Run, error) { return d.CancelRun(ctx, c.ID, c.in(), o...) })
	})
}

type runsPause struct {
	doorFlags
	onceFlags
	commandFlags
}

// Help is shown by kong.
func (runsPause) Help() string {
	return `A step that is under way is finished:

    holdfast runs pause run_019a --url http://127.0.0.1:7070`
}

// Run pauses a run.
func (c *runsPause) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		return d.commanded(c.onceFlags, func(o ...client.Option) (wire.Run, error) { return d.PauseRun(ctx, c.ID, c.in(), o...) })
	})
}

type runsResume struct {
	doorFlags
	onceFlags
	commandFlags
}

// Help is shown by kong.
func (runsResume) Help() string {
	return `    holdfast runs resume run_019a --url http://127.0.0.1:7070`
}

// Run resumes a run.
func (c *runsResume) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		return d.commanded(c.onceFlags, func(o ...client.Option) (wire.Run, error) { return d.ResumeRun(ctx, c.ID, c.in(), o...) })
	})
}

type runsRetry struct {
	doorFlags
	onceFlags
	commandFlags
}

// Help is shown by kong.
func (runsRetry) Help() string {
	return `It goes on at the step at which it failed; what was done before is not done again:

    holdfast runs retry run_019a --url http://127.0.0.1:7070`
}

// Run retries a run.
func (c *runsRetry) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		return d.commanded(c.onceFlags, func(o ...client.Option) (wire.Run, error) { return d.RetryRun(ctx, c.ID, c.in(), o...) })
	})
}

type runsSignal struct {
	doorFlags
	onceFlags
	runArg
	Type    string `arg:"" help:"What the run waits for."`
	Payload string `setting:"-" placeholder:"JSON" help:"What it is told, or @FILE."`
	Once    string `setting:"-" name:"id" placeholder:"ID" help:"The signal's id: the same again is the same signal. By default a new one."`
}

// Help is shown by kong.
func (runsSignal) Help() string {
	return `One that comes before the run waits for it is kept:

    holdfast runs signal run_019a payment --payload '{"cents": 100}' --id p1 --url http://127.0.0.1:7070`
}

// Run sends a signal.
func (c *runsSignal) Run(ctx context.Context, p *program, k *kong.Context) error {
	payload, err := document("--payload", c.Payload)
	if err != nil {
		return err
	}
	in := wire.Signal{Type: c.Type, Payload: payload}
	if given(k, "id") {
		in.ID = &c.Once
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.SignalRun(ctx, c.ID, in, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, facts("signal", x.ID, "new", yes(x.Fresh)))
	})
}

type runsApprovals struct {
	doorFlags
	pageFlags
	Status string `setting:"-" default:"pending" placeholder:"STATUS" help:"Only those of this status, or all. By default pending."`
	OfRun  string `setting:"-" name:"run" placeholder:"ID" help:"Only those of this run."`
}

// Help is shown by kong.
func (runsApprovals) Help() string {
	return `    holdfast runs approvals --url http://127.0.0.1:7070
    holdfast runs approvals --run run_019a --status all --url http://127.0.0.1:7070`
}

// Run lists approvals.
func (c *runsApprovals) Run(ctx context.Context, p *program, k *kong.Context) error {
	f := client.ApprovalFilter{Status: c.Status, Run: c.OfRun}
	if f.Status == "all" {
		f.Status = ""
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListApprovalsPage(ctx, f, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"APPROVAL", "RUN", "STEP", "STATUS", "BY", "EXPIRES", "PROMPT"}}
		for _, a := range l.Items {
			t.add(a.ID, a.RunID, a.Step, a.Status, text(a.By), at(a.ExpiresAt), a.Prompt)
		}
		return d.showList(raw, t, l.Next)
	})
}

// decideFlags are for a decision.
type decideFlags struct {
	ID      string `arg:"" help:"The approval."`
	Content string `setting:"-" placeholder:"JSON" help:"What goes with the decision, or @FILE."`
	By      string `setting:"-" placeholder:"NAME" help:"What who decides wants to be called."`
}

func (f decideFlags) decide(ctx context.Context, d *door, o onceFlags, decision string) error {
	content, err := document("--content", f.Content)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	a, err := d.DecideApproval(ctx, f.ID, wire.Decide{Decision: decision, Content: content, By: f.By}, o.options(&raw)...)
	if err != nil {
		return err
	}
	return d.show(raw, facts("approval", a.ID, "run", a.RunID, "step", a.Step, "status", a.Status, "by", text(a.By), "label", text(a.Label), "decided", at(a.DecidedAt)))
}

type runsApprove struct {
	doorFlags
	onceFlags
	decideFlags
	Edited bool `setting:"-" help:"It is approved as edited: the content is what was made of it."`
}

// Help is shown by kong.
func (runsApprove) Help() string {
	return `The first decision counts:

    holdfast runs approve apr_WyJ --by ann --url http://127.0.0.1:7070
    holdfast runs approve apr_WyJ --edited --content '{"cents": 90}' --url http://127.0.0.1:7070`
}

// Run approves.
func (c *runsApprove) Run(ctx context.Context, p *program, k *kong.Context) error {
	decision := "approved"
	if c.Edited {
		decision = "edited"
	}
	return c.through(ctx, p, k, func(d *door) error { return c.decide(ctx, d, c.onceFlags, decision) })
}

type runsReject struct {
	doorFlags
	onceFlags
	decideFlags
}

// Help is shown by kong.
func (runsReject) Help() string {
	return `The first decision counts:

    holdfast runs reject apr_WyJ --by ann --url http://127.0.0.1:7070`
}

// Run rejects.
func (c *runsReject) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error { return c.decide(ctx, d, c.onceFlags, "rejected") })
}
