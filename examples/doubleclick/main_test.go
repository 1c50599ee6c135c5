package main

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var timeOfClaim = regexp.MustCompile(`since \S+`)

// TestTwoClicksAreOneCharge runs the program of the README, and compares its output with the output that the README shows.
func TestTwoClicksAreOneCharge(t *testing.T) {
	want, err := os.ReadFile("output.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	got := sorted(output(t))
	for i, line := range got {
		if strings.HasPrefix(line, "click: INVALID_TRANSITION: ") { // the second click came after the first had ended
			got[i] = `click: CLAIM_FAILED: another operation is already in progress: step "pay" of invoice "i-1", since T`
		}
	}
	if want := sorted(string(want)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if again := sorted(output(t)); len(again) != 2 || !strings.Contains(again[0]+again[1], `has status "paid"`) {
		t.Errorf("the second run of the program printed %q", again)
	}
}

// output runs the program and returns what it prints.
func output(t *testing.T) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	main()
	os.Stdout = stdout
	w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func sorted(text string) []string {
	lines := strings.Split(strings.TrimSpace(timeOfClaim.ReplaceAllString(text, "since T")), "\n")
	slices.Sort(lines)
	return lines
}
