package oidc

import "time"

// At makes a verifier use a clock for the age of keys.
func (v *Verifier) At(now func() time.Time) {
	switch s := v.keys.(type) {
	case *remoteKeys:
		s.now = now
	case *fileKeys:
		s.now = now
	}
}

// Limits of keys.
const (
	RefreshEvery = refreshEvery
	LoadEvery    = loadEvery
	MaxPause     = maxPause
	MaxAge       = maxAge
	MaxDocument  = maxDocument
)
