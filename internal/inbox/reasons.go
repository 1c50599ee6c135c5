package inbox

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/reactions"
)

// The following methods set the subject and the reason of an entry of one kind from its facts, which are the last columns
// of the statement that found it.

func (e *Entry) uncertainOperation() {
	e.Subject = e.Facts[0] + "/" + e.Facts[1]
	e.Reason = because(fmt.Sprintf("It is not known whether an effect of step %q happened", e.Facts[2]), e.Facts[3])
}

func (e *Entry) uncertainStep() {
	e.Subject = e.Facts[0] + "/" + e.Facts[1]
	e.Reason = because(fmt.Sprintf("It is not known whether an effect of step %q happened", e.Facts[1]), e.Facts[3])
}

func (e *Entry) blocked() {
	e.Subject = e.Facts[0] + " on " + e.Facts[1]
	e.Reason = because(fmt.Sprintf("The reaction failed at version %s after %s and is blocked on this stream", e.Facts[2], times(e.Facts[4], "failure")), e.Facts[3])
	if id, ok := strings.CutPrefix(e.Facts[0], reactions.HookPrefix); ok {
		e.Subject = "webhook " + id + " on " + e.Facts[1]
		e.Reason = because(fmt.Sprintf("The receiver did not accept version %s after %s, and nothing more of this stream is sent", e.Facts[2], times(e.Facts[4], "failure")), e.Facts[3])
	}
}

func (e *Entry) failedRun() {
	e.Subject = e.Facts[0]
	e.Reason = because(fmt.Sprintf("The run of %s failed at step %q", e.Facts[1], e.Facts[2]), e.Facts[3])
}

func (e *Entry) approval() {
	e.Subject = e.Facts[0] + "/" + e.Facts[1]
	var requesters []string
	_ = json.Unmarshal([]byte(e.Facts[4]), &requesters) // written by the engine
	e.Owner = strings.Join(requesters, ", ")
	e.Reason = because(fmt.Sprintf("The run waits for a decision at step %q", e.Facts[1]), e.Facts[3])
}

func (e *Entry) overdueSignal() {
	e.Subject = e.Facts[0] + "/" + e.Facts[1]
	e.Reason = fmt.Sprintf("Step %q is still waiting for a signal although its deadline has passed, so no node serves the timers of runs.", e.Facts[1])
}

// Missing returns how many points a PAUSED batch lacks.
func (e *Entry) Missing() int64 {
	need, _ := strconv.ParseInt(e.Facts[2], 10, 64) // always a number
	balance, _ := strconv.ParseInt(e.Facts[3], 10, 64)
	return max(need-balance, 0)
}

func (e *Entry) pausedBatch() {
	e.Subject = e.Facts[0]
	e.Reason = fmt.Sprintf("Wallet %q has %s points and the next item costs %s, so %d are missing.", e.Facts[1], e.Facts[3], e.Facts[2], e.Missing())
}

func (e *Entry) teardown() {
	e.Subject = e.Facts[0]
	e.Reason = because(fmt.Sprintf("The teardown or cleanup of the %s batch fails and is tried again", e.Facts[1]), e.Facts[3])
}

func (e *Entry) expiredLease() {
	what := map[string]string{"operation": "operation of an entity", "step": "step of a run", "item": "item of a batch", "delivery": "delivery to a reaction"}[e.Facts[0]]
	e.Subject = e.Facts[1] + "/" + e.Facts[2]
	e.Reason = fmt.Sprintf("The lease of %s on this %s is past its end, and no janitor has released it.", e.Owner, what)
}

func (e *Entry) closingStream() {
	e.Subject = e.Facts[0]
	e.Reason = fmt.Sprintf("%s began to close the stream at version %s and did not finish, so appends wait for a janitor to reopen it.", e.Owner, e.Facts[1])
}

func (e *Entry) undeleted() {
	e.Subject = e.Facts[0]
	switch e.Facts[0] {
	case "runs":
		whose := "their"
		if e.Facts[1] == "1" {
			whose = "its"
		}
		e.Reason = fmt.Sprintf("%s should have been deleted when %s retention ended, beginning with %s.", times(atMost(e.Facts[1]), "run"), whose, e.Facts[2])
		return
	case "batches":
		e.Reason = fmt.Sprintf("The items of %s should have been deleted after their retention, beginning with %q.", times(atMost(e.Facts[1]), "batch"), e.Facts[2])
		return
	}
	e.Reason = fmt.Sprintf("The removed events of %s should have been deleted, beginning with %q.", times(atMost(e.Facts[1]), "stream"), e.Facts[2])
}

// atMost returns a count that was read up to the cap.
func atMost(n string) string {
	if n == strconv.Itoa(Cap+1) {
		return "more than " + strconv.Itoa(Cap)
	}
	return n
}

// times returns a count with its noun.
func times(n, noun string) string {
	if n == "1" {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		noun += "e"
	}
	return n + " " + noun + "s"
}

// because adds the recorded error, or the question, to a sentence.
func because(sentence, message string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	if message == "" {
		return sentence + "."
	}
	if !strings.ContainsAny(message[len(message)-1:], ".?!") {
		message += "."
	}
	return sentence + ": " + message
}
