package seal_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/seal"
)

func key(c byte) []byte { return bytes.Repeat([]byte{c}, seal.KeySize) }

func box(t *testing.T, keys ...[]byte) *seal.Box {
	t.Helper()
	b, err := seal.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestASecretIsOpenedWhereItBelongs(t *testing.T) {
	b := box(t, key(1))
	sealed, again := b.Seal("s3cret", "a", "bc"), b.Seal("s3cret", "a", "bc")
	if sealed == again || strings.Contains(sealed, "s3cret") {
		t.Errorf("sealed twice as %s and %s", sealed, again)
	}
	if got, err := b.Open(sealed, "a", "bc"); err != nil || got != "s3cret" {
		t.Errorf("Open returned %q, error %v", got, err)
	}
	for _, elsewhere := range [][]string{nil, {"a"}, {"ab", "c"}, {"a", "bc", ""}, {"a", "bd"}} {
		if got, err := b.Open(sealed, elsewhere...); fault.CodeOf(err) != fault.DatabaseDamaged || got != "" {
			t.Errorf("Open at %q returned %q, error %v", elsewhere, got, err)
		}
	}
}

// Verifies that a change of any single character is detected.
func TestAChangedSecretIsAnError(t *testing.T) {
	b := box(t, key(1))
	sealed := b.Seal("s3cret")
	for i := range sealed {
		other := byte('A')
		if sealed[i] == other {
			other = 'B'
		}
		changed := sealed[:i] + string(other) + sealed[i+1:]
		if got, err := b.Open(changed); err == nil {
			t.Errorf("Open of the changed text %s returned %q", changed, got)
		}
	}
	for _, text := range []string{"", ".", "x", sealed[:len(sealed)-1], sealed[:17]} {
		if got, err := b.Open(text); err == nil {
			t.Errorf("Open of %q returned %q", text, got)
		}
	}
}

func TestKeysAreRotated(t *testing.T) {
	old, both, next := box(t, key(1)), box(t, key(2), key(1)), box(t, key(2))
	before, after := old.Seal("s"), both.Seal("s")
	for what, err := range map[string]error{
		"old by both":   opened(both, before),
		"new by both":   opened(both, after),
		"new by new":    opened(next, after),
		"its own":       opened(old, before),
		"a second time": opened(both, before),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := opened(next, before); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("Open without the key returned %v, want UNAVAILABLE", err)
	}
}

func opened(b *seal.Box, sealed string) error {
	_, err := b.Open(sealed)
	return err
}

func TestKeysAreChecked(t *testing.T) {
	for _, keys := range [][][]byte{nil, {nil}, {key(1), []byte("short")}, {make([]byte, 33)}} {
		if _, err := seal.New(keys...); fault.CodeOf(err) != fault.Validation {
			t.Errorf("New with %d keys returned %v, want a validation error", len(keys), err)
		}
	}
}
