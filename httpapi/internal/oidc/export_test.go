package oidc

import "time"

// At makes a verifier use a clock for the age of keys at a URL.
func (v *Verifier) At(now func() time.Time) { v.keys.(*remoteKeys).now = now }

// Limits of keys.
const (
	RefreshEvery = refreshEvery
	LoadEvery    = loadEvery
	MaxAge       = maxAge
	MaxDocument  = maxDocument
)
