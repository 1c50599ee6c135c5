package entities

import (
	"cmp"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// checkNames refuses names that cannot be told apart later: a stream's name is
// made of them, so a lifecycle's has no slash.
func checkNames(lifecycle, id string, statuses ...string) error {
	if strings.Contains(lifecycle, "/") {
		return fault.New(fault.Validation, "a lifecycle's name has no slash: %q", lifecycle)
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
		return fault.New(fault.Validation, "a transition names the status that it leaves")
	}
	if a.ExpectVersion != nil && *a.ExpectVersion < 0 {
		return fault.New(fault.Validation, "the expected version is %d: an entity's version is 0 or more", *a.ExpectVersion)
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
