package webhooks

import (
	"context"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/secrets"
	"github.com/holdfast-go/holdfast/internal/store"
)

// alphabet encodes webhook ids. They rise with time and need no escaping in URLs.
var alphabet = base32.NewEncoding(letters).WithPadding(base32.NoPadding)

const (
	letters  = "0123456789abcdefghijklmnopqrstuv"
	idLength = 26
)

func newID() string {
	id := store.NewID()
	return alphabet.EncodeToString(id[:])
}

func isID(s string) bool { return len(s) == idLength && strings.Trim(s, letters) == "" }

// Served is a webhook to serve.
type Served struct {
	Workspace, ID string
	Definition    reactions.Definition
}

type listAllArgs struct {
	workspace string `arg:"after_workspace"`
	id        string `arg:"after_id"`
	limit     int    `arg:"limit"`
}

// Target is the URL of a webhook, the headers of its messages, and the secrets that currently sign them. It is never stored.
type Target struct {
	URL string
	secrets.Opened
}

type target struct {
	found          bool
	url, headers   string
	secret, former string // encrypted, or references; former is the previous secret during an overlap, else ""
}

var (
	listAllVerb = store.VerbOf[listAllArgs](store.Decl{Name: "webhooks.list_all", Lane: store.Read}, nil,
		func(all *[]Served, r store.Row) error {
			var s Served
			var list []byte
			var names []string
			var streams string
			if err := r.Scan(&s.Workspace, &s.ID, &list, &streams); err != nil {
				return err
			}
			if err := json.Unmarshal(list, &names); err != nil {
				return err
			}
			s.Definition = Definition(s.ID, names, streams)
			*all = append(*all, s)
			return nil
		})
	targetVerb = store.NewVerb(store.Decl{Name: "webhooks.get_target", Lane: store.Read}, nil, store.TextArg("id"),
		func(t *target, r store.Row) error {
			t.found = true
			return r.Scan(&t.url, &t.headers, &t.secret, &t.former)
		})
)

// All returns the webhooks of all workspaces.
func All(ctx context.Context, d store.Doer) (all []Served, err error) {
	return store.Pages(ctx, d, listAllVerb, maxListed, listAllArgs{limit: maxListed},
		func(last Served) listAllArgs { return listAllArgs{last.Workspace, last.ID, maxListed} })
}

// Find returns the current target of a webhook of the context's workspace, or
// [fault.NotFound].
func Find(ctx context.Context, d store.Doer, box *seal.Box, id string) (Target, error) {
	t, err := targetVerb.Do(ctx, d, id)
	if err == nil && !t.found {
		err = missing(id)
	}
	if err != nil {
		return Target{}, err
	}
	out := Target{URL: t.url}
	var headers map[string]string
	if err := json.Unmarshal([]byte(t.headers), &headers); err != nil {
		return Target{}, fmt.Errorf("cannot decode the headers of webhook %s: %w", id, err)
	}
	bound := sealContext(store.WorkspaceOf(ctx), id)
	out.Opened, err = secrets.Open(ctx, d, box, headers, secrets.Signer{Stored: t.secret, Bound: bound}, secrets.Signer{Stored: t.former, Bound: bound, Former: true})
	return out, err
}
