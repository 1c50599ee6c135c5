package stream

import (
	"cmp"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// FoldOption is an option of an aggregate.
type FoldOption struct{ set func(*foldOptions) }

type foldOptions struct {
	attempts int
	every    int // 0: no snapshots
	codec    string
	vault    *Vault
	err      error
}

const defaultAttempts = 10

// MaxAttempts sets how many times [Aggregate.Do] tries to append while other writers append first, including the
// first attempt. 0 means the default, 10; a negative number is an error.
func MaxAttempts(n int) FoldOption {
	return FoldOption{func(o *foldOptions) {
		if n < 0 {
			o.fail(fault.New(fault.Validation, "MaxAttempts must be 1 or more, or 0 for the default, got %d", n))
		}
		o.attempts = cmp.Or(n, defaultAttempts)
	}}
}

// SnapshotEvery lets [Aggregate.Do] store the state, as JSON, after every n appended events, so that Load folds only
// the events after the snapshot. Snapshots are only an optimization: a snapshot that cannot be stored is skipped, and a
// snapshot that cannot be decoded or does not fit its stream is ignored.
//
// The codec, such as "account 2", identifies the format of the state and the way it is computed. Change the codec
// whenever either of them changes. It must not contain a slash. Aggregates with the same prefix must not share a
// codec. JSON must preserve all of S: no field may be unexported or excluded.
func SnapshotEvery(n int, codec string) FoldOption {
	return FoldOption{func(o *foldOptions) {
		if n < 1 {
			o.fail(fault.New(fault.Validation, "SnapshotEvery must be at least 1, got %d", n))
		}
		if strings.Contains(codec, "/") {
			o.fail(fault.New(fault.Validation, "a codec must not contain a slash, got %q", codec))
		}
		o.fail(strictjson.Text("codec", codec, events.MaxName))
		o.every, o.codec = n, codec
	}}
}

// WithVault lets the aggregate append and read through a vault: f and decide get the decrypted data of subjects, and
// null for forgotten ones. It cannot be combined with SnapshotEvery: a snapshot would store the protected data
// unencrypted, and would keep it after the subject was forgotten. An aggregate without WithVault gets the data of
// subjects encrypted.
func WithVault(v *Vault) FoldOption {
	return FoldOption{func(o *foldOptions) {
		if v == nil {
			o.fail(fault.New(fault.Validation, "WithVault requires a vault, got nil"))
		}
		o.vault = v
	}}
}

// fail records the first error.
func (o *foldOptions) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// check returns the first error of an option or of their combination.
func (o *foldOptions) check() error {
	if o.err == nil && o.every > 0 && o.vault != nil {
		return fault.New(fault.Validation, "SnapshotEvery and WithVault cannot be combined, because a snapshot would store encrypted data in plain text: use only one of them")
	}
	return o.err
}
