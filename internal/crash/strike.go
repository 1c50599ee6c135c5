package crash

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fault is the kind of failure at a point.
type Fault uint8

const (
	// None lets a point pass.
	None Fault = iota
	// Before crashes the engine before the point: the point is not executed, and every call returns [ErrCrashed]
	// until a new engine is opened.
	Before
	// After executes the point, including a commit, and then crashes the engine.
	After
	// Error executes the point but hides the result: its outcome is unknown to the caller. The engine stays alive.
	Error
	// Lost does not execute the point, and returns the same error as Error.
	Lost
	// Cancel ends the context of the call before the point.
	Cancel
)

// Faults lists all faults.
var Faults = []Fault{Before, After, Error, Lost, Cancel}

var faultNames = []string{None: "none", Before: "before", After: "after", Error: "error", Lost: "lost", Cancel: "cancel"}

// String returns the name of the fault in a [Strike].
func (f Fault) String() string { return faultNames[f] }

// Strike is a fault at one point.
type Strike struct {
	// At is the number of the point, from 1; after another strike it counts from there.
	At    int
	Fault Fault
	// ForGood makes an Error or a Lost strike at the following points too. To ensure that everything ends, the
	// engine crashes after [Patience] of them, which also ends the fault. A Cancel for good ends the context of the
	// entire request ([Plan.Request]), and with it that of every call not detached from it. A crash is always for
	// good.
	ForGood bool
}

// Patience is how often a permanent fault strikes before the engine crashes.
const Patience = 3

// String returns the strike in the syntax of [Parse]: "7:after", "3:lost!".
func (s Strike) String() string {
	text := strconv.Itoa(s.At) + ":" + s.Fault.String()
	if s.ForGood {
		text += "!"
	}
	return text
}

// Format returns strikes as one line: "7:after,2:before".
func Format(all []Strike) string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = s.String()
	}
	return strings.Join(texts, ",")
}

// Parse parses the output of [Format].
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
		return Strike{}, fmt.Errorf("%q is not a strike: write the number of a point and a fault, such as 7:after, or 3:lost! for a permanent fault", text)
	}
	return Strike{At: at, Fault: Fault(fault), ForGood: forGood}, nil
}
