package stage

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// None checks the program's own tables: the query must return no rows. statement says what is
// checked.
func (s *Stage) None(ctx context.Context, statement, query string, args ...any) error {
	rows, err := s.DB.Rows(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	var found []string
	for _, row := range rows {
		found = append(found, strings.Join(row, " "))
	}
	s.Tell(statement, found)
	return nil
}

// Tell prints the result of a check, which holds if found is empty.
func (s *Stage) Tell(statement string, found []string) {
	if len(found) == 0 {
		fmt.Println("ok   ", statement)
		return
	}
	s.broken++
	fmt.Println("BROKEN", statement)
	for _, f := range found {
		fmt.Println("      ", f)
	}
}

// Well reports whether all checks have held so far.
func (s *Stage) Well() bool { return s.broken == 0 }

// Whole checks Holdfast's own data: no operation is unfinished or uncertain, and the
// invariants hold.
func (s *Stage) Whole(ctx context.Context, parts ...holdfast.Part) error {
	hf, err := holdfast.Open(ctx, s.DB.Holdfast(), holdfast.Config{Log: s.Log}, parts...)
	if err != nil {
		return err
	}
	defer hf.Close()
	var found []string
	for o, err := range lifecycle.ListOperations(ctx, hf, lifecycle.OperationFilter{}) {
		if err != nil {
			return err
		}
		found = append(found, fmt.Sprintf("%s of %s is %s, after %d failures and %d crashes: %s", o.Step, o.Entity, o.Phase, o.Failures, o.Crashes, o.Error))
	}
	s.Tell("no operation is unfinished or uncertain", found)

	report, err := hf.Check(ctx)
	if err != nil {
		return err
	}
	found = nil
	for _, v := range report.Violations {
		found = append(found, fmt.Sprint(v))
	}
	s.Tell("Holdfast's own check finds no violations", found)
	return nil
}
