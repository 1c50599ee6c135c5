// Package claimtoken stores tokens for claims that were taken over HTTP, and signs the ids of tasks
// that are handed out. A token has 128 random bits; only its hash is stored. It refers to an
// operation and its epoch, and each call checks that the lease of the operation still has that
// epoch.
package claimtoken

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Claim is the claim that a token refers to.
type Claim struct {
	Lifecycle string `arg:"lifecycle"`
	Entity    string `arg:"entity"`
	Operation string `arg:"operation"`
	Epoch     int64  `arg:"epoch"`
	Requester string `arg:"requester"`
}

// Retention is how long a token is stored: longer than any single lease, so that a repeated or late
// settle gets a proper response.
const Retention = 7 * 24 * time.Hour

type putArgs struct {
	hash string `arg:"hash"`
	Claim
	kept time.Duration `arg:"kept"`
}

var (
	putVerb = store.VerbOf[putArgs](store.Decl{Name: "claim_tokens.put", Idempotent: true},
		func(a putArgs) []string { return []string{"token/" + a.hash} }, store.ScanValue[int])
	findVerb = store.NewVerb(store.Decl{Name: "claim_tokens.find", Lane: store.Read}, nil, store.TextArg("hash"),
		store.Each(func(c *Claim) []any { return []any{&c.Lifecycle, &c.Entity, &c.Operation, &c.Epoch, &c.Requester} }))
	pruneVerb = store.NewVerb(store.Decl{Name: "claim_tokens.prune", Lane: store.Work}, nil,
		store.IntArg("limit"),
		store.CountRows)
)

// New returns a new token.
func New() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never returns an error
	return "clm_" + base64.RawURLEncoding.EncodeToString(raw)
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Put stores a token and its claim.
func Put(ctx context.Context, d store.Doer, token string, c Claim) error {
	_, err := putVerb.Do(ctx, d, putArgs{hash(token), c, Retention})
	return err
}

// Find returns the claim of a token of the context's workspace.
func Find(ctx context.Context, d store.Doer, token string) (Claim, error) {
	all, err := findVerb.Do(ctx, d, hash(token))
	return store.First(all, err, func() error {
		return fault.New(fault.NotFound, "no claim has this token: use the token that the claim request returned")
	})
}

const pruneLimit = 1000

// Prune deletes old tokens.
func Prune(ctx context.Context, d store.Doer) (n int, err error) {
	return store.Sweep(ctx, d, func(at store.Partition) (int, error) { return pruneVerb.DoAt(ctx, d, at, pruneLimit) })
}
