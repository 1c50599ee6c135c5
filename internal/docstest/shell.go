package docstest

import (
	"errors"
	"strings"
)

// Commands returns the commands of a shell block, each as its words. Variables that the block assigns are replaced by their
// values; unknown variables, and the output of other commands, by "x". Assignments and redirections are left out, and so are
// the bodies of shell functions.
func Commands(text string, variables map[string]string) ([][]string, error) {
	l := &lexer{rest: strings.ReplaceAll(text, "\\\n", " "), variables: variables}
	for l.rest != "" {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	l.endCommand()
	return l.commands, nil
}

// Commands returns the commands of a shell block, or those after the prompts of a console session, as [Commands] does.
func (b Block) Commands(variables map[string]string) ([][]string, error) {
	if b.Lang != "console" {
		return Commands(b.Text, variables)
	}
	var typed strings.Builder
	for line := range strings.Lines(b.Text) {
		if line, ok := strings.CutPrefix(line, "$ "); ok {
			typed.WriteString(line)
		}
	}
	return Commands(typed.String(), variables)
}

type lexer struct {
	rest      string
	variables map[string]string

	word     strings.Builder
	inWord   bool
	skip     bool // the next word is the file of a redirection
	words    []string
	commands [][]string
}

// next reads one element of the text.
func (l *lexer) next() error {
	c := l.rest[0]
	switch {
	case c == ' ' || c == '\t':
		l.endWord()
	case c == '\n' || c == ';' || c == '|' || c == '&':
		l.endCommand()
	case c == '#' && !l.inWord:
		_, l.rest, _ = strings.Cut(l.rest, "\n")
		l.endCommand()
		return nil
	case c == '>' || c == '<':
		if strings.HasPrefix(l.rest, "<(") {
			return errors.New("process substitution is not supported")
		}
		l.endWord()
		l.skip = true
	case c == '\'':
		body, rest, closed := strings.Cut(l.rest[1:], "'")
		if !closed {
			return errors.New("a single quote is not closed")
		}
		l.add(body)
		l.rest = rest
		return nil
	case c == '"':
		return l.doubleQuoted()
	case c == '$':
		l.variable()
		return nil
	case c == '\\' && len(l.rest) > 1:
		l.add(l.rest[1:2])
		l.rest = l.rest[1:]
	case strings.HasPrefix(l.rest, "() {"):
		_, rest, closed := strings.Cut(l.rest, "; }\n")
		if !closed {
			return errors.New("the body of a function is not closed")
		}
		l.rest, l.inWord = rest, false
		l.word.Reset()
		return nil
	default:
		l.add(l.rest[:1])
	}
	l.rest = l.rest[1:]
	return nil
}

func (l *lexer) add(text string) {
	l.word.WriteString(text)
	l.inWord = true
}

// doubleQuoted reads a quoted text, in which variables are replaced.
func (l *lexer) doubleQuoted() error {
	l.rest, l.inWord = l.rest[1:], true
	for l.rest != "" {
		switch {
		case l.rest[0] == '"':
			l.rest = l.rest[1:]
			return nil
		case l.rest[0] == '$':
			l.variable()
		case l.rest[0] == '\\' && len(l.rest) > 1:
			l.add(l.rest[1:2])
			l.rest = l.rest[2:]
		default:
			l.add(l.rest[:1])
			l.rest = l.rest[1:]
		}
	}
	return errors.New("a double quote is not closed")
}

// variable reads $NAME or $(command).
func (l *lexer) variable() {
	rest := l.rest[1:]
	if strings.HasPrefix(rest, "(") {
		_, l.rest, _ = strings.Cut(rest, ")")
		l.add("x")
		return
	}
	name := rest[:len(rest)-len(strings.TrimLeft(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"))]
	l.rest = rest[len(name):]
	switch value, ok := l.variables[name]; {
	case ok:
		l.add(value)
	case name == "":
		l.add("$")
	default:
		l.add("x")
	}
}

func (l *lexer) endWord() {
	if l.inWord && !l.skip {
		l.words = append(l.words, l.word.String())
	}
	if l.inWord {
		l.skip = false
	}
	l.inWord = false
	l.word.Reset()
}

// endCommand ends a command, and remembers the variables that it assigns.
func (l *lexer) endCommand() {
	l.endWord()
	l.skip = false
	words := l.words
	for len(words) > 0 {
		name, value, ok := strings.Cut(words[0], "=")
		if !ok || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || name == "" {
			break
		}
		l.variables[name] = value
		words = words[1:]
	}
	if len(words) > 0 {
		l.commands = append(l.commands, words)
	}
	l.words = nil
}
