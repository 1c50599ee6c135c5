package docsite

import (
	"cmp"
	"html"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/internal/markdown"
)

// Result is a section that a search has found.
type Result struct {
	Page    *Page
	Section *markdown.Section
	URL     string
	Excerpt string // HTML, with the words marked

	found, score int
}

const (
	mostResults = 30
	mostQuery   = 200 // bytes
	mostTerms   = 5
	excerpt     = 240 // characters
)

// word matches a word of a query: also a code, a flag, a path or the name of a metric.
var word = regexp.MustCompile(`[\p{L}\p{N}_$/.:{}-]*[\p{L}\p{N}]`)

// common are words that most sections have.
var common = map[string]bool{"a": true, "an": true, "and": true, "are": true, "can": true, "do": true, "does": true, "for": true, "how": true, "i": true, "in": true, "is": true, "of": true, "on": true, "or": true, "the": true, "to": true, "what": true, "when": true, "with": true}

// termsOf returns the different words of a query.
func termsOf(query string) []string {
	all := word.FindAllString(strings.ToLower(query), -1)
	terms := slices.DeleteFunc(slices.Clone(all), func(t string) bool { return common[t] })
	if len(terms) == 0 {
		terms = all
	}
	slices.Sort(terms)
	terms = slices.Compact(terms)
	return terms[:min(len(terms), mostTerms)]
}

// Search returns the sections that have the words of a query, the best first: those with most of the words, and of these
// the ones that have them in the title of the page, then in their own title, then at the beginning of a line, then elsewhere.
func (s *Site) Search(query string) []Result {
	query = strings.ToValidUTF8(query[:min(len(query), mostQuery)], "")
	terms := termsOf(query)
	if len(terms) == 0 {
		return nil
	}
	var stems, patterns []string
	for _, t := range terms {
		if len(t) > 3 {
			t = strings.TrimSuffix(t, "s") // leases
		}
		stems, patterns = append(stems, t), append(patterns, regexp.QuoteMeta(t))
	}
	marks := regexp.MustCompile(`(?i)` + strings.Join(patterns, "|"))
	phrase := strings.Join(strings.Fields(strings.ToLower(query)), " ")
	var results []Result
	for _, p := range s.Pages {
		for i := range p.Sections {
			r := Result{Page: p, Section: &p.Sections[i], URL: p.URL}
			if i > 0 {
				r.URL += "#" + r.Section.Anchor
			}
			if r.match(&p.lower[i], stems, phrase); r.found > 0 {
				results = append(results, r)
			}
		}
	}
	slices.SortFunc(results, func(a, b Result) int {
		return cmp.Or(b.found-a.found, b.score-a.score, strings.Compare(a.URL, b.URL))
	})
	if i := slices.IndexFunc(results, func(r Result) bool { return r.found < results[0].found }); i > 0 {
		results = results[:i] // those with fewer of the words
	}
	results = results[:min(len(results), mostResults)]
	for i := range results {
		results[i].Excerpt = excerptOf(results[i].Section.Text, marks)
	}
	return results
}

// match counts the words that the section has, and adds up what they are worth.
func (r *Result) match(in *lower, stems []string, phrase string) {
	page, own, text := r.Page.lower[0].title, in.title, in.text
	for _, t := range stems {
		short := strings.TrimSuffix(t, "e") // upgrade: Upgrading
		score := rank(text, t)*(4+min(strings.Count(text, t), 8))/4 + 12*rank(own, short)
		if strings.HasPrefix(text, t) || strings.Contains(text, "\n"+t) {
			score += 12
		}
		switch {
		case r.Section.Level == 1:
			score += 18 * rank(page, short)
		case score > 0:
			score += 6 * rank(page, short)
		}
		if score > 0 {
			r.found++
			r.score += score
		}
	}
	if len(stems) > 1 && (strings.Contains(own, phrase) || strings.Contains(text, phrase)) {
		r.score += 40
	}
}

// rank is 2 if the text has the term as a word or the beginning of one, 1 if it has it within one, and else 0.
func rank(text, term string) int {
	best := 0
	for at := 0; best < 2; {
		i := strings.Index(text[at:], term)
		if i < 0 {
			break
		}
		best = 1
		if at+i == 0 || !strings.Contains("abcdefghijklmnopqrstuvwxyz0123456789_", text[at+i-1:at+i]) {
			best = 2
		}
		at += i + len(term)
	}
	return best
}

// excerptOf returns the part of the line with most different words.
func excerptOf(text string, marks *regexp.Regexp) string {
	best, most := "", -1
	for line := range strings.Lines(text) {
		seen := make(map[string]bool)
		for _, m := range marks.FindAllString(line, -1) {
			seen[strings.ToLower(m)] = true
		}
		if len(seen) > most {
			best, most = strings.TrimSpace(line), len(seen)
		}
	}
	before, after := "", ""
	if m := marks.FindStringIndex(best); m != nil && m[0] > excerpt/2 {
		cut := strings.LastIndexByte(best[:m[0]-excerpt/4], ' ') + 1
		best, before = best[cut:], "… "
	}
	if utf8.RuneCountInString(best) > excerpt {
		best, after = string([]rune(best)[:excerpt]), " …"
		if cut := strings.LastIndexByte(best, ' '); cut > 0 {
			best = best[:cut]
		}
	}
	var out strings.Builder
	at := 0
	for _, m := range marks.FindAllStringIndex(best, -1) {
		out.WriteString(html.EscapeString(best[at:m[0]]) + "<mark>" + html.EscapeString(best[m[0]:m[1]]) + "</mark>")
		at = m[1]
	}
	return before + out.String() + html.EscapeString(best[at:]) + after
}
