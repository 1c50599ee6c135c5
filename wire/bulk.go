package wire

// NewBulk is an action on many objects. It has either ids or a filter; the filter {} selects all objects that permit the
// action.
type NewBulk struct {
	Action string      `json:"action" enum:"run.retry,run.cancel,run.pause,run.resume,reaction.unblock,reaction.skip,operation.release,operation.resolve,operation.withdraw"`
	IDs    []string    `json:"ids,omitempty" doc:"Up to 1000 ids: of runs or operations, or reaction/stream for positions."`
	Filter *BulkFilter `json:"filter,omitempty" doc:"Selects up to 10000 objects. Objects that do not permit the action are not selected."`
	DryRun bool        `json:"dryRun,omitempty" doc:"Return what would be acted on, and write nothing."`

	Happened *bool  `json:"happened,omitempty" doc:"For operation.resolve: whether the effects of unknown outcome happened, for all operations."`
	Outcome  string `json:"outcome,omitempty" enum:"success,failure,invalid" doc:"For operation.resolve: the outcome with which all operations end. Without it, they continue."`
	Reason   string `json:"reason,omitempty" doc:"For operation.release and operation.withdraw: recorded in the audit."`
}

// BulkFilter selects the objects of a bulk. Members that are omitted match all.
type BulkFilter struct {
	Status       string `json:"status,omitempty" doc:"Runs with this status."`
	DefinitionID string `json:"definitionId,omitempty" doc:"Runs of this definition, or operations of its steps."`
	Reaction     string `json:"reaction,omitempty" doc:"Positions of this reaction."`
	Stream       string `json:"stream,omitempty" doc:"Positions in streams whose names match this regular expression (RE2)."`
	Source       string `json:"source,omitempty" enum:"event,history" doc:"Positions in streams, or in histories."`
	Blocked      *bool  `json:"blocked,omitempty" doc:"For reaction.skip: false selects positions whose failed event waits for a retry, instead of blocked ones."`
	Lifecycle    string `json:"lifecycle,omitempty" doc:"Operations of entities of this lifecycle."`
	Since        *Time  `json:"since,omitempty" doc:"Runs that were created, or operations that began, at this time or later."`
	Until        *Time  `json:"until,omitempty" doc:"Runs that were created, or operations that began, before this time."`
}

// StartedBulk is a bulk that was started or, for a dry run, what it would act on.
type StartedBulk struct {
	Bulk    *Bulk        `json:"bulk,omitempty"`
	Preview *BulkPreview `json:"preview,omitempty"`
}

// BulkPreview is what a bulk would act on.
type BulkPreview struct {
	Total        int64        `json:"total" doc:"Number of objects that the action would be done to."`
	Members      []BulkMember `json:"members" doc:"The first 100 of them."`
	RefusedTotal int64        `json:"refusedTotal" doc:"Number of ids that would currently be refused."`
	Refused      []BulkMember `json:"refused" doc:"The first 100 of them."`
}

// Bulk is an action on many objects, which runs in the background, and its progress.
type Bulk struct {
	ID        string      `json:"id"`
	Action    string      `json:"action"`
	Status    string      `json:"status" enum:"PENDING,RUNNING,CANCELLING,CANCELLED,COMPLETED"`
	Actor     string      `json:"actor"`
	RequestID string      `json:"requestId" doc:"The id of the HTTP request that started it."`
	Filter    *BulkFilter `json:"filter,omitempty" doc:"Omitted if the request listed ids."`
	Happened  *bool       `json:"happened,omitempty"`
	Outcome   string      `json:"outcome,omitempty"`
	Reason    string      `json:"reason,omitempty"`

	Total           int64 `json:"total" doc:"Number of members: the sum of pending, running, done, refused and cancelled."`
	Pending         int64 `json:"pending"`
	Running         int64 `json:"running"`
	Done            int64 `json:"done"`
	Refused         int64 `json:"refused"`
	Cancelled       int64 `json:"cancelled" doc:"Number of members on which nothing was done, because the bulk was cancelled."`
	CancelRequested bool  `json:"cancelRequested"`
	CreatedAt       *Time `json:"createdAt"`
	UpdatedAt       *Time `json:"updatedAt"`
}

// BulkMember is an object of a bulk, and the result of the action.
type BulkMember struct {
	ID      string `json:"id"`
	State   string `json:"state" doc:"State of the object when it was selected; empty if it did not exist."`
	Status  string `json:"status,omitempty" enum:"pending,waiting,running,done,refused,cancelled" doc:"waiting means that the action failed for a temporary reason and is tried again. Omitted in a dry run."`
	Code    string `json:"code,omitempty" doc:"Code of the refusal, or of the last failed attempt."`
	Message string `json:"message,omitempty"`
}
