package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/secrets"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/transition"
	"github.com/holdfast-go/holdfast/internal/workflow"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) definitionRoutes() {
	add(a, route{Method: http.MethodPost, Path: "workflow-definitions", ID: "putDefinition", Tag: "runs", Summary: "Store a workflow definition. A dry run only validates it.",
		Roles: admins, Status: http.StatusCreated, Also: http.StatusOK, Idempotency: table.InTx, Adds: []quota.Kind{quota.Definitions, quota.Storage}, Before: lookUpLifecycles,
		More: "The definition is a JSON document. Storing the same definition again changes nothing; a different definition with the same name and version is refused."}, putDefinition)
	add(a, route{Method: http.MethodGet, Path: "workflow-definitions", ID: "listDefinitions", Tag: "runs", Summary: "List the workspace's workflow definitions.", Roles: readers}, listDefinitions)
	add(a, route{Method: http.MethodGet, Path: "workflow-definitions/{id}", ID: "getDefinition", Tag: "runs", Summary: "Show a workflow definition.", Roles: readers,
		More: "Its id is name@version."}, getDefinition)
	add(a, route{Method: http.MethodGet, Path: "workflow-definitions/{id}/diagram", ID: "getDefinitionDiagram", Tag: "runs", Summary: "Show a workflow definition's diagram.", Roles: readers, SVG: true,
		More: diagramFormats}, getDefinitionDiagram)
}

// definitionOf converts a stored definition.
func definitionOf(k runengine.StoredDefinition) (wire.Definition, error) {
	var d wire.Definition
	err := json.Unmarshal(k.Body, &d)
	d.ID, d.CreatedAt = k.ID, shapes.At(k.CreatedAt)
	return d, err
}

type defineIn struct {
	DryRun bool           `query:"dryRun" doc:"Validate the definition without storing it."`
	Body   table.Document `arg:"definition"`
}

func (in *defineIn) repeats(c *call) (bool, error) {
	def, violations := workflow.Parse(in.Body.Text)
	if in.DryRun || def == nil || len(violations) > 0 {
		return true, nil
	}
	_, err := runengine.Definition(c.ctx(), c.api.engine, def.ID())
	return exists(err)
}

func putDefinition(c *call, in *defineIn) (wire.DefinedWorkflow, error) {
	var none wire.DefinedWorkflow
	def, warnings, err := c.validateDefinition(in.Body.Text, in.DryRun)
	if err != nil {
		return none, err
	}
	stored := runengine.StoredDefinition{ID: def.ID(), Body: def.JSON()}
	fresh := false
	if !in.DryRun {
		if fresh, err = runengine.Define(c.ctx(), c.doer(), def); err == nil {
			stored, err = runengine.Definition(c.ctx(), c.doer(), def.ID())
		}
		if err != nil {
			return none, err
		}
		c.w.Header().Set("Location", table.Base+"workflow-definitions/"+url.PathEscape(stored.ID))
	}
	if !fresh {
		c.status = http.StatusOK
	}
	out := wire.DefinedWorkflow{Warnings: warnings}
	out.Definition, err = definitionOf(stored)
	return out, err
}

// validateDefinition parses a definition and checks it against every rule. Its error lists all violations.
func (c *call) validateDefinition(text []byte, dryRun bool) (*workflow.Definition, []fault.Violation, error) {
	def, violations := workflow.Parse(text)
	if def == nil {
		return nil, nil, badDefinition(violations)
	}
	for i := range def.Steps {
		if as := def.Steps[i].Requester; as != "" && !c.key.Speaks(as) { // runs act for it, regardless of the key that starts them
			return nil, nil, c.mayActAs(as)
		}
	}
	known, undeclared, err := c.handlersOf(def, dryRun || len(violations) > 0)
	if err != nil {
		return nil, nil, err
	}
	there, err := c.secretsOf(def)
	if err != nil {
		return nil, nil, err
	}
	more, found := def.Lint(workflow.Known{Handlers: known, Lifecycles: c.lifecyclesOf(def), Secrets: there})
	if violations = append(violations, more...); len(violations) > 0 {
		return nil, nil, badDefinition(violations)
	}
	warnings := []fault.Violation{}
	for _, name := range undeclared {
		warnings = append(warnings, fault.Violation{Rule: "undeclared", Path: "/steps", Message: undeclaredWarning(name)})
	}
	return def, append(warnings, violationsOf(found)...), nil
}

