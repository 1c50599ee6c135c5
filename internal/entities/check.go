package entities

import (
	"cmp"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// checkNames refuses invalid names. A stream's name is built from them, so a lifecycle's name has no slash.
func checkNames(lifecycle, id string, statuses ...string) error {
	if strings.Contains(lifecycle, "/") {
		return fault.New(fault.Validation, "a lifecycle name must not contain a slash, got %q", lifecycle)
	}
	if err := cmp.Or(strictjson.Text("lifecycle", lifecycle, events.MaxName), strictjson.Text("id", id, events.MaxName)); err != nil {
		return err
	}
	for _, s := range statuses {
		if err := strictjson.Text("status", s, events.MaxName); err != nil {
			return err
		}
	}
	return nil
}

func checkTransition(a TransitionArgs) error {
	if len(a.From) == 0 {
		return fault.New(fault.Validation, "a transition requires at least one status to start from")
	}
	if a.ExpectVersion != nil && *a.ExpectVersion < 0 {
		return fault.New(fault.Validation, "the expected version must be 0 or more, got %d", *a.ExpectVersion)
	}
	err := cmp.Or(
		checkNames(a.Lifecycle, a.ID, append([]string{a.To}, a.From...)...),
		strictjson.Text("event", a.Event, events.MaxName),
		events.CheckMeta(a.Meta))
	if err == nil && a.Data != nil {
		err = strictjson.Object(a.Data)
	}
	if err == nil && a.Note != nil {
		err = strictjson.Check(a.Note)
	}
	return err
}
