package strictjson

import (
	"bytes"
	"strings"
	"unicode"
)

// fewKeys is how many names an object may have before it needs a map.
const fewKeys = 8

// keySet holds the names of one object. No two of them are equal, nor equal but
// for case: encoding/json takes ROLE for role, and which of the two wins would
// depend on their order. With exact, names that differ by case are two.
//
// Most objects are small, and looking through eight names is cheaper than one
// look into a map. It also keeps the set on the stack.
type keySet struct {
	exact bool
	few   [fewKeys][]byte
	n     int
	many  map[string][]byte
}

// add puts a name into the set, unless one is there that it repeats.
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

// fold returns the same text for two names exactly if [bytes.EqualFold] holds
// of them.
func fold(key []byte) string { return strings.Map(foldRune, string(key)) }

// foldRune returns the smallest of the characters that differ only by case.
// [unicode.SimpleFold] goes round them in ascending order.
func foldRune(r rune) rune {
	for {
		next := unicode.SimpleFold(r)
		if next <= r {
			return next
		}
		r = next
	}
}
