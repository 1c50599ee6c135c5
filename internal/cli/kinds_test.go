package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/scope"
)

func TestKindsOfScopes(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  []scope.Kind
	}{
		{nil, nil},
		{[]string{"", " ; "}, nil},
		{[]string{"cart:budget=5s,retries=10,ttl=48h"}, []scope.Kind{{Name: "cart", Budget: 5 * time.Second, MaxAttempts: 11, TTL: 48 * time.Hour}}},
		{[]string{" my cart : ttl=1m30s , budget=1ms "}, []scope.Kind{{Name: "my cart", Budget: time.Millisecond, TTL: 90 * time.Second}}},
		{[]string{"a:ttl=never", "b:budget=none;c:retries=none"}, []scope.Kind{{Name: "a", TTL: -1}, {Name: "b", Budget: -1}, {Name: "c", MaxAttempts: -1}}},
		{[]string{"a:ttl=-5s,budget=-1h,retries=-7"}, []scope.Kind{{Name: "a", TTL: -1, Budget: -1, MaxAttempts: -1}}},
	} {
		got, err := parseKinds(c.texts)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q is %+v, %v, want %+v", c.texts, got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"cart":                   `"cart" says nothing of its kind`,
		"cart:":                  `"cart:" says nothing of its kind`,
		":ttl=1h":                `":ttl=1h" names no kind`,
		"a/b:ttl=1h":             `"a/b:ttl=1h" names no kind`,
		"cart:ttl":               `"ttl" of the kind "cart" is no setting`,
		"cart:ttl=1h,":           `"" of the kind "cart" is no setting`,
		"cart:life=1h":           `"life" of the kind "cart" is no setting: there are budget, retries and ttl`,
		"cart:ttl=1h,ttl=2h":     `the ttl of the kind "cart" is there twice`,
		"cart:ttl=1h;cart:ttl=2": `the ttl of the kind "cart" is "2": it is a duration such as`,
		"a:ttl=1h;a:budget=1s":   `the kind "a" is there twice`,
		"cart:ttl=0s":            `the ttl of the kind "cart" is "0s"`,
		"cart:ttl=soon":          `the ttl of the kind "cart" is "soon"`,
		"cart:ttl=":              `the ttl of the kind "cart" is ""`,
		"cart:ttl=900000h":       `a hundred years are the most`,
		"cart:budget=0":          `the budget of the kind "cart" is "0"`,
		"cart:retries=0":         `the retries of the kind "cart" are "0"`,
		"cart:retries=1.5":       `the retries of the kind "cart" are "1.5"`,
		"cart:retries=many":      `it is a whole number such as 10, or none for no limit but the budget`,
	} {
		_, err := parseKinds([]string{text})
		if fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is %v, want %s", text, err, want)
		}
	}
}
