package stream

import (
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// FoldOption changes how an aggregate works.
type FoldOption func(*foldOptions)

type foldOptions struct {
	attempts int
	every    int // 0: no snapshots
	codec    string
	vault    *Vault
	err      error
}

const defaultAttempts = 10

// MaxAttempts is the number of attempts of Do while other writers are faster, the first included; the default is 10.
func MaxAttempts(n int) FoldOption {
	return func(o *foldOptions) {
		if n < 1 {
			o.fail(fault.New(fault.Validation, "MaxAttempts must be at least 1, got %d", n))
		}
		o.attempts = n
	}
}

// SnapshotEvery has Do keep the state, as JSON, each time that n events more have
// been appended, so that a Load folds only those behind it. A snapshot is a help
// and no truth: one that cannot be kept is not, and one that cannot be decoded or
// does not fit its stream is passed over.
//
// The codec names what the state is and how it is made, and must change with
// either: "account 2". No two aggregates of one prefix share one. S must be
// carried by JSON whole: no field may be unexported or left out.
func SnapshotEvery(n int, codec string) FoldOption {
	return func(o *foldOptions) {
		if n < 1 {
			o.fail(fault.New(fault.Validation, "SnapshotEvery is at least 1, and it is %d", n))
		}
		if strings.Contains(codec, "/") {
			o.fail(fault.New(fault.Validation, "a codec has no slash: %q", codec))
		}
		o.fail(strictjson.Text("codec", codec, events.MaxName))
		o.every, o.codec = n, codec
	}
}

// Sealed has the aggregate append and read through a vault: f and decide see the
// data of subjects, and of those that are forgotten null. It excludes
// SnapshotEvery: a snapshot would keep in the open, and beyond its subject's
// time, what the vault was to protect. An aggregate without it sees the data of
// subjects encrypted.
func Sealed(v *Vault) FoldOption {
	return func(o *foldOptions) {
		if v == nil {
			o.fail(fault.New(fault.Validation, "Sealed needs a vault"))
		}
		o.vault = v
	}
}

// fail remembers the first mistake.
func (o *foldOptions) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// check returns what is wrong with the options, each and together.
func (o *foldOptions) check() error {
	if o.err == nil && o.every > 0 && o.vault != nil {
		return fault.New(fault.Validation, "SnapshotEvery and Sealed exclude each other: a snapshot would keep in the open what is sealed")
	}
	return o.err
}
