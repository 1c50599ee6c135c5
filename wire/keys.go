package wire

// NewKey is the request to create an API key.
type NewKey struct {
	Name       string   `json:"name,omitempty"`
	Role       string   `json:"role" enum:"read,operate,worker,admin"`
	Requesters []string `json:"requesters,omitempty" doc:"Requesters that the key may act for; * for all. Without requesters, the key cannot fire steps."`
	Handlers   []string `json:"handlers,omitempty" doc:"Handlers whose tasks the key may claim and end; empty means all handlers. A key with handlers cannot claim entities or streams directly."`
	LifetimeMs Millis   `json:"lifetimeMs,omitempty" doc:"How long the key is valid; 0 means that it does not expire."`
	Rate       int      `json:"rate,omitempty" doc:"Requests per second; 0 means the server's default."`
}

// RotateKey replaces a key with a new key that has the same permissions.
type RotateKey struct {
	OverlapMs Millis `json:"overlapMs,omitempty" doc:"How long the old key stays valid."`
}

// Key is an API key without its secret.
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

// CreatedKey is a new API key with its secret.
type CreatedKey struct {
	Key
	Secret string `json:"secret,omitempty" doc:"The complete key. It is returned only once, and is not included when the request is replayed."`
}
