package wire

import (
	"encoding/json"

	"github.com/holdfast-go/holdfast/fault"
)

// Live is what has changed in the topics that are watched: changes or, in another message of the stream, states.
type Live struct {
	Cursor string `json:"cursor" doc:"Continues after this message: the id of the server-sent event."`
	At     *Time  `json:"at" doc:"The database's time when the workspace was read. Null if it has not been read yet."`
	LagMs  int64  `json:"lagMs" doc:"Time between that read and this message."`
	// Changes are the events of the topics, in the order of each subject.
	Changes []LiveChange `json:"changes" doc:"The events of the topics, in the order of each subject. Empty if there were too many for one message: then folded has their subjects."`
	// Folded are subjects that have more changes than a message has room for.
	Folded []LiveSubject `json:"folded" doc:"Subjects that have changed: read them again."`
	Reset  bool          `json:"reset" doc:"True if more has changed than the message names: read everything again."`
	State  *LiveState    `json:"state,omitempty" doc:"The topics whose state has changed since the last message."`
}

// LiveChange is one event.
type LiveChange struct {
	LiveSubject
	Name  string          `json:"name"`
	Actor string          `json:"actor"`
	At    *Time           `json:"at"`
	Data  json.RawMessage `json:"data,omitempty" doc:"The data of the event; absent if it has more than 512 bytes or is encrypted."`
}

// LiveSubject is something that has a history: an entity, run, batch, bulk, scope, stream or webhook, or a stream of a reaction.
type LiveSubject struct {
	Kind    string `json:"kind" enum:"entity,run,batch,bulk,scope,reaction,webhook,stream"`
	Subject string `json:"subject" doc:"Its id. For an entity, scope or reaction, also its lifecycle, kind or name: invoice/17."`
	Version int64  `json:"version" doc:"Version of its last event."`
	Events  int    `json:"events" doc:"How many events are meant: 1 in a change."`
}

// LiveState has the states of topics. In a stream of server-sent events, a state that has not changed is absent.
type LiveState struct {
	Inbox     *LiveInbox         `json:"inbox,omitempty"`
	Overview  *Overview          `json:"overview,omitempty"`
	Nodes     *[]Node            `json:"nodes,omitempty" doc:"The first 100 nodes."`
	Approvals *[]Approval        `json:"approvals,omitempty" doc:"The first 100 pending approvals."`
	Counts    map[string]Tally   `json:"counts,omitempty" doc:"Entities by status, for each lifecycle that is watched."`
	Races     *[]LiveRefusal     `json:"races,omitempty" doc:"The latest 100 refusals of writes, latest first."`
	Wallets   map[string]*Wallet `json:"wallets,omitempty" doc:"The wallets that are watched; null for one that does not exist."`
}

// LiveRefusal is a refused write. GET races and the timeline of the object have all that is known of it.
type LiveRefusal struct {
	ID      string     `json:"id"`
	Stream  string     `json:"stream" doc:"The stream of the object, for example $entity/invoice/17."`
	Version int64      `json:"version" doc:"The version of the object that refused the write."`
	Action  string     `json:"action"`
	Actor   string     `json:"actor"`
	Code    fault.Code `json:"code"`
	At      *Time      `json:"at"`
}

// LiveInbox has the first entries of the inbox, and the number of entries of each kind.
type LiveInbox struct {
	Items  []InboxItem  `json:"items" doc:"The first 100 entries, oldest first."`
	Counts []InboxCount `json:"counts"`
}
