package docstest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// text is a piece of English: a paragraph of a page, a help text, an error or a log message.
type text struct {
	at    string
	words string
}

// wordList has all words that the texts use. A word that is not in it is a mistake, or new: -update adds it, and the diff
// of the change shows it.
const wordList = "words.txt"

// TestWordsAreKnown verifies that each word of the pages, help texts, errors and log messages is in the list.
func TestWordsAreKnown(t *testing.T) {
	testlevel.OneGoroutine(t)
	known := make(map[string]bool)
	list, err := os.ReadFile(wordList)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for _, w := range strings.Fields(string(list)) {
		known[w] = true
	}
	used := make(map[string]bool)
	all, err := texts()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		for _, w := range wordsOf(text.words) {
			if used[w] = true; !known[w] && !*update {
				t.Errorf("%s: %q is not in internal/docstest/%s: correct it, or add it with go test ./internal/docstest -update", text.at, w, wordList)
			}
		}
	}
	want := strings.Join(slices.Sorted(maps.Keys(used)), "\n") + "\n"
	switch {
	case *update:
		if err := os.WriteFile(wordList, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case !t.Failed() && want != string(list):
		t.Errorf("internal/docstest/%s has words that no text uses, or is not sorted: run go test ./internal/docstest -update", wordList)
	}
}

// TestTextsAreWellWritten verifies the rules of style.
func TestTextsAreWellWritten(t *testing.T) {
	testlevel.OneGoroutine(t)
	all, err := texts()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		for _, m := range mistakes(text.words) {
			t.Errorf("%s: %s", text.at, m)
		}
	}
	pages, err := allPages()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		for i, line := range strings.Split(p.Text, "\n") {
			if strings.TrimRight(line, " \t") != line {
				t.Errorf("%s:%d: the line ends with a space", p.Name, i+1)
			}
		}
	}
}

// Each text has one mistake.
func TestMistakesAreFound(t *testing.T) {
	testlevel.OneGoroutine(t)
	for _, s := range []string{
		"the the lease", "It says that\nthat it ends", "a error", "an unique key", "an lease", "a idempotency key", "a HTTP request", "an URL", "the behaviour", "it is organised", "a licence", "whilst it runs",
		"e.g. a key", "the caller is told so", "Please wait", "we utilize it", "simply run it", "it is retried , then it ends", "see here ; then", strings.Repeat("many words ", 25) + "end.",
	} {
		if got := mistakes(s); len(got) != 1 {
			t.Errorf("%q: got mistakes %q, want 1", s, got)
		}
	}
	for _, s := range []string{
		"an hour, a user, an SQL statement, a URL, an HTTP request, a one-time key, an S3 bucket, a UUID, an NTP server, a European law", "It had had one. One a day, a B", strings.Repeat("many words ", 15) + "end. " + strings.Repeat("Many words ", 15) + "end.",
		"one: " + strings.Repeat("some words, ", 15) + "end.",
	} {
		if got := mistakes(s); len(got) != 0 {
			t.Errorf("%q: got mistakes %q, want none", s, got)
		}
	}
}

// hole replaces code: it is no word, and those around it are not next to each other.
const hole = " \x01 "

// mostWords is the length of a sentence. A colon or a semicolon ends one.
const mostWords = 45

