package crash

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fault is what happens at a point.
type Fault uint8

const (
	// None lets a point pass.
	None Fault = iota
	// Before kills the engine before the point: nothing of it is executed,
	// and every call returns [ErrCrashed] until a new engine is opened.
	Before
	// After executes the point, a commit included, and then kills the engine.
	After
	// Error executes the point, and the caller is not told: the outcome is
	// unknown to it. The engine lives on.
	Error
	// Lost does not execute the point, and the caller is told the same.
	Lost
	// Cancel ends the context of the call before it.
	Cancel
)

// Faults are all of them.
var Faults = []Fault{Before, After, Error, Lost, Cancel}

var faultNames = []string{None: "none", Before: "before", After: "after", Error: "error", Lost: "lost", Cancel: "cancel"}

func (f Fault) String() string { return faultNames[f] }

// Strike is a fault at one point.
type Strike struct {
	// At is the number of the point, from 1; after another strike it counts
	// from there.
	At    int
	Fault Fault
	// ForGood makes an Error or a Lost strike at the points that follow too.
	// So that everything ends, the engine dies at the one after [Patience]
	// of them, and the fault with it. A Cancel for good ends the context of
	// the whole request ([Plan.Request]), and with it that of the calls that
	// are not detached from it. A crash is for good as it is.
	ForGood bool
}

// Patience is how often a fault that is for good strikes before it kills.
const Patience = 3

// String returns the strike as [Parse] reads it: "7:after", "3:lost!".
func (s Strike) String() string {
	text := strconv.Itoa(s.At) + ":" + s.Fault.String()
	if s.ForGood {
		text += "!"
	}
	return text
}

// Format returns strikes in a line: "7:after,2:before".
func Format(all []Strike) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = s.String()
	}
	return strings.Join(texts, ",")
}

// Parse reads what [Format] writes.
func Parse(text string) ([]Strike, error) {
	var all []Strike
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseStrike(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func parseStrike(text string) (Strike, error) {
	number, name, _ := strings.Cut(text, ":")
	name, forGood := strings.CutSuffix(name, "!")
	at, err := strconv.Atoi(number)
	fault := slices.Index(faultNames, name)
	if err != nil || at < 1 || fault < int(Before) {
		return Strike{}, fmt.Errorf("%q is no strike: write a point's number and a fault, such as 7:after, or 3:lost! for good", text)
	}
	return Strike{At: at, Fault: Fault(fault), ForGood: forGood}, nil
}
