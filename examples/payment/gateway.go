package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/holdfast-go/holdfast/examples/internal/stage"
)

// gateway simulates an external payment gateway. It has its own database file, because no
// transaction of the program includes it.
//
// It honors idempotency keys: a second charge with the same key returns the first one.
// Sometimes it charges and its response is lost.
type gateway struct {
	db    *stage.DB
	stage *stage.Stage
}

func openGateway(ctx context.Context, s *stage.Stage) (*gateway, error) {
	db, err := stage.OpenDB("sqlite:" + filepath.Join(s.Dir, "gateway.db"))
	if err != nil {
		return nil, err
	}
	return &gateway{db, s}, db.Exec(ctx, `CREATE TABLE IF NOT EXISTS charge (reference text, idempotency_key text UNIQUE, invoice text, cents bigint)`)
}

var errLost = errors.New("connection lost before the gateway responded")

// charge charges the card, unless it has done so with this key, and returns the reference.
func (g *gateway) charge(ctx context.Context, key, invoice string, cents int64) (reference string, err error) {
	mine := "ch_" + rand.Text()
	err = g.db.Exec(ctx, `INSERT INTO charge (reference, idempotency_key, invoice, cents) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, mine, key, invoice, cents)
	if err == nil {
		err = g.db.Row(ctx, `SELECT reference FROM charge WHERE idempotency_key = $1`, key).Scan(&reference)
	}
	if err == nil && reference == mine && g.stage.OneIn(3) {
		return "", errLost
	}
	return reference, err
}

// charges returns the charges of each invoice, by invoice id.
func (g *gateway) charges(ctx context.Context) (map[string][]string, error) {
	rows, err := g.db.Rows(ctx, `SELECT invoice, reference || ' over ' || cents FROM charge`)
	return byFirst(rows), err
}

func byFirst(rows [][]string) map[string][]string {
	all := map[string][]string{}
	for _, row := range rows {
		all[row[0]] = append(all[row[0]], row[1])
	}
	return all
}

// differences returns the invoices that do not have exactly one charge and one equal credit.
func differences(ids []string, charged, credited map[string][]string) (found []string) {
	for _, id := range ids {
		if len(charged[id]) != 1 || len(credited[id]) != 1 || charged[id][0] != credited[id][0] {
			found = append(found, fmt.Sprintf("%s was charged %q and credited %q", id, charged[id], credited[id]))
		}
	}
	return found
}
