package strictjson

import (
	"bytes"
	"strings"
	"unicode"
)

// fewKeys is the number of names above which a set uses a map.
const fewKeys = 8

// keySet is the set of names of one object. Names that differ only by case are duplicates,
// because encoding/json accepts ROLE for role, and their order would decide which one wins.
// With exact, they are different names.
//
// Most objects are small, and comparing eight names is cheaper than a map lookup. It also
// keeps the set on the stack.
type keySet struct {
	exact bool
	few   [fewKeys][]byte
	n     int
	many  map[string][]byte
}

// add adds a name to the set, unless it repeats an earlier one.
func (k *keySet) add(key []byte) (earlier []byte, clash bool) {
	if k.many != nil {
		return k.addMany(key)
	}
	for _, earlier := range k.few[:k.n] {
		if k.same(earlier, key) {
			return earlier, true
		}
	}
	if k.n == fewKeys {
		k.grow()
		return k.addMany(key)
	}
	k.few[k.n] = key
	k.n++
	return nil, false
}

// grow moves the names into a map.
func (k *keySet) grow() {
	k.many = make(map[string][]byte, 4*fewKeys)
	for _, key := range k.few {
		k.many[k.fold(key)] = key
	}
}

func (k *keySet) addMany(key []byte) (earlier []byte, clash bool) {
	folded := k.fold(key)
	if earlier, clash := k.many[folded]; clash {
		return earlier, true
	}
	k.many[folded] = key
	return nil, false
}

func (k *keySet) same(a, b []byte) bool {
	if k.exact {
		return bytes.Equal(a, b)
	}
	return bytes.EqualFold(a, b)
}

func (k *keySet) fold(key []byte) string {
	if k.exact {
		return string(key)
	}
	return fold(key)
}

// fold returns the same text for two names if and only if [bytes.EqualFold] reports true.
func fold(key []byte) string { return strings.Map(foldRune, string(key)) }

// foldRune returns the smallest of the characters that differ from r only by case.
// [unicode.SimpleFold] cycles through them in ascending order.
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
