package wire

// NewWebhook is the request to create a webhook.
type NewWebhook struct {
	URL     string            `json:"url"`
	Name    string            `json:"name,omitempty"`
	Events  []string          `json:"events,omitempty" doc:"Event names; omit them or use * for all."`
	Streams string            `json:"streams,omitempty" doc:"A regular expression (RE2) that stream names must match; omit it for all streams."`
	Source  string            `json:"source,omitempty" enum:"event,history" doc:"Where events come from: user streams (event) or histories (history)."`
	Secret  string            `json:"secret,omitempty" doc:"whsec_ followed by 24 to 64 bytes in base64, or secret:NAME for a named secret; generated if omitted."`
	Headers map[string]string `json:"headers,omitempty" doc:"Headers of each message. A value may contain ${secret:NAME}, which is replaced when the message is sent."`
}

// RotateWebhook replaces the secret of a webhook.
type RotateWebhook struct {
	OverlapMs Millis `json:"overlapMs,omitempty" doc:"How long messages are also signed with the old secret; at most 30 days."`
	Secret    string `json:"secret,omitempty" doc:"As when the webhook was created; generated if omitted."`
}

// Webhook is a webhook without its secret.
type Webhook struct {
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	URL          string            `json:"url"`
	Events       []string          `json:"events"`
	Streams      string            `json:"streams"`
	Source       string            `json:"source"`
	Reaction     string            `json:"reaction" doc:"Name of the webhook's reaction; reactions/{reaction}/streams lists its positions."`
	Headers      map[string]string `json:"headers,omitempty" doc:"With the references, not the values of secrets."`
	SignedWith   string            `json:"signedWith,omitempty" doc:"The named secret that signs messages, as secret:NAME."`
	CreatedBy    string            `json:"createdBy"`
	CreatedAt    *Time             `json:"createdAt"`
	RotatedAt    *Time             `json:"rotatedAt"`
	OverlapUntil *Time             `json:"overlapUntil" doc:"End of the period in which messages are also signed with the previous secret; null if there is none."`
}

// CreatedWebhook is a webhook with its new secret.
type CreatedWebhook struct {
	Webhook
	Secret string `json:"secret,omitempty" doc:"Returned only once, and not included when the request is replayed."`
}

// WebhookMessage is the body of a message to a webhook.
type WebhookMessage struct {
	Type      string `json:"type" doc:"Name of the event."`
	Timestamp *Time  `json:"timestamp" doc:"Time of the event."`
	Data      Event  `json:"data"`
}
