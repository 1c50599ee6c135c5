package wire

import "encoding/json"

// InboxItem is one entry of the inbox, which lists what needs a person or is stuck.
type InboxItem struct {
	Kind     string        `json:"kind" enum:"uncertainOperation,uncertainStep,blockedStream,refusedWebhook,failedRun,pendingApproval,overdueSignal,pausedBatch,failingTeardown,expiredLease,closingStream,unservedWork,unservedVersion,stalledJanitor,heldUpRetention,oldSnapshot"`
	ID       string        `json:"id" doc:"Unique within the kind."`
	Subject  string        `json:"subject"`
	Reason   string        `json:"reason" doc:"Why it is listed, in one sentence."`
	Since    *Time         `json:"since"`
	Owner    string        `json:"owner" doc:"Who or what is responsible, such as a requester, worker, node, handler or wallet; several requesters are separated by commas. Empty if unknown."`
	Deadline *Time         `json:"deadline" doc:"When it ends without an action, or for overdueSignal the deadline that has passed; null if there is none."`
	Action   InboxAction   `json:"action"`
	Others   []InboxAction `json:"others" doc:"Alternatives to the action."`
}

// InboxAction is a request that ends an entry. Without a method the label says what to do outside of Holdfast.
type InboxAction struct {
	Label  string          `json:"label"`
	Method string          `json:"method,omitempty"`
	Route  string          `json:"route,omitempty" doc:"Path of the request, beginning with /api/v1/."`
	Body   json.RawMessage `json:"body,omitempty"`
}

// InboxCounts are the numbers of entries of each kind.
type InboxCounts struct {
	Counts []InboxCount `json:"counts"`
}

// InboxCount is the number of entries of a kind.
type InboxCount struct {
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	Capped bool   `json:"capped" doc:"True if the inbox has more entries of this kind than count. At most 1,000 entries of a kind are counted and listed."`
}

// Maintained is the result of maintenance.
type Maintained struct {
	Node string `json:"node" doc:"The node that ran it."`
}

// Node is a node as it last reported.
type Node struct {
	Name      string       `json:"name"`
	Version   string       `json:"version"`
	StartedAt *Time        `json:"startedAt"`
	SeenAt    *Time        `json:"seenAt" doc:"When the node reported last. A node reports every 10 seconds."`
	Gone      bool         `json:"gone" doc:"The node has not reported for 30 seconds."`
	Serves    []NodeServes `json:"serves" doc:"The work that the node, or a worker through it, polls for."`
	Sweeps    []NodeSweep  `json:"sweeps" doc:"The last run of each sweep of the janitor."`
	Stalled   bool         `json:"stalled" doc:"The janitor no longer completes its sweeps."`
	Pool      NodePool     `json:"pool"`
	Queued    int          `json:"queued" doc:"Streams that the node has leased for reactions, and that wait until it has free capacity."`
	Waiting   int          `json:"waiting" doc:"Callers that wait for a wake-up."`
	Snapshot  *Snapshot    `json:"snapshot" doc:"The oldest snapshot that keeps PostgreSQL from removing old rows; null if there is none."`
}

// NodeServes is work that a node polls for.
type NodeServes struct {
	Kind   string `json:"kind" doc:"reaction, operation, step, batch, or a kind of maintenance."`
	Name   string `json:"name" doc:"Of the reaction, lifecycle or handler."`
	Remote bool   `json:"remote" doc:"A worker elsewhere asked this node for it within the last minute."`
}

// NodeSweep is the last run of a sweep.
type NodeSweep struct {
	Name  string `json:"name"`
	At    *Time  `json:"at"`
	Error string `json:"error"`
}

// NodePool is the use of a node's database connections.
type NodePool struct {
	Busy int `json:"busy"`
	Size int `json:"size"`
}

// Snapshot is the oldest open transaction of PostgreSQL that has a snapshot.
type Snapshot struct {
	Since *Time  `json:"since" doc:"When the transaction began."`
	By    string `json:"by" doc:"The connection that holds the transaction open: its process id, its application or role, and its state."`
}

// Rate is what a node has done in one minute.
type Rate struct {
	Minute    *Time  `json:"minute"`
	Node      string `json:"node"`
	Commands  int64  `json:"commands" doc:"Commands that write events when they are applied."`
	Refusals  int64  `json:"refusals" doc:"Of these commands, those that were refused."`
	Requests  int64  `json:"requests" doc:"HTTP requests."`
	Runs      int64  `json:"runs" doc:"Runs that ended."`
	Steps     int64  `json:"steps" doc:"Steps of runs that ended."`
	Items     int64  `json:"items" doc:"Items of batches that succeeded."`
	Reactions int64  `json:"reactions" doc:"Deliveries to reactions that ended."`
	LatencyMs *int64 `json:"latencyMs" doc:"95 % of the HTTP requests took at most this long, without the time for which they waited for work; rounded up, by up to a quarter. It is that of the slowest 10 seconds of the minute; null if there were no requests. Responses that are streams of server-sent events are not counted."`
	LagMs     *int64 `json:"lagMs" doc:"Age of the oldest work, in all workspaces, that is due and has no holder. A node reads it once a minute; null if it has not read it yet."`
}

// Tally is a count by status, lifecycle or kind.
type Tally struct {
	Counts map[string]int64 `json:"counts"`
	Capped bool             `json:"capped" doc:"True if there are more than 5,000; only the first 5,001 are counted."`
}

// Overview counts what a workspace has. Counts of what has not ended are exact, others up to 5,000.
type Overview struct {
	Operations     map[string]int64 `json:"operations" doc:"Operations that have not ended, by state."`
	Entities       Tally            `json:"entities" doc:"Entities, by lifecycle."`
	LiveRuns       map[string]int64 `json:"liveRuns" doc:"Runs that have not ended, and failed ones, by status."`
	EndedRuns      Tally            `json:"endedRuns"`
	Approvals      int64            `json:"approvals" doc:"Pending approvals."`
	LiveBatches    map[string]int64 `json:"liveBatches"`
	EndedBatches   Tally            `json:"endedBatches"`
	BlockedStreams int64            `json:"blockedStreams"`
	Streams        Tally            `json:"streams" doc:"Streams, by state."`
	Scopes         Tally            `json:"scopes" doc:"Scopes, by kind."`
}

// Quota is a limit on what the workspace may use, and what it uses.
type Quota struct {
	Name    string `json:"name" doc:"requests (per second), connections (event streams and waiting requests), work (open operations, runs and items), storage (bytes) or definitions (definitions, lifecycles, reactions, handlers, webhooks, secrets and API keys)."`
	Limit   *int64 `json:"limit" doc:"Null if there is none."`
	Used    *int64 `json:"used" doc:"Null if it is not counted: of requests, and of storage without a limit."`
	PerNode bool   `json:"perNode" doc:"Each node has its own count."`
	Refused int64  `json:"refused" doc:"Requests that the node has refused because of the quota since it started."`
}
