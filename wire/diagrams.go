package wire

// Diagram is a diagram of a lifecycle or of a workflow definition. Diagram is its text or, if the format is layout, empty.
type Diagram struct {
	Format  string         `json:"format" enum:"svg,mermaid,layout"`
	Diagram string         `json:"diagram"`
	Layout  *DiagramLayout `json:"layout,omitempty"`
}

// DiagramLayout has the coordinates of a diagram, in pixels from the top left corner.
type DiagramLayout struct {
	Width  float64       `json:"width"`
	Height float64       `json:"height"`
	Nodes  []DiagramNode `json:"nodes"`
	Edges  []DiagramEdge `json:"edges"`
}

// DiagramNode is a status or a step. X and Y are its top left corner.
type DiagramNode struct {
	ID      string  `json:"id" doc:"The status or the name of the step; end is the end of a run."`
	Kind    string  `json:"kind" doc:"status or claim; for a step its type, or end."`
	Initial bool    `json:"initial"`
	Final   bool    `json:"final"`
	Label   string  `json:"label" doc:"The text in the node, shortened if it is long."`
	X       float64 `json:"x"`
	Y       float64 `json:"y"`
	Width   float64 `json:"width"`
	Height  float64 `json:"height"`
}

// DiagramEdge leads from one node to another, or back to the same one.
type DiagramEdge struct {
	From    string         `json:"from"`
	To      string         `json:"to"`
	Kind    string         `json:"kind" doc:"In a lifecycle step, claim, done, failed or revert; in a definition next, then, else, failure, timeout or reject."`
	Label   string         `json:"label"`
	Points  []DiagramPoint `json:"points" doc:"The line, from the border of one node to that of the other. No line crosses another node."`
	LabelAt *DiagramPoint  `json:"labelAt" doc:"The middle of the label, directly above the line; null if the line has none."`
}

// DiagramPoint is a point of a line.
type DiagramPoint struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}
