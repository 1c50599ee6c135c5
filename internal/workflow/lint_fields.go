package workflow

import (
	"cmp"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// MaxAttempt is how long one attempt may take at the most.
const MaxAttempt = 24 * time.Hour

// shape holds a step to the fields of its type. [Parse] has done so for a text.
func (l *linter) shape(i int, s *Step) {
	shape := shapes[s.Type]
	for _, f := range stepFields {
		set := f.value(s) != nil
		path := stepPath(i, f.name)
		switch needed := slices.Contains(shape.required, f.name); {
		case set && !shape.has(f.name) && !l.IsText():
			l.Refuse("D7", path, "%s has no field %s: it has %s", shape.what, f.name, configdoc.List(shape.names()))
		case needed && !set && l.Given(path):
			l.Refuse("D7", path, "%s needs %s: fill it in", shape.what, f.name)
		}
	}
}

// durations holds times to D7. [Parse] has refused the wrong ones of a text, but for how
// long an attempt may take.
func (l *linter) durations(i int, s *Step) {
	l.duration(stepPath(i, "durationMs"), s.Duration)
	l.duration(configdoc.Child(stepPath(i, "retry"), "backoffMs"), s.Retry.Backoff)
	l.duration(configdoc.Child(stepPath(i, "retry"), "maxBackoffMs"), s.Retry.MaxBackoff)
	path := stepPath(i, "timeoutMs")
	l.duration(path, s.Timeout)
	if attempted := s.Type == Task || s.Type == HTTP || s.Type == Transition; attempted && s.Timeout > MaxAttempt {
		l.Refuse("D7", path, "one attempt of %s takes 24 hours at the most (%d ms): shorten it, or write a wait", shapes[s.Type].what, MaxAttempt.Milliseconds())
	}
}

func (l *linter) duration(path string, d time.Duration) {
	switch {
	case d < 0 || d > MaxDuration:
		l.Refuse("D7", path, "%s is more than nothing and a hundred years at the most, and this is %v", configdoc.Last(path), d)
	case d%time.Millisecond != 0:
		l.Refuse("D7", path, "%s is a whole number of milliseconds, and this is %v", configdoc.Last(path), d)
	}
}

func (l *linter) retry(i int, s *Step) {
	r, path := s.Retry, stepPath(i, "retry")
	if at := configdoc.Child(path, "maxAttempts"); (r.MaxAttempts < 0 || r.MaxAttempts > MaxAttempts) && l.Given(at) {
		l.Refuse("D7", at, "maxAttempts is 1 to %d, the first included, and this is %d", MaxAttempts, r.MaxAttempts)
	}
	if r.Multiplier != 0 && !(r.Multiplier >= 1 && r.Multiplier <= 100) {
		l.Refuse("D7", configdoc.Child(path, "multiplier"), "multiplier is 1 to 100, and this is %v", r.Multiplier)
	}
	if r.MaxBackoff > 0 && r.Backoff > r.MaxBackoff {
		l.Refuse("D7", configdoc.Child(path, "maxBackoffMs"), "maxBackoffMs is less than backoffMs: make it longer, or leave it out")
	}
}

// ofType judges what only one type has.
func (l *linter) ofType(i int, s *Step) {
	switch s.Type {
	case Task:
		l.task(i, s)
	case HTTP:
		l.http(i, s)
	case Wait:
		l.wait(i, s)
	case Event:
		l.name("D7", stepPath(i, "signal"), "signal", s.Signal, maxName)
		l.patience(i, s)
	case Approval:
		l.approval(i, s)
	case Transition:
		l.transition(i, s)
	}
}

var (
	safeties  = []string{"idempotent", "transactional", "journaled", "opaque"}
	onUnknown = []string{"retry", "probe", "hold"}
	methods   = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
)

// oneOf refuses a word that is none of these; "" is the default.
func (l *linter) oneOf(path, s string, words []string) {
	if s != "" && !slices.Contains(words, s) {
		l.Refuse("D7", path, "%s is one of %s, and this is %s", configdoc.Last(path), configdoc.List(words), configdoc.Show(s))
	}
}

func (l *linter) task(i int, s *Step) {
	l.oneOf(stepPath(i, "safety"), s.Safety, safeties)
	l.oneOf(stepPath(i, "onUnknown"), s.OnUnknown, onUnknown)
	path := stepPath(i, "handler")
	if s.Handler == "" || !l.name("D7", path, "handler", s.Handler, maxName) || l.known.Handlers == nil {
		return
	}
	h, ok := l.known.Handlers[s.Handler]
	switch {
	case !ok:
		l.Refuse("D5", path, "there is no handler %s: register it, or correct the name", configdoc.Show(s.Handler))
	case !slices.Contains([]string{"", "step", "http", "worker"}, h.Kind):
		l.Refuse("D5", path, "the handler %s is registered as %s, and is used as a step: name another", configdoc.Show(s.Handler), configdoc.Show(h.Kind))
	case s.Safety == "" && h.Safety == "":
		l.Warn("W2", path, "neither the step nor the handler %s says what a crash leaves of it: declare its safety", configdoc.Show(s.Handler))
	}
}

// headerName is a name that a header may have.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (l *linter) http(i int, s *Step) {
	l.oneOf(stepPath(i, "method"), s.Method, methods)
	l.oneOf(stepPath(i, "onUnknown"), s.OnUnknown, onUnknown)
	path := stepPath(i, "safety")
	if l.oneOf(path, s.Safety, safeties); s.Safety == "transactional" {
		l.Refuse("D7", path, "a call writes through no transaction of ours: it is idempotent, journaled or opaque")
	}
	if s.Safety == "" && (s.Method == "POST" || s.Method == "PATCH") {
		l.Warn("W2", configdoc.Item("/steps", i), "a %s does not say what a crash leaves of it: add safety", s.Method)
	}
	text, ok := l.plainText(stepPath(i, "url"), s.URL)
	if number, err := decode(s.URL); ok && !isURL(text) || err == nil && isNumber(number) {
		l.Refuse("D7", stepPath(i, "url"), "url is a whole one, with http or https and a host, and this is %s", configdoc.Show(cmp.Or(text, string(s.URL))))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		l.header(configdoc.Child(stepPath(i, "headers"), name), name, s.Headers[name])
	}
}

