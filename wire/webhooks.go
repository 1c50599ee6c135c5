package wire

// NewWebhook has events sent to a URL.
type NewWebhook struct {
	URL     string   `json:"url"`
	Name    string   `json:"name,omitempty"`
	Events  []string `json:"events,omitempty" doc:"Names of events; absent, or *: all."`
	Streams string   `json:"streams,omitempty" doc:"RE2; absent: all."`
	Source  string   `json:"source,omitempty" enum:"event,history" doc:"The user's streams, or the histories."`
	Secret  string   `json:"secret,omitempty" doc:"whsec_ and 24 to 64 bytes in base64; absent: one is made."`
}

// RotateWebhook gives a webhook another secret.
type RotateWebhook struct {
	OverlapMs Millis `json:"overlapMs,omitempty" doc:"How long messages are signed with the old one, too; 30 days at the most."`
	Secret    string `json:"secret,omitempty" doc:"Absent: one is made."`
}

// Webhook is a URL that events are sent to, without its secret.
type Webhook struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	URL          string   `json:"url"`
	Events       []string `json:"events"`
	Streams      string   `json:"streams"`
	Source       string   `json:"source"`
	Reaction     string   `json:"reaction" doc:"Its reaction: reactions/{reaction}/streams tells where it stands."`
	CreatedBy    string   `json:"createdBy"`
	CreatedAt    *Time    `json:"createdAt"`
	RotatedAt    *Time    `json:"rotatedAt"`
	OverlapUntil *Time    `json:"overlapUntil" doc:"Until then messages are signed with the secret before, too; null, or over: with one."`
}

// CreatedWebhook is a webhook that has a new secret.
type CreatedWebhook struct {
	Webhook
	Secret string `json:"secret,omitempty" doc:"It is told this once, and not when the request is replayed."`
}

// WebhookMessage is what is sent to a webhook.
type WebhookMessage struct {
	Type      string `json:"type" doc:"The event's name."`
	Timestamp *Time  `json:"timestamp" doc:"When it happened."`
	Data      Event  `json:"data"`
}
