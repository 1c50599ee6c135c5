package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the drivers of the judge
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// ownRounds is the number of rounds on PostgreSQL and on SQLite.
var ownRounds = testlevel.Pick([2]int{3, 2}, [2]int{40, 8}, [2]int{200, 20})

// ownCallers is the number of concurrent callers in a round.
const ownCallers = 64

const (
	seatTable = `CREATE TABLE seats (nr text PRIMARY KEY, state text NOT NULL, rev bigint NOT NULL, sold bigint NOT NULL, buyer text NOT NULL, remark text NOT NULL)`
	// In each round, one of the two steps can be fired.
	seatConfig = `{"workflow":"seat","owning_module":"hall","initial_status":"even","status_types":["even","odd","selling","reselling"],"janitor":{"stuck_after":"1s"},"entity_table":"seats","steps":[
		{"step_id":1,"step_key":"sell","status":"even","successful_claim_state":["selling","even"],"successful_state":"odd","action":"Sell"},
		{"step_id":2,"step_key":"resell","status":"odd","successful_claim_state":["reselling","odd"],"successful_state":"even","action":"Sell"}]}`
)

// TestManyCallersOfAUsersRow verifies that of 64 concurrent callers over HTTP on one row of a user's table one succeeds,
// round after round, although servers are killed during the rounds: three servers on PostgreSQL, one on SQLite. The row,
// as SQL shows it, changes once per round: its status, and the columns that the action sets; other columns are unchanged.
//
// A claim that a killed server leaves is released, and its caller learns that the step did not happen. If all callers of a
// round have failed in this way, the round is repeated.
func TestManyCallersOfAUsersRow(t *testing.T) {
	testlevel.OneGoroutine(t) // the servers are processes
	binary := command(t)
	eachDatabase(t, func(t *testing.T, db string) {
		s := &seats{t: t, rounds: ownRounds[0]}
		servers, driver, at := 3, "pgx", db
		if db == "" {
			file := filepath.Join(t.TempDir(), "own.db")
			s.rounds, servers, driver, at, db = ownRounds[1], 1, "sqlite", file+"?_pragma=busy_timeout(10000)", "sqlite:"+file
		}
		var err error
		if s.judge, err = sql.Open(driver, at); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.judge.Close() })
		if out, err := exec.Command(binary, "migrate", "--db", db).CombinedOutput(); err != nil {
			t.Fatalf("migrate: %v\n%s", err, out)
		}
		s.sql(seatTable)
		s.sql(`INSERT INTO seats VALUES ('1', 'even', 0, 0, 'nobody', 'mine')`)
		s.rig = newRig(t, binary, db, servers, "100ms", "--entity-table", "seats:id=nr,status=state,version=rev,write=sold buyer",
			"--allow-private", "127.0.0.0/8", "--secret-key", strings.Repeat("ab", 32))
		s.run()
	})
}

// seats is the test on one database.
type seats struct {
	*rig
	t      *testing.T
	judge  *sql.DB // reads the table without Holdfast
	rounds int
	admin  *caller
	kills  int
}

func (s *seats) sql(text string) {
	s.t.Helper()
	if _, err := s.judge.Exec(text); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
}