func (l *linter) header(path, name string, v Value) {
	if !headerName.MatchString(name) {
		l.Refuse("D7", path, "%s is no name of a header: correct it", configdoc.Show(name))
	}
	if text, ok := l.plainText(path, v); ok && strings.ContainsAny(text, "\r\n\x00") {
		l.Refuse("D7", path, "a header is one line: take the line's end out")
	}
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// plainText returns a value that has to be a text, and is no expression; a number is taken
// for a text, and passes.
func (l *linter) plainText(path string, v Value) (text string, ok bool) {
	if len(v) == 0 || !l.Given(path) {
		return "", false
	}
	parsed, err := decode(v)
	if err != nil || isNumber(parsed) {
		return "", false
	}
	s, ok := parsed.(string)
	if !ok {
		l.Refuse("D7", path, "%s is a text, or an expression in one", configdoc.Last(path))
		return "", false
	}
	text, is := expression(s)
	if !is && text == "" {
		l.Refuse("D7", path, "%s is empty: fill it in", configdoc.Last(path))
		return "", false
	}
	return text, !is
}

func (l *linter) wait(i int, s *Step) {
	at := configdoc.Item("/steps", i)
	if l.Refused(stepPath(i, "durationMs")) || l.Refused(stepPath(i, "until")) {
		return
	}
	switch {
	case s.Duration == 0 && len(s.Until) == 0:
		l.Refuse("D7", at, "a wait needs durationMs or until: add one")
	case s.Duration != 0 && len(s.Until) > 0:
		l.Refuse("D7", at, "a wait has durationMs or until, and this has both: keep one of them")
	}
	text, ok := l.plainText(stepPath(i, "until"), s.Until)
	if _, err := time.Parse(time.RFC3339, text); ok && err != nil {
		l.Refuse("D7", stepPath(i, "until"), "until is a time such as 2030-01-31T12:00:00Z, milliseconds since 1970, or an expression, and this is %s", configdoc.Show(text))
	}
}

// patience warns of a step that waits for somebody without an end.
func (l *linter) patience(i int, s *Step) {
	if s.Timeout == 0 && !l.Refused(stepPath(i, "timeoutMs")) {
		l.Warn("W1", configdoc.Item("/steps", i), "%s waits for ever if nobody comes: add timeoutMs, and onTimeout", configdoc.Show(s.Name))
	}
	if s.OnTimeout != "" && s.Timeout == 0 && !l.Refused(stepPath(i, "timeoutMs")) {
		l.Refuse("D7", stepPath(i, "onTimeout"), "there is no timeoutMs, so this is never used: add it, or take this out")
	}
}

func (l *linter) approval(i int, s *Step) {
	l.patience(i, s)
	for j, r := range s.Requesters {
		l.name("D7", configdoc.Item(stepPath(i, "requesters"), j), "a requester", r, maxName)
	}
	if s.OnReject != "" || l.Partial() {
		return
	}
	if !l.d.LooksAt(l.d.After(i), s.Name) {
		l.Warn("W3", configdoc.Item("/steps", i), "nobody looks at it if %s is rejected, and the run fails then: add onReject, or a condition behind it that looks at its output", configdoc.Show(s.Name))
	}
}

// transition holds a transition to D8.
func (l *linter) transition(i int, s *Step) {
	l.plainText(stepPath(i, "entity"), s.Entity)
	for field, text := range map[string]string{"lifecycle": s.Lifecycle, "stepKey": s.StepKey, "requester": s.Requester} {
		if text != "" {
			l.name("D7", stepPath(i, field), field, text, maxName)
		}
	}
	if l.known.Lifecycles == nil || s.Lifecycle == "" {
		return
	}
	steps, ok := l.known.Lifecycles(s.Lifecycle)
	switch {
	case !ok:
		l.Refuse("D8", stepPath(i, "lifecycle"), "there is no lifecycle %s: register it, or correct the name", configdoc.Show(s.Lifecycle))
	case s.StepKey != "" && !steps[s.StepKey]:
		l.Refuse("D8", stepPath(i, "stepKey"), "the lifecycle %s has no step %s: it has %s", configdoc.Show(s.Lifecycle), configdoc.Show(s.StepKey), configdoc.List(configdoc.Few(slices.Sorted(maps.Keys(steps)))))
	}
}

// sound refuses a value that is no JSON. [Parse] makes none.
func (l *linter) sound(path string, v Value) bool {
	if err := strictjson.Check(v); err != nil {
		l.Refuse("D7", path, "%s: correct it", configdoc.Reason(err))
		return false
	}
	return true
}
