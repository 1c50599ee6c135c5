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
