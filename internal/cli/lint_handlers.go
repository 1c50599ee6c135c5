package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// handlersFile is the file with handlers that lint reads if it exists.
const handlersFile = "handlers.yaml"

// listedHandler is a handler in a file with handlers.
type listedHandler struct {
	Kind    string `yaml:"kind"`
	Safety  string `yaml:"safety"`
	Timeout string `yaml:"timeout"`
}

// The kinds and safeties of handlers. A handler without a kind serves as any.
var (
	handlerKinds    = []string{"", "action", "validation", "afterEffect", "step", "worker", "http"}
	handlerSafeties = []string{"", "idempotent", "transactional", "journaled", "opaque"}
)

// knownHandlers are the handlers that lint knows, by name; nil if it knows none and does not check them.
type knownHandlers map[string]workflow.Handler

// lifecycle returns the handlers as a config may name them.
func (k knownHandlers) lifecycle() map[string]lifecycleconfig.Handler {
	if k == nil {
		return nil
	}
	all := make(map[string]lifecycleconfig.Handler, len(k))
	for name, h := range k {
		workers := h.Kind == "worker"
		if workers || h.Kind == "http" { // serves as any
			h.Kind = ""
		}
		all[name] = lifecycleconfig.Handler{Kind: h.Kind, Safety: lifecycleconfig.Safety(h.Safety), Timeout: h.Timeout, Workers: workers}
	}
	return all
}

// handlers returns the handlers of the server or database, if one is given on the command line, and of the file. Those of
// the file come last: it describes the program that is being written.
func (c *lintCommand) handlers(ctx context.Context, to *target) (known knownHandlers, err error) {
	if to.given("url") || to.given("db") {
		if known, err = declaredHandlers(ctx, to); err != nil {
			return nil, err
		}
	}
	file := c.Handlers
	if file == "" {
		file = handlersFile
	}
	data, err := os.ReadFile(file)
	switch {
	case c.Handlers == "" && errors.Is(err, fs.ErrNotExist):
		return known, nil
	case err != nil:
		return nil, fmt.Errorf("cannot read the handlers: %w", err)
	}
	listed, err := parseHandlers(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if known == nil {
		return listed, nil
	}
	for name, h := range listed {
		known[name] = h
	}
	return known, nil
}

func declaredHandlers(ctx context.Context, to *target) (knownHandlers, error) {
	d, err := to.open(ctx)
	if err != nil {
		return nil, err
	}
	known := make(knownHandlers)
	for h, err := range d.ListHandlers(ctx) {
		if err != nil {
			return nil, err
		}
		known[h.Name] = workflow.Handler{Kind: h.Kind, Safety: h.Safety, Timeout: time.Duration(h.TimeoutMs) * time.Millisecond}
	}
	return known, nil
}

// parseHandlers parses a file with handlers: their names, each with its kind, safety and timeout.
func parseHandlers(data []byte) (knownHandlers, error) {
	var listed map[string]listedHandler
	if err := yaml.UnmarshalWithOptions(data, &listed, yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("not a list of handlers, such as \"Charge: {kind: action, safety: journaled, timeout: 30s}\": %s", oneLine(err.Error()))
	}
	known := make(knownHandlers, len(listed))
	for name, l := range listed {
		h := workflow.Handler{Kind: l.Kind, Safety: l.Safety}
		switch {
		case !slices.Contains(handlerKinds, l.Kind):
			return nil, fmt.Errorf("handler %q has kind %q: use action, validation, afterEffect, step, worker or http", name, l.Kind)
		case !slices.Contains(handlerSafeties, l.Safety):
			return nil, fmt.Errorf("handler %q has safety %q: use idempotent, transactional, journaled or opaque", name, l.Safety)
		case l.Timeout != "":
			d, err := time.ParseDuration(l.Timeout)
			if err != nil || d <= 0 {
				return nil, fmt.Errorf("handler %q has timeout %q: use a positive duration, such as 30s", name, l.Timeout)
			}
			h.Timeout = d
		}
		known[name] = h
	}
	return known, nil
}