// violationsOf converts violations for the response.
func violationsOf(all []workflow.Violation) []fault.Violation {
	out := make([]fault.Violation, len(all))
	for i, v := range all {
		out[i] = fault.Violation{Rule: v.Rule, Path: v.Path, Line: v.Line, Message: v.Message}
	}
	return out
}

func badDefinition(all []workflow.Violation) error {
	lines := make([]string, len(all))
	for i, v := range all {
		lines[i] = fmt.Sprintf("%s %s: %s", v.Rule, v.Path, v.Message)
		if v.Line > 0 {
			lines[i] = fmt.Sprintf("line %d: %s", v.Line, lines[i])
		}
	}
	err := fault.New(fault.Validation, "the definition is invalid: %s", strings.Join(lines, "; "))
	err.Violations = violationsOf(all)
	return err
}

// handlersOf returns the handlers that a definition names: those of the program and the declared
// ones. In development mode, an undeclared one is declared as a worker handler; with dry, it is
// only treated as one.
func (c *call) handlersOf(def *workflow.Definition, dry bool) (known map[string]workflow.Handler, undeclared []string, err error) {
	known = make(map[string]workflow.Handler)
	own := runengine.LocalOf(c.api.engine).Handled()
	for _, name := range def.Handlers() {
		if h, ok := own[name]; ok {
			known[name] = workflow.Handler{Kind: "step", Safety: h.Safety, Timeout: h.Timeout}
			continue
		}
		if strictjson.Text("handler", name, table.MaxParameter) != nil { // the linter reports it
			continue
		}
		h, err := remotehandler.Get(c.ctx(), c.doer(), name)
		if fault.CodeOf(err) == fault.NotFound {
			if !c.api.declares {
				continue
			}
			undeclared, err = append(undeclared, name), nil
			if h = (remotehandler.Handler{Kind: "worker"}); !dry {
				h, err = c.declareOne(name)
			}
		}
		if err != nil {
			return nil, nil, err
		}
		known[name] = workflow.Handler{Kind: h.Kind, Safety: h.Safety, Timeout: h.Timeout}
	}
	return known, undeclared, nil
}

// secretsOf returns which of the secrets that a definition refers to exist.
func (c *call) secretsOf(def *workflow.Definition) (map[string]bool, error) {
	there := make(map[string]bool)
	for _, name := range def.Secrets() {
		_, err := secrets.Get(c.ctx(), c.doer(), name)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		there[name] = err == nil
	}
	return there, nil
}

// lifecyclesOf returns a lookup of the steps of lifecycles that a definition names; nil if the
// engine serves no lifecycles. The lifecycles are read outside of a transaction.
func (c *call) lifecyclesOf(def *workflow.Definition) func(string) (map[string]bool, bool) {
	firer := transition.On(c.api.engine)
	if firer == nil {
		return nil
	}
	if c.steps == nil {
		c.steps = make(map[string]map[string]bool)
		for i := range def.Steps {
			name := def.Steps[i].Lifecycle
			if name == "" {
				continue
			}
			if keys, ok := firer.Steps(c.ctx(), name); ok {
				c.steps[name] = keys
			}
		}
	}
	return func(name string) (map[string]bool, bool) {
		keys, ok := c.steps[name]
		return keys, ok
	}
}

// lookUpLifecycles reads the lifecycles of a definition before its transaction begins.
func lookUpLifecycles(c *call) {
	if def, _ := workflow.Parse(c.body); def != nil {
		c.lifecyclesOf(def)
	}
}

func listDefinitions(c *call, in *paged) (wire.List[wire.Definition], error) {
	var none wire.List[wire.Definition]
	p, err := c.page(*in)
	if err != nil {
		return none, err
	}
	found, next, err := readPage(c, p, func(ctx context.Context, after string, limit int) ([]runengine.StoredDefinition, error) {
		return runengine.Definitions(ctx, c.doer(), after, limit)
	}, func(k runengine.StoredDefinition) string { return k.ID })
	if err != nil {
		return none, err
	}
	all := make([]wire.Definition, len(found))
	for i, k := range found {
		var bad error
		all[i], bad = definitionOf(k)
		err = errors.Join(err, bad)
	}
	return listed(c, all, next), err
}

type getDefinitionIn struct {
	ID string `path:"id" doc:"name@version"`
}

func getDefinition(c *call, in *getDefinitionIn) (wire.Definition, error) {
	k, err := runengine.Definition(c.ctx(), c.doer(), in.ID)
	if err != nil {
		return wire.Definition{}, err
	}
	return definitionOf(k)
}
