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

// maxAttemptTime is the maximum timeout of one attempt.
const maxAttemptTime = 24 * time.Hour

// shape checks that a step has the fields of its type. [Parse] has done so for a text.
func (l *linter) shape(i int, s *Step) {
	shape := shapes[s.Type]
	for _, f := range stepFields {
		set := f.value(s) != nil
		path := stepPath(i, f.name)
		switch needed := slices.Contains(shape.required, f.name); {
		case set && !shape.has(f.name) && !l.IsText():
			l.Refuse("D7", path, "%s has no field %s: the fields are %s", shape.what, f.name, configdoc.List(shape.names()))
		case needed && !set && l.Given(path):
			l.Refuse("D7", path, "%s requires %s: set it", shape.what, f.name)
		}
	}
}

// durations checks D7 for durations. [Parse] has done so for a text, except for the maximum of an
// attempt.
func (l *linter) durations(i int, s *Step) {
	l.duration(stepPath(i, "durationMs"), s.Duration)
	l.duration(configdoc.Child(stepPath(i, "retry"), "backoffMs"), s.Retry.Backoff)
	l.duration(configdoc.Child(stepPath(i, "retry"), "maxBackoffMs"), s.Retry.MaxBackoff)
	path := stepPath(i, "timeoutMs")
	l.duration(path, s.Timeout)
	if attempted := s.Type == Task || s.Type == HTTP || s.Type == Transition; attempted && s.Timeout > maxAttemptTime {
		l.Refuse("D7", path, "timeoutMs of %s must be at most %d (24 hours), got %d: shorten it, or use a wait", shapes[s.Type].what, maxAttemptTime.Milliseconds(), s.Timeout.Milliseconds())
	}
}

func (l *linter) duration(path string, d time.Duration) {
	switch {
	case d < 0 || d > MaxDuration:
		l.Refuse("D7", path, "%s must be positive and at most a hundred years, got %v", configdoc.Last(path), d)
	case d%time.Millisecond != 0:
		l.Refuse("D7", path, "%s must be an integer number of milliseconds, got %v", configdoc.Last(path), d)
	}
}

func (l *linter) retry(i int, s *Step) {
	r, path := s.Retry, stepPath(i, "retry")
	if at := configdoc.Child(path, "maxAttempts"); (r.MaxAttempts < 0 || r.MaxAttempts > MaxAttempts) && l.Given(at) {
		l.Refuse("D7", at, "maxAttempts must be between 1 and %d, got %d", MaxAttempts, r.MaxAttempts)
	}
	if r.Multiplier != 0 && !(r.Multiplier >= 1 && r.Multiplier <= 100) {
		l.Refuse("D7", configdoc.Child(path, "multiplier"), "multiplier must be between 1 and 100, got %v", r.Multiplier)
	}
	if r.MaxBackoff > 0 && r.Backoff > r.MaxBackoff {
		l.Refuse("D7", configdoc.Child(path, "maxBackoffMs"), "maxBackoffMs is less than backoffMs: increase it, or leave it out")
	}
}

// ofType checks the fields of a single type.
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
		l.checkWait(i, s)
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

// oneOf refuses a word that is not one of words; "" means the default.
func (l *linter) oneOf(path, s string, words []string) {
	if s != "" && !slices.Contains(words, s) {
		l.Refuse("D7", path, "%s must be one of %s, got %s", configdoc.Last(path), configdoc.List(words), configdoc.Show(s))
	}
}

// ReservedHandler reports whether a handler is one of those that Holdfast itself gives to steps. A task must not name it, because its
// input comes from a run.
func ReservedHandler(name string) bool { return strings.HasPrefix(name, "$") }

func (l *linter) task(i int, s *Step) {
	l.oneOf(stepPath(i, "safety"), s.Safety, safeties)
	l.oneOf(stepPath(i, "onUnknown"), s.OnUnknown, onUnknown)
	path := stepPath(i, "handler")
	if s.Handler == "" || !l.name("D7", path, "handler", s.Handler, maxName) {
		return
	}
	if ReservedHandler(s.Handler) {
		l.Refuse("D7", path, "handler %s is reserved: use a step of the type http or transition, or another handler", configdoc.Show(s.Handler))
		return
	}
	if l.known.Handlers == nil {
		return
	}
	h, ok := l.known.Handlers[s.Handler]
	switch {
	case !ok:
		l.Refuse("D5", path, "handler %s does not exist: register it, or correct the name", configdoc.Show(s.Handler))
	case !slices.Contains([]string{"", "step", "http", "worker"}, h.Kind):
		l.Refuse("D5", path, "handler %s is registered as %s but used as a step: use another handler", configdoc.Show(s.Handler), configdoc.Show(h.Kind))
	case s.Safety == "" && h.Safety == "":
		l.Warn("W2", path, "neither the step nor handler %s declares its safety: declare it", configdoc.Show(s.Handler))
	}
}