var (
	wordRun   = regexp.MustCompile(`[\p{L}\p{N}][\p{L}\p{N}_'’-]*`)
	sentences = regexp.MustCompile(`[.!?:;](?:\s|$)`)
	article   = regexp.MustCompile(`(?:^|[^\p{L}\p{N}_.$'’-])([Aa]n?)\s+([\p{L}\p{N}][\p{L}\p{N}-]*)`)
	lower     = regexp.MustCompile(`^[a-z]+$`)
	spaced    = regexp.MustCompile(`\w [,;.!?](?:\s|$)`)

	// vowels match words that follow "an", of those that the first letter does not decide, and consonants those that follow "a".
	vowels     = regexp.MustCompile(`^(?:hour|honest|heir|honor|[FHLMNRSX](?:[A-Z0-9-]|$)|8|11$|18$|mTLS|http)`)
	consonants = regexp.MustCompile(`^(?:FAQ|LOCK|NUL|SELECT|SHA|SIG|SQLite|[Uu]ni[a-z]|[Uu]se|[Uu]su|[Uu]ti|uuid|url|[Ee]u|[Oo]ne\b|[Oo]nce|UID|UR[IL]|UTC|UTF|UUID|LISTEN|NOTIFY|ROW|REPLICA|MERGE|LEASE|NOT)`)

	// American spelling, and "cancelled", because a status has that name; no short forms and fillers
	unwanted = regexp.MustCompile(`^(?:` + strings.Join([]string{
		`behaviour.*`, `.*colour.*`, `favour.*`, `honour.*`, `neighbour.*`, `labell(?:ed|ing)`, `modell(?:ed|ing)`, `licence.*`, `defence`, `centres?`, `catalogues?`, `analys(?:e|ed|es|ing)`, `grey`,
		`(?:organ|recogn|optim|summar|serial|initial|normal|minim|maxim|author|custom|util|synchron|priorit|critic|apolog|standard|final|real|emphas|categor|special|general|material|container|random|sanit|token|virtual|visual)is(?:e|ed|es|er|ers|ing|ation|ations)`,
		`whilst`, `amongst`, `learnt`, `programmes?`, `fulfil`, `artefacts?`, `judgement`, `acknowledgement.*`, `cancel(?:ed|ing)`, `backwards`, `towards`,
		`via`, `vs`, `please`, `simply`, `obviously`, `utiliz.*`, `leverag.*`, `seamless.*`, `robust.*`, `blazing.*`, `powerful`,
		`whoever`, `keeper`,
	}, "|") + `)$`)
	phrases = regexp.MustCompile(`e\.g\.|i\.e\.|etc\.|and/or|of course|in order to|should be noted|note that|as well as|prior to|the door|trying on|(?:is|are|was) told|at the most|of one's own|freed what|goes round|get round|that there is not|it is none|as it likes`)
)

// unwantedWords has the judgments of words.
var unwantedWords = make(map[string]bool)

func isUnwanted(word string) bool {
	found, known := unwantedWords[word]
	if !known {
		found = unwanted.MatchString(word)
		unwantedWords[word] = found
	}
	return found
}

// mistakes returns what is wrong with a text.
func mistakes(text string) (all []string) {
	for _, s := range sentences.Split(text, -1) {
		words := wordRun.FindAllString(s, -1)
		if len(words) > mostWords {
			all = append(all, "a sentence has "+strconv.Itoa(len(words))+" words, at most "+strconv.Itoa(mostWords)+" are allowed: "+strings.Join(strings.Fields(s), " "))
		}
	}
	at := wordRun.FindAllStringIndex(text, -1)
	for i := 1; i < len(at); i++ {
		a, b := text[at[i-1][0]:at[i-1][1]], text[at[i][0]:at[i][1]]
		if strings.EqualFold(a, b) && strings.TrimSpace(text[at[i-1][1]:at[i][0]]) == "" && a != "had" && lower.MatchString(b) {
			all = append(all, "the word "+b+" is doubled")
		}
	}
	for _, m := range article.FindAllStringSubmatch(text, -1) {
		an := !consonants.MatchString(m[2]) && (vowels.MatchString(m[2]) || strings.ContainsAny(m[2][:1], "aeiouAEIOU"))
		if len(m[2]) > 1 && an != strings.EqualFold(m[1], "an") {
			all = append(all, strconv.Quote(m[1]+" "+m[2])+" has the wrong article")
		}
	}
	for _, m := range slices.Concat(slices.DeleteFunc(wordsOf(text), func(w string) bool { return !isUnwanted(w) }), phrases.FindAllString(text, -1)) {
		all = append(all, strconv.Quote(m)+" is not how we write")
	}
	for _, m := range spaced.FindAllString(text, -1) {
		all = append(all, strconv.Quote(m)+" has a space before the mark")
	}
	return all
}

var notWord = regexp.MustCompile(`[\p{N}_]|^[\p{Lu}\p{N}]+s?$|\p{Ll}\p{Lu}`)

// wordsOf returns the words of a text in lower case, without names in code, numbers and abbreviations.
func wordsOf(text string) (all []string) {
	for _, run := range wordRun.FindAllString(text, -1) {
		for _, w := range strings.Split(run, "-") {
			w = strings.TrimSuffix(strings.TrimRight(strings.ReplaceAll(w, "’", "'"), "'"), "'s")
			if w != "" && !notWord.MatchString(w) {
				all = append(all, strings.ToLower(w))
			}
		}
	}
	return all
}

