package secrets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Opened has what one outgoing call needs of secrets. It is never stored.
type Opened struct {
	Headers map[string]string // with the values in place of the references
	Signing []string          // the present value first
	Redact  secretref.Redactor
}

// Signer is the stored form of a secret that signs calls: encrypted and bound to a row, or a reference secret:NAME.
type Signer struct {
	Stored string
	Bound  []string
	Former bool // it only signs in addition: if it cannot be read or cannot sign, it does not
}

// Open opens the references of a call in the context's workspace. If a secret does not exist or cannot be decrypted, the error is
// [fault.SecretUnavailable]: nothing must be sent. If a signer of a row's own cannot be decrypted, the error is that of [seal.Box.Open]. Values are read for each call, so that a rotation takes effect with the next one.
func Open(ctx context.Context, d store.Doer, box *seal.Box, headers map[string]string, signers ...Signer) (Opened, error) {
	o := opener{ctx: ctx, d: d, box: box, values: make(map[string][]string)}
	var out Opened
	for _, s := range signers {
		if s.Former {
			out.Signing = append(out.Signing, o.former(s)...)
		} else {
			out.Signing = append(out.Signing, o.signing(s)...)
		}
	}
	for name, text := range headers {
		if out.Headers == nil {
			out.Headers = make(map[string]string, len(headers))
		}
		out.Headers[name] = secretref.Expand(text, o.current)
	}
	for _, name := range slices.Sorted(maps.Keys(o.values)) {
		for _, value := range o.values[name] {
			out.Redact.Add(name, value)
		}
	}
	if o.err != nil {
		return Opened{}, o.err
	}
	return out, nil
}

type opener struct {
	ctx    context.Context
	d      store.Doer
	box    *seal.Box
	values map[string][]string // the present value of a secret first
	err    error               // the first one
}

// signing returns the values of a signer, the present one first.
func (o *opener) signing(s Signer) []string {
	if name, ok := secretref.Whole(s.Stored); ok {
		all := o.all(name)
		if len(all) == 0 {
			return nil
		}
		return append(all[:1:1], signers(all[1:])...)
	}
	value, err := o.open(s.Stored, s.Bound)
	if err != nil && o.err == nil {
		o.err = err
	}
	if value == "" {
		return nil
	}
	return []string{value}
}

// former returns the values of a former signer that can sign, if there are any.
func (o *opener) former(s Signer) []string {
	own := opener{ctx: o.ctx, d: o.d, box: o.box, values: make(map[string][]string), err: o.err}
	all := own.signing(s)
	switch code := fault.CodeOf(own.err); {
	case own.err == nil:
		maps.Copy(o.values, own.values)
	case code != fault.SecretUnavailable && code != fault.DatabaseDamaged:
		o.err = own.err
	}
	return signers(all)
}

// signers returns the values that can sign.
func signers(values []string) (all []string) {
	for _, v := range values {
		if secretref.CanSign(v) {
			all = append(all, v)
		}
	}
	return all
}

func (o *opener) current(name string) string {
	if all := o.all(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// all returns the present value of a secret, and during an overlap the former one.
func (o *opener) all(name string) []string {
	if all, ok := o.values[name]; ok || o.err != nil {
		return all
	}
	s, err := find(o.ctx, o.d, name)
	switch {
	case err != nil:
		o.err = err
	case s.Version == 0:
		o.err = unavailable("secret %q does not exist: create it with PUT secrets/%s", name, name)
	}
	var all []string
	for i, sealed := range []string{s.sealed, s.former} {
		value, err := o.open(sealed, sealContext(store.WorkspaceOf(o.ctx), name))
		if err != nil && i > 0 { // the former value only signs in addition
			continue
		}
		if err != nil {
			err = fmt.Errorf("secret %q: %s", name, message(err))
		}
		if o.fail(err); value != "" {
			all = append(all, value)
		}
	}
	o.values[name] = all
	return all
}

func (o *opener) open(sealed string, bound []string) (string, error) {
	if o.err != nil || sealed == "" {
		return "", nil
	}
	if o.box == nil {
		return "", errors.New("this node has no key to decrypt secrets: start it with an encryption key (HOLDFAST_SECRET_KEY)")
	}
	return o.box.Open(sealed, bound...)
}

// fail keeps the first error of a value that cannot be decrypted.
func (o *opener) fail(err error) {
	if err != nil && o.err == nil {
		o.err = unavailable("%s", message(err))
	}
}

func unavailable(format string, args ...any) *fault.Error {
	return fault.New(fault.SecretUnavailable, "nothing was sent: "+format, args...)
}

func message(err error) string {
	if f, ok := err.(*fault.Error); ok {
		return f.Message
	}
	return err.Error()
}

// Engine is the part of an engine that shares its box.
type Engine interface {
	Shared(key any, make func() any) any
}

type boxKey struct{}

func shared(e Engine) *atomic.Pointer[seal.Box] {
	return e.Shared(boxKey{}, func() any { return new(atomic.Pointer[seal.Box]) }).(*atomic.Pointer[seal.Box])
}

// Provide sets the box that opens references in steps of runs.
func Provide(e Engine, box *seal.Box) { shared(e).Store(box) }

// BoxOf returns the box of an engine, or nil.
func BoxOf(e Engine) *seal.Box { return shared(e).Load() }
