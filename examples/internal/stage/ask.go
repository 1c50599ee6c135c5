package stage

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// None asks the program's own tables: the query finds what must not be.
func (s *Stage) None(ctx context.Context, claim, query string, args ...any) error {
	rows, err := s.DB.Rows(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", claim, err)
	}
	var found []string
	for _, row := range rows {
		found = append(found, strings.Join(row, " "))
	}
	s.Tell(claim, found)
	return nil
}

// Tell prints whether something holds: nothing was found that breaks it.
func (s *Stage) Tell(claim string, found []string) {
	if len(found) == 0 {
		fmt.Println("ok   ", claim)
		return
	}
	s.broken++
	fmt.Println("BROKEN", claim)
	for _, f := range found {
		fmt.Println("      ", f)
	}
}

// Well says whether everything has held so far.
func (s *Stage) Well() bool { return s.broken == 0 }

// Whole asks Holdfast itself: for operations that are not at their end, among which
// are those that wait for a person, and for what breaks its invariants.
func (s *Stage) Whole(ctx context.Context, parts ...holdfast.Part) error {
	hf, err := holdfast.Open(ctx, s.DB.Holdfast(), holdfast.Config{Log: s.Log}, parts...)
	if err != nil {
		return err
	}
	defer hf.Close()
	var found []string
	for o, err := range lifecycle.Operations(ctx, hf, "") {
		if err != nil {
			return err
		}
		found = append(found, fmt.Sprintf("%s of %s is %s, after %d failures and %d crashes: %s", o.Step, o.Entity, o.Phase, o.Failures, o.Crashes, o.Error))
	}
	s.Tell("no operation is left open, and none waits for a person", found)

	report, err := hf.Check(ctx)
	if err != nil {
		return err
	}
	found = nil
	for _, v := range report.Violations {
		found = append(found, fmt.Sprint(v))
	}
	s.Tell("Holdfast's own check finds nothing wrong", found)
	return nil
}
