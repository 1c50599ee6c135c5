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
	// Error executes the point but hides the result and returns an error. At a commit or a call the outcome is then unknown
	// to the caller; at a read, or a command inside a transaction, it is a failure. The engine stays alive.
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
	// At is the number of the point. Points are numbered from 1, and from 1 again after each strike.
	At    int
	Fault Fault
	// ForGood repeats an Error or a Lost at every point that follows. So that each case ends, the engine crashes after
	// [Patience] repetitions, and the fault ends with it. With Cancel, ForGood ends the context of the whole request
	// ([Plan.Request]), and so of every call whose context was derived from it. It has no effect on Before and After: an
	// engine that has crashed does not recover.
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
