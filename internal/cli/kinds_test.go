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
			t.Errorf("%q: got %+v, error %v, want %+v", c.texts, got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"cart":                   `"cart" has no options`,
		"cart:":                  `"cart:" has no options`,
		":ttl=1h":                `":ttl=1h" has no valid kind name`,
		"a/b:ttl=1h":             `"a/b:ttl=1h" has no valid kind name`,
		"cart:ttl":               `"ttl" is not an option for kind "cart"`,
		"cart:ttl=1h,":           `"" is not an option for kind "cart"`,
		"cart:life=1h":           `unknown option "life" for kind "cart": the options are budget, retries and ttl`,
		"cart:ttl=1h,ttl=2h":     `duplicate option ttl for kind "cart"`,
		"cart:ttl=1h;cart:ttl=2": `ttl for kind "cart" must be a duration such as 5s or 48h, or none for no limit, got "2"`,
		"a:ttl=1h;a:budget=1s":   `duplicate kind "a"`,
		"cart:ttl=0s":            `ttl for kind "cart" must be a duration such as 5s or 48h, or none for no limit, got "0s"`,
		"cart:ttl=soon":          `for no limit, got "soon"`,
		"cart:ttl=":              `for no limit, got ""`,
		"cart:ttl=900000h":       `must be at most 100 years`,
		"cart:budget=0":          `budget for kind "cart" must be a duration`,
		"cart:retries=0":         `retries for kind "cart" must be an integer`,
		"cart:retries=1.5":       `no limit other than the budget, got "1.5"`,
		"cart:retries=many":      `must be an integer such as 10, or none for no limit other than the budget`,
	} {
		_, err := parseKinds([]string{text})
		if fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got error %v, want %s", text, err, want)
		}
	}
}
