package archtest

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of an SQL token.
type tokenKind uint8

const (
	word        tokenKind = iota // an identifier or keyword, lower-cased
	quoted                       // "an identifier", as written, without its quotes
	literal                      // 'a string', without its quotes; $$ bodies too
	number                       // 12, 1.5
	param                        // $1, ?1, :name
	placeholder                  // {schema}: filled in when the statement is loaded
	comment                      // -- a line, or a block, without its marks
	punct                        // one operator or mark: ( = :: <=
)

// sqlToken is an SQL token with its position.
type sqlToken struct {
	kind tokenKind
	text string
	pos  int // offset of its first byte
	line int
}

func (t sqlToken) is(kind tokenKind, text string) bool { return t.kind == kind && t.text == text }

// identifier reports whether the token can be a name.
func (t sqlToken) identifier() bool { return t.kind == word || t.kind == quoted }

// tokenize splits SQL of either dialect into tokens, including comments. Only an unclosed token
// is an error; the database reports all others.
func tokenize(src string) ([]sqlToken, error) {
	l := lexer{src: src, line: 1}
	for l.pos < len(src) {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	return l.tokens, nil
}

type lexer struct {
	src    string
	pos    int
	line   int
	tokens []sqlToken
}

func (l *lexer) next() error {
	rest := l.src[l.pos:]
	c, size := utf8.DecodeRuneInString(rest)
	switch {
	case unicode.IsSpace(c):
		l.skip(size)
		return nil
	case strings.HasPrefix(rest, "--"):
		return l.lineComment()
	case strings.HasPrefix(rest, "/*"):
		return l.blockComment()
	case c == '\'':
		return l.closed(literal, 0, '\'', false)
	case (c == 'e' || c == 'E') && strings.HasPrefix(rest[1:], "'"):
		return l.closed(literal, 1, '\'', true)
	case c == '"' || c == '`':
		return l.closed(quoted, 0, byte(c), false)
	case c == '{':
		return l.braces()
	case c == '$' && dollarTag(rest) != "":
		return l.dollarBody(dollarTag(rest))
	case isParam(rest):
		l.take(param, 1+run(rest[1:], isNameRune))
	case unicode.IsDigit(c):
		l.take(number, run(rest, func(c rune) bool { return isNameRune(c) || c == '.' }))
	case isNameRune(c):
		l.take(word, run(rest, isNameRune))
	default:
		l.take(punct, operator(rest))
	}
	return nil
}

// take adds the next n bytes as a token.
func (l *lexer) take(kind tokenKind, n int) {
	text := l.src[l.pos : l.pos+n]
	if kind == word {
		text = strings.ToLower(text)
	}
	l.put(kind, text, n)
}

// put adds the next n bytes as a token with the given text.
func (l *lexer) put(kind tokenKind, text string, n int) {
	l.tokens = append(l.tokens, sqlToken{kind: kind, text: text, pos: l.pos, line: l.line})
	l.skip(n)
}

func (l *lexer) skip(n int) {
	l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
	l.pos += n
}

func (l *lexer) unclosed(what string) error {
	return fmt.Errorf("line %d: %s is never closed", l.line, what)
}

func (l *lexer) lineComment() error {
	rest := l.src[l.pos:]
	n := strings.IndexByte(rest, '\n')
	if n < 0 {
		n = len(rest)
	}
	l.put(comment, strings.TrimSpace(rest[2:n]), n)
	return nil
}

// blockComment reads a block comment, which may be nested as in PostgreSQL.
func (l *lexer) blockComment() error {
	rest, depth := l.src[l.pos:], 0
	for i := 0; i+1 < len(rest); i++ {
		switch rest[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			l.put(comment, strings.TrimSpace(rest[2:i-1]), i+1)
			return nil
		}
	}
	return l.unclosed("a comment")
}

// closed reads up to the closing mark. A doubled mark is part of the text, and so is an escaped
// one if backslashes escape.
func (l *lexer) closed(kind tokenKind, prefix int, mark byte, escapes bool) error {
	rest := l.src[l.pos:]
	for i := prefix + 1; i < len(rest); i++ {
		switch {
		case escapes && rest[i] == '\\':
			i++
		case rest[i] == mark && i+1 < len(rest) && rest[i+1] == mark:
			i++
		case rest[i] == mark:
			l.put(kind, rest[prefix+1:i], i+1)
			return nil
		}
	}
	return l.unclosed("a " + string(mark))
}

func (l *lexer) braces() error {
	rest := l.src[l.pos:]
	n := strings.IndexByte(rest, '}')
	if n < 0 {
		return l.unclosed("a {")
	}
	l.put(placeholder, rest[1:n], n+1)
	return nil
}

// dollarTag returns the opening tag of a dollar-quoted body, $$ or $name$.
func dollarTag(s string) string {
	n := 1 + run(s[1:], isNameRune)
	if n >= len(s) || s[n] != '$' || n > 1 && unicode.IsDigit(rune(s[1])) {
		return ""
	}
	return s[:n+1]
}

func (l *lexer) dollarBody(tag string) error {
	rest := l.src[l.pos:]
	n := strings.Index(rest[len(tag):], tag)
	if n < 0 {
		return l.unclosed("a body in " + tag)
	}
	l.put(literal, rest[len(tag):len(tag)+n], n+2*len(tag))
	return nil
}

func isParam(s string) bool {
	switch s[0] {
	case '?':
		return true
	case '$':
		return len(s) > 1 && unicode.IsDigit(rune(s[1]))
	case ':', '@':
		return len(s) > 1 && unicode.IsLetter(rune(s[1]))
	}
	return false
}

func isNameRune(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// run returns the number of bytes at the beginning of s that satisfy f.
func run(s string, f func(rune) bool) int {
	n := strings.IndexFunc(s, func(c rune) bool { return !f(c) })
	if n < 0 {
		return len(s)
	}
	return n
}

// operators lists operators of several characters. Others are split into single characters,
// which matters only for those that contain "=".
var operators = []string{"->>", "#>>", "::", "<=", ">=", "<>", "!=", "==", "||", "->", "#>", "@>", "<@", "=>", "&&", "!~", "~*"}

func operator(s string) int {
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			return len(op)
		}
	}
	_, size := utf8.DecodeRuneInString(s)
	return size
}