// sell is the action: it counts the sales in the row that it gets, and names the operation.
func sell(w http.ResponseWriter, r *http.Request) {
	var call wire.HandlerCall
	var row struct {
		Sold int64 `json:"sold"`
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil || json.Unmarshal(call.Entity.Data, &row) != nil {
		http.Error(w, "invalid call", http.StatusBadRequest)
		return
	}
	buyer, _ := json.Marshal(call.IdempotencyKey)
	_, _ = fmt.Fprintf(w, `{"state":{"sold":%d,"buyer":%s},"output":%[2]s}`, row.Sold+1, buyer) // a failed write means that the server was killed
}

func (s *seats) run() {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Minute)
	defer cancel()
	action := httptest.NewServer(http.HandlerFunc(sell))
	defer action.Close()
	var err error
	if s.admin, err = newCaller(s.urls, s.key); err != nil {
		s.t.Fatal(err)
	}
	if _, err := request(ctx, s.admin, with2(api.PutHandler, "Sell", wire.PutHandler{Kind: "http", URL: action.URL, Safety: "idempotent"})); err != nil {
		s.t.Fatal(err)
	}
	if _, err := request(ctx, s.admin, with2(api.PutLifecycle, "seat", json.RawMessage(seatConfig))); err != nil {
		s.t.Fatal(err)
	}
	random := testlevel.Rand(s.t)
	version := int64(0)
	for round := range s.rounds {
		var winners []string
		for again := 0; len(winners) == 0 && !s.t.Failed() && ctx.Err() == nil; again++ {
			kill := -1
			if random.IntN(2) == 0 || round == 0 && again == 0 {
				kill = random.IntN(ownCallers)
			}
			winners = s.round(ctx, fmt.Sprint(round, "/", again), []string{"sell", "resell"}[round%2], random.IntN(len(s.servers)), kill)
		}
		if len(winners) != 1 {
			s.t.Fatalf("round %d: the operations %v succeeded, want one", round, winners)
		}
		version = s.check(round, winners[0], version)
	}
	s.t.Logf("%d rounds, %d kills", s.rounds, s.kills)
	s.holdfast("check")
}

// lost are the codes of a caller whose step did not happen.
var lost = []fault.Code{fault.ClaimFailed, fault.InvalidTransition, fault.ActionFailed, fault.Concurrency, fault.LeaseLost}

// round fires the step by all callers, and returns the operations that succeeded. If kill is not negative, a server is
// killed once that many callers have a response, and started again.
func (s *seats) round(ctx context.Context, name, step string, server, kill int) (winners []string) {
	var mu sync.Mutex
	var callers, killer sync.WaitGroup
	var answered atomic.Int64
	reached := make(chan struct{})
	if kill == 0 {
		close(reached)
	}
	if kill >= 0 {
		s.kills++
		killer.Go(func() {
			<-reached
			s.killed(s.servers[server], 0)
		})
	}
	for i := range ownCallers {
		callers.Go(func() {
			fired, err := s.fire(ctx, step, fmt.Sprint(name, "/", i))
			if answered.Add(1) == int64(kill) {
				close(reached)
			}
			mu.Lock()
			defer mu.Unlock()
			switch code := fault.CodeOf(err); {
			case err == nil && fired.Outcome == "success":
				winners = append(winners, strings.Trim(string(fired.Output), `"`))
			case err == nil:
				s.t.Errorf("caller %d of round %s: got outcome %s", i, name, fired.Outcome)
			case !slices.Contains(lost, code):
				s.t.Errorf("caller %d of round %s: %v", i, name, err)
			}
		})
	}
	callers.Wait()
	killer.Wait()
	return winners
}

// fire fires the step under a key until its outcome is known.
func (s *seats) fire(ctx context.Context, step, key string) (wire.Fired, error) {
	for {
		fired, err := request(ctx, s.admin, with4(api.FireStep, "seat", "1", step, wire.Fire{Requester: "admin"}), client.Key(key))
		if err != nil || fired.Outcome != "pending" || !pause(ctx, 20*time.Millisecond) {
			return fired, err
		}
	}
}

// check compares the row with the only success of a round.
func (s *seats) check(round int, winner string, before int64) (version int64) {
	s.t.Helper()
	var state, buyer, remark string
	var sold int64
	if err := s.judge.QueryRow(`SELECT state, rev, sold, buyer, remark FROM seats WHERE nr = '1'`).Scan(&state, &version, &sold, &buyer, &remark); err != nil {
		s.t.Fatal(err)
	}
	want := []string{"odd", "even"}[round%2]
	// A claim and its end each add 1. So do a claim that a killed server left, and its release.
	if state != want || sold != int64(round+1) || buyer != winner || remark != "mine" || version < before+2 || (version-before)%2 != 0 {
		s.t.Fatalf("round %d: the row is %s, version %d, sold %d, buyer %s, remark %s; want %s, at least version %d, sold %d, buyer %s, remark mine",
			round, state, version, sold, buyer, remark, want, before+2, round+1, winner)
	}
	return version
}
