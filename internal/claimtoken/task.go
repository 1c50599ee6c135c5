package claimtoken

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// A Signer signs the ids of tasks that are handed out, and the leases of streams that a caller of the API claims for a
// reaction ("by hand"). A task
// id consists of readable names, and epochs can be guessed. So a caller that ends a task must prove
// that the task was handed out under that epoch and for that handler. The signature proves it
// without a write. Work that the server does itself is never signed, so no caller can end it.
type Signer []byte

// Keyring caches the signer of a database. The key is created with the database and shared by all
// nodes, so that each node accepts what another one has handed out. It is read once.
type Keyring struct{ signer atomic.Pointer[Signer] }

var secretVerb = store.VerbOf[struct{}](store.Decl{Name: "claim_tokens.get_task_secret", Lane: store.Vital}, nil, store.ScanValue[string])

// Signer returns the signer of the database.
func (k *Keyring) Signer(ctx context.Context, d store.Doer) (Signer, error) {
	if s := k.signer.Load(); s != nil {
		return *s, nil
	}
	text, err := secretVerb.DoAt(ctx, d, store.Partition{}, struct{}{})
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) < sha256.Size {
		return nil, fault.New(fault.DatabaseDamaged, "the key that signs task ids is missing from the database or is damaged: restore the table \"secret\" from a backup")
	}
	k.signer.Store(new(Signer(key)))
	return key, nil
}

// Task signs the id of a task that is handed out for a handler.
func (s Signer) Task(workspace, id string, epoch int64, handler string) string {
	return id + "." + encode([]byte(handler)) + "." + encode(s.task(workspace, id, epoch, handler))
}

// Open returns the id that was signed, and the handler that the task was handed out for. An
// unsigned id is [fault.NotFound]; a wrong signature is [fault.LeaseLost], because the caller does
// not hold the task.
func (s Signer) Open(workspace, signed string, epoch int64) (id, handler string, err error) {
	parts := strings.Split(signed, ".")
	if len(parts) != 3 {
		return "", "", fault.New(fault.NotFound, "task %q does not exist: use the id that the claim request returned", signed)
	}
	name, bad := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	given, wrong := base64.RawURLEncoding.Strict().DecodeString(parts[2])
	if bad == nil && wrong == nil && hmac.Equal(given, s.task(workspace, parts[0], epoch, string(name))) {
		return parts[0], string(name), nil
	}
	return "", "", fault.New(fault.LeaseLost, "this task was not handed out under epoch %d: use the id and epoch that the claim request returned", epoch)
}

func (s Signer) task(workspace, id string, epoch int64, handler string) []byte {
	return s.sum("task", workspace, id, strconv.FormatInt(epoch, 10), handler)
}

// Lease returns the token of a stream that is claimed by hand for a reaction.
func (s Signer) Lease(workspace, reaction, stream string, epoch int64) string {
	return "lse_" + encode(s.sum("lease", workspace, reaction, stream, strconv.FormatInt(epoch, 10)))
}

// CheckLease returns [fault.LeaseLost] unless the stream was claimed by hand under the epoch, with this token.
func (s Signer) CheckLease(token, workspace, reaction, stream string, epoch int64) error {
	if hmac.Equal([]byte(token), []byte(s.Lease(workspace, reaction, stream, epoch))) {
		return nil
	}
	return fault.New(fault.LeaseLost, "stream %q was not claimed for reaction %q under epoch %d with this token: use the epoch and token that the claim request returned",
		stream, reaction, epoch)
}

// sum authenticates parts. They are separated unambiguously, because no signed part contains a NUL.
func (s Signer) sum(parts ...string) []byte {
	h := hmac.New(sha256.New, s)
	_, _ = h.Write([]byte(strings.Join(parts, "\x00")))
	return h.Sum(nil)[:16]
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }
