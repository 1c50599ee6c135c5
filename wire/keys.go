package wire

// NewKey makes an API key.
type NewKey struct {
	Name       string   `json:"name,omitempty"`
	Role       string   `json:"role" enum:"read,operate,worker,admin"`
	Requesters []string `json:"requesters,omitempty" doc:"Whom it may speak for; * for everyone; none: it fires nothing."`
	Handlers   []string `json:"handlers,omitempty" doc:"Whose tasks it may claim and end, and nothing else by hand; none: those of all handlers."`
	LifetimeMs Millis   `json:"lifetimeMs,omitempty" doc:"0: it does not expire."`
	Rate       int      `json:"rate,omitempty" doc:"Requests a second; 0: the server's default."`
}

// RotateKey replaces a key by another with the same rights.
type RotateKey struct {
	OverlapMs Millis `json:"overlapMs,omitempty" doc:"How long the old one still works."`
}

// Key is an API key, without its secret.
type Key struct {
	ID         string   `json:"id"`
	Workspace  string   `json:"workspace"`
	Name       string   `json:"name"`
	Role       string   `json:"role"`
	Requesters []string `json:"requesters"`
	Handlers   []string `json:"handlers"`
	Rate       int      `json:"rate"`
	CreatedBy  string   `json:"createdBy"`
	CreatedAt  *Time    `json:"createdAt"`
	ExpiresAt  *Time    `json:"expiresAt"`
	RevokedAt  *Time    `json:"revokedAt"`
}

// CreatedKey is a new key. Secret is the whole key, and is told this once.
type CreatedKey struct {
	Key
	Secret string `json:"secret,omitempty" doc:"The whole key. It is told this once, and not when the request is replayed."`
}
