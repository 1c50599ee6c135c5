package workflow

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/configdoc"
	"github.com/holdfast-go/holdfast/internal/secretref"
)

// Computed reports whether a value is an expression.
func Computed(v Value) bool {
	parsed, _ := decode(v)
	s, ok := parsed.(string)
	_, is := expression(s)
	return ok && is
}

// FixedOrigin returns the scheme and the host of a URL, and whether they are the same in every run: it is a literal, or an expression
// that appends to a literal which contains the slash after the host.
func FixedOrigin(v Value) (origin string, ok bool) {
	parsed, _ := decode(v)
	s, ok := parsed.(string)
	text, is := expression(s)
	if !ok || !is {
		return secretref.Origin(s)
	}
	e, err := Compile(text)
	if err != nil {
		return "", false
	}
	origin, ok = secretref.Origin(e.start)
	return origin, ok && strings.HasPrefix(e.start[min(len(origin), len(e.start)):], "/")
}

// Secrets returns the names of the secrets that headers refer to, sorted and without duplicates.
func (d *Definition) Secrets() (names []string) {
	for i := range d.Steps {
		for _, v := range d.Steps[i].Headers {
			parsed, _ := decode(v)
			if s, ok := parsed.(string); ok {
				of, _ := secretref.Names(s) // lint reports an error
				names = append(names, of...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// secrets checks D9, and W5 for texts that may be meant as references.
func (l *linter) secrets(i int, s *Step) {
	headers := stepPath(i, "headers")
	for _, v := range s.values(i) {
		parsed, err := decode(v.value)
		if err != nil {
			continue
		}
		inHeader := s.Type == HTTP && configdoc.Parent(v.path) == headers
		eachText(parsed, v.path, func(path, text string) {
			switch {
			case inHeader:
				l.secretHeader(i, s, path, text)
			case secretref.In(text):
				l.Refuse("D9", path, "a reference to a secret is replaced only in a header of an http step, so this text would be stored and sent as it is: move it to a header")
			default:
				if _, ok := secretref.Whole(text); ok {
					l.Warn("W5", path, "%s is stored and sent as it is: to send a secret, write ${%s} in a header of an http step", configdoc.Show(text), text)
				}
			}
		})
	}
	if secretref.In(s.If) {
		l.Refuse("D9", stepPath(i, "if"), "a condition must not contain a reference to a secret, because it is not replaced: remove it")
	}
}

// secretHeader checks one header of an http step.
func (l *linter) secretHeader(i int, s *Step, path, text string) {
	names, err := secretref.Names(text)
	_, computed := expression(text)
	_, fixed := FixedOrigin(s.URL)
	header := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case err != nil:
		l.Refuse("D9", path, "the reference to a secret is malformed: write ${secret:NAME}")
	case len(names) > 0 && computed:
		l.Refuse("D9", path, "an expression must not contain a reference to a secret: write the whole header as text, such as Bearer ${secret:%s}", names[0])
	case len(names) > 0 && secretref.Reserved(header):
		l.Refuse("D9", path, "this header must not have a secret, because Holdfast or the connection sets it: use another header")
	case len(names) > 0 && !fixed:
		l.Refuse("D9", stepPath(i, "url"), "a header of this step has a secret, so the input of a run must not choose who gets it: begin the url with a literal http:// or https:// and a host without a user, such as =\"https://api.example.com/\" + input.id, and do not use '..' in its path")
	case secretref.IsWhole(text):
		l.Refuse("D9", path, "this text would be sent as it is: write the reference as ${%s}", text)
	case len(names) == 0 && !computed && secretref.Credential(header):
		l.Warn("W5", path, "every API key can read this header: store its value as a secret, and write ${secret:NAME}")
	}
	if l.known.Secrets == nil {
		return
	}
	for _, name := range names {
		if !l.known.Secrets[name] {
			l.Refuse("D9", path, "secret %s does not exist: create it with PUT secrets/%s, or correct the name", configdoc.Show(name), name)
		}
	}
}