// headerName matches a valid header name.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (l *linter) http(i int, s *Step) {
	l.oneOf(stepPath(i, "method"), s.Method, methods)
	l.oneOf(stepPath(i, "onUnknown"), s.OnUnknown, onUnknown)
	path := stepPath(i, "safety")
	if l.oneOf(path, s.Safety, safeties); s.Safety == "transactional" || s.Safety == "journaled" { // nothing in a call writes or journals
		l.Refuse("D7", path, "an http step cannot be %s: use idempotent or opaque", s.Safety)
	}
	if s.Safety == "" && (s.Method == "POST" || s.Method == "PATCH") {
		l.Warn("W2", configdoc.Item("/steps", i), "a %s call does not declare its safety: add safety", s.Method)
	}
	text, ok := l.plainText(stepPath(i, "url"), s.URL)
	if number, err := decode(s.URL); ok && !isURL(text) || err == nil && isNumber(number) {
		l.Refuse("D7", stepPath(i, "url"), "url must be absolute, with http or https and a host, got %s", configdoc.Show(cmp.Or(text, string(s.URL))))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		l.header(configdoc.Child(stepPath(i, "headers"), name), name, s.Headers[name])
	}
}

func (l *linter) header(path, name string, v Value) {
	switch strings.ToLower(name) {
	case "idempotency-key":
		l.Refuse("D7", path, "the header %s is the operation of the step, which is the same for each attempt: remove it", configdoc.Show(name))
	case "host":
		l.Refuse("D7", path, "the header %s is the host of the url: remove it", configdoc.Show(name))
	}
	if !headerName.MatchString(name) {
		l.Refuse("D7", path, "%s is not a valid header name: correct it", configdoc.Show(name))
	}
	if text, ok := l.plainText(path, v); ok && strings.ContainsAny(text, "\r\n\x00") {
		l.Refuse("D7", path, "a header must be one line: remove the line break")
	}
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// plainText refuses a value that is neither a string nor a number, which a run converts to a string. ok reports that the
// value is a string without an expression; text is then that string.
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
		l.Refuse("D7", path, "%s must be a string, or an expression in one", configdoc.Last(path))
		return "", false
	}
	text, is := expression(s)
	if !is && text == "" {
		l.Refuse("D7", path, "%s is empty: set it", configdoc.Last(path))
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
		l.Refuse("D7", at, "a wait requires durationMs or until: add one of them")
	case s.Duration != 0 && len(s.Until) > 0:
		l.Refuse("D7", at, "a wait has both durationMs and until: keep one of them")
	}
	text, ok := l.plainText(stepPath(i, "until"), s.Until)
	if _, err := time.Parse(time.RFC3339, text); ok && err != nil {
		l.Refuse("D7", stepPath(i, "until"), "until must be a time such as 2030-01-31T12:00:00Z, milliseconds since 1970, or an expression, got %s", configdoc.Show(text))
	}
}

// checkWait checks W1, and D7 for onTimeout.
func (l *linter) checkWait(i int, s *Step) {
	if s.Timeout == 0 && !l.Refused(stepPath(i, "timeoutMs")) {
		l.Warn("W1", configdoc.Item("/steps", i), "%s may wait forever: add timeoutMs and onTimeout", configdoc.Show(s.Name))
	}
	if s.OnTimeout != "" && s.Timeout == 0 && !l.Refused(stepPath(i, "timeoutMs")) {
		l.Refuse("D7", stepPath(i, "onTimeout"), "onTimeout has no effect without timeoutMs: add timeoutMs, or remove onTimeout")
	}
}

func (l *linter) approval(i int, s *Step) {
	l.checkWait(i, s)
	for j, r := range s.Requesters {
		l.name("D7", configdoc.Item(stepPath(i, "requesters"), j), "a requester", r, maxName)
	}
	if s.OnReject != "" || l.Partial() {
		return
	}
	if !l.d.LooksAt(l.d.After(i), s.Name) {
		l.Warn("W3", configdoc.Item("/steps", i), "a rejection of %s is not handled and fails the run: add onReject, or a following condition that checks its output", configdoc.Show(s.Name))
	}
}

// transition checks D8.
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
		l.Refuse("D8", stepPath(i, "lifecycle"), "lifecycle %s does not exist: register it, or correct the name", configdoc.Show(s.Lifecycle))
	case s.StepKey != "" && !steps[s.StepKey]:
		l.Refuse("D8", stepPath(i, "stepKey"), "lifecycle %s has no step %s: the steps are %s", configdoc.Show(s.Lifecycle), configdoc.Show(s.StepKey), configdoc.List(configdoc.Few(slices.Sorted(maps.Keys(steps)))))
	}
}

// sound refuses a value that is not valid JSON. [Parse] never returns one.
func (l *linter) sound(path string, v Value) bool {
	if err := strictjson.Check(v); err != nil {
		l.Refuse("D7", path, "%s: correct it", configdoc.Reason(err))
		return false
	}
	return true
}
