package wire

// PutSecret stores the value of a named secret.
type PutSecret struct {
	Value           string `json:"value" doc:"8 to 4096 printable ASCII characters, without line breaks. No request returns it."`
	OverlapMs       Millis `json:"overlapMs,omitempty" doc:"How long messages are also signed with the previous value; at most 30 days. Headers always have the new value."`
	ExpectedVersion *int64 `json:"expectedVersion,omitempty" doc:"The value is stored only if the secret is at this version; 0 if it must not exist."`
}

// Secret is a named secret without its value.
type Secret struct {
	Name         string `json:"name"`
	Version      int64  `json:"version" doc:"1 for the first value."`
	CreatedBy    string `json:"createdBy"`
	CreatedAt    *Time  `json:"createdAt"`
	UpdatedBy    string `json:"updatedBy"`
	UpdatedAt    *Time  `json:"updatedAt"`
	OverlapUntil *Time  `json:"overlapUntil" doc:"End of the period in which messages are also signed with the previous value; null if there is none."`
}
