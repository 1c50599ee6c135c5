// Package everyverb links every capability, so that a test that imports it has all verbs of the
// program: an adapter has the SQL of the linked verbs.
package everyverb

import (
	_ "github.com/holdfast-go/holdfast/batch"
	_ "github.com/holdfast-go/holdfast/internal/check"
	_ "github.com/holdfast-go/holdfast/internal/claimtoken"
	_ "github.com/holdfast-go/holdfast/internal/idempotency"
	_ "github.com/holdfast-go/holdfast/internal/inbox"
	_ "github.com/holdfast-go/holdfast/internal/keys"
	_ "github.com/holdfast-go/holdfast/internal/remotehandler"
	_ "github.com/holdfast-go/holdfast/internal/webhooks"
	_ "github.com/holdfast-go/holdfast/lifecycle"
	_ "github.com/holdfast-go/holdfast/run"
	_ "github.com/holdfast-go/holdfast/scope"
	_ "github.com/holdfast-go/holdfast/stream"
)
