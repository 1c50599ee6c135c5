package wire

// Matches are the objects that a search has found, exact matches first.
type Matches struct {
	Matches []Match  `json:"matches"`
	More    []string `json:"more" doc:"The kinds of which there are more matches: search with more text."`
}

// Match is an object whose id, key or name is the text, or begins with it.
type Match struct {
	Kind      string `json:"kind" enum:"entity,run,batch,stream,wallet,scope,operation,request,handler,reaction,lifecycle,definition,webhook"`
	ID        string `json:"id" doc:"The id, or the name of an object that has no id."`
	Lifecycle string `json:"lifecycle,omitempty" doc:"Of an entity."`
	ScopeKind string `json:"scopeKind,omitempty" doc:"Of a scope."`
	Name      string `json:"name,omitempty" doc:"What else names the object: the key of a run, the subject of an operation, the name of a webhook."`
	Status    string `json:"status,omitempty" doc:"The status or state, if it has one."`
	Exact     bool   `json:"exact" doc:"The text is the whole id, key or name."`
	Route     string `json:"route" doc:"Path of the object, beginning with /api/v1/."`
}