// allPages returns the pages for users, the changelog and the decisions.
func allPages() ([]Page, error) {
	fsys := os.DirFS(root)
	all, err := Pages(fsys)
	if err != nil {
		return nil, err
	}
	more, err := fs.Glob(fsys, "docs/decisions/*.md")
	if err != nil {
		return nil, err
	}
	for _, name := range append(more, "CHANGELOG.md", "internal/cli/help.md") {
		p, err := Read(fsys, name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

var (
	comments = regexp.MustCompile(`(?s)<!--.*?-->`)
	targets  = regexp.MustCompile(`\]\([^()\s]+(?:\([^()]*\))?\)|<?https?://[^\s)>]+>?`)
	blank    = regexp.MustCompile(`(?m)^(?:$|#+ .*|\s*(?:-|\d+\.) |\|.*|    .*)`)
	cells    = regexp.MustCompile(`\|`)
	codeSpan = regexp.MustCompile("`+")
)

// texts returns all texts. They are read once.
var texts = sync.OnceValues(func() (all []text, err error) {
	pages, err := allPages()
	if err != nil {
		return nil, err
	}
	for _, p := range pages {
		outside := targets.ReplaceAllString(comments.ReplaceAllStringFunc(p.Outside(), newlines), "]")
		begin, lines := 1, strings.Split(outside, "\n") // begin is the first line of a paragraph, from 1
		for i := 0; i <= len(lines); i++ {
			if i < len(lines) && !blank.MatchString(lines[i]) {
				continue
			}
			if i > begin-1 {
				all = append(all, text{p.Name + ":" + strconv.Itoa(begin), plainText(strings.Join(lines[begin-1:i], "\n"))})
			}
			begin = i + 1
			if i < len(lines) && (strings.HasPrefix(lines[i], "    ") && p.Name == "internal/cli/help.md") {
				begin++ // a command
			} else if i < len(lines) && strings.HasPrefix(lines[i], "|") {
				for _, c := range cells.Split(lines[i], -1) {
					all = append(all, text{p.Name + ":" + strconv.Itoa(i+1), plainText(c)})
				}
				begin++
			}
		}
	}
	program, err := programTexts()
	return append(all, program...), err
})

func newlines(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }

// plainText removes markup.
func plainText(s string) string {
	return strings.NewReplacer("*", "", "[", "", "]", "", "#", "").Replace(codeSpan.ReplaceAllString(s, hole))
}

var (
	verb    = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]|\{[^}]*\}`)
	command = regexp.MustCompile(`\B--?[a-zA-Z][\w-]*|\S*[/=_]\S*|"[^"]*"|'[^' ]+'`)
	helpTag = regexp.MustCompile(`help:"((?:[^"\\]|\\.)*)"`)
)

// programTexts returns the help texts, errors and log messages of the program.
func programTexts() (all []text, err error) {
	add := func(at token.Position, s string) {
		all = append(all, text{at.Filename + ":" + strconv.Itoa(at.Line), command.ReplaceAllString(verb.ReplaceAllString(s, hole), hole)})
	}
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bench" || name == "examples" || name == "sdk" || d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != "." || name == "bin"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path.Join(root, name))
		if err != nil || !bytes.Contains(src, []byte("New(")) && !bytes.Contains(src, []byte("Errorf(")) && !bytes.Contains(src, []byte("slog")) && !bytes.Contains(src, []byte(`help:"`)) {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				if n.Tag != nil {
					for _, m := range helpTag.FindAllStringSubmatch(n.Tag.Value, -1) {
						add(fset.Position(n.Pos()), m[1])
					}
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && saying[f.Sel.Name] {
					for _, arg := range n.Args[:min(len(n.Args), 3)] {
						if l, ok := arg.(*ast.BasicLit); ok && l.Kind == token.STRING {
							if s, err := strconv.Unquote(l.Value); err == nil && strings.Contains(s, " ") {
								add(fset.Position(l.Pos()), s)
							}
						}
					}
				}
			}
			return true
		})
		return nil
	})
	return all, err
}

// saying are the functions that make errors and log messages.
var saying = map[string]bool{"New": true, "Errorf": true, "Debug": true, "Info": true, "Warn": true, "Error": true, "DebugContext": true, "InfoContext": true, "WarnContext": true, "ErrorContext": true, "LogAttrs": true, "Log": true}
