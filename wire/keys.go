package wire

// NewKey is the request to create an API key.
type NewKey struct {
	Name        string   `json:"name,omitempty"`
	Role        string   `json:"role" enum:"read,operate,worker,admin"`
	Requesters  []string `json:"requesters,omitempty" doc:"Requesters that the key may act for; * for all. Without requesters, the key cannot fire steps."`
	Handlers    []string `json:"handlers,omitempty" doc:"Handlers whose tasks the key may claim and end; empty means all handlers. A key with handlers cannot claim entities or streams directly."`
	RouteGroups []string `json:"routeGroups,omitempty" doc:"Groups of routes that the key may use: their tags in this document. Empty means all groups."`
	Lifecycles  []string `json:"lifecycles,omitempty" doc:"Lifecycles whose entities, claims and operations the key may use, and nothing else; empty means no such restriction."`
	From        []string `json:"from,omitempty" doc:"Networks from which the key may be used, such as 10.1.0.0/16; empty means all."`
	LifetimeMs  Millis   `json:"lifetimeMs,omitempty" doc:"How long the key is valid; 0 means that it does not expire."`
	Rate        int      `json:"rate,omitempty" doc:"Requests per second; 0 means the server's default."`
}

// RotateKey replaces a key with a new key that has the same permissions.
type RotateKey struct {
	OverlapMs Millis `json:"overlapMs,omitempty" doc:"How long the old key stays valid."`
}

// Key is an API key without its secret.
type Key struct {
	ID          string   `json:"id"`
	Workspace   string   `json:"workspace"`
	Name        string   `json:"name"`
	Role        string   `json:"role"`
	Requesters  []string `json:"requesters"`
	Handlers    []string `json:"handlers"`
	RouteGroups []string `json:"routeGroups"`
	Lifecycles  []string `json:"lifecycles"`
	From        []string `json:"from"`
	Rate        int      `json:"rate"`
	CreatedBy   string   `json:"createdBy"`
	CreatedAt   *Time    `json:"createdAt"`
	ExpiresAt   *Time    `json:"expiresAt"`
	RevokedAt   *Time    `json:"revokedAt"`
	LastUsedAt  *Time    `json:"lastUsedAt" doc:"When it was last used, about a minute behind; null if it was never used."`
}

// CreatedKey is a new API key with its secret.
type CreatedKey struct {
	Key
	Secret string `json:"secret,omitempty" doc:"The complete key. It is returned only once, and is not included when the request is replayed."`
}

// Session is who the caller of a request is.
type Session struct {
	Workspace  string      `json:"workspace"`
	Role       string      `json:"role"`
	Requesters []string    `json:"requesters" doc:"Requesters that the caller may act for; * stands for all."`
	Actor      string      `json:"actor" doc:"How histories name the caller."`
	Key        *SessionKey `json:"key" doc:"The caller's API key; null for a token, and on a server without API keys."`
	ExpiresAt  *Time       `json:"expiresAt" doc:"When the session ends or, for a caller without one, when its API key or token expires; null if it does not."`
	Login      bool        `json:"login" doc:"Whether the server requires API keys."`
	Version    string      `json:"version" doc:"The version of the server; empty if it has none."`
	Now        *Time       `json:"now" doc:"The time of the database."`
}

// SessionKey is the API key of a caller.
type SessionKey struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}
