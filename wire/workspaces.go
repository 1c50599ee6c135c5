package wire

// Workspace is a tenant.
type Workspace struct {
	Name      string `json:"name"`
	CreatedAt *Time  `json:"createdAt"`
}

// NewWorkspace is the request to create a workspace.
type NewWorkspace struct {
	Name string `json:"name"`
}

// Diagram is a diagram of a lifecycle.
type Diagram struct {
	Format  string `json:"format" enum:"svg,mermaid"`
	Diagram string `json:"diagram"`
}
