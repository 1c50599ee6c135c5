package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

var _ store.Dropper = opener{}

// Drop drops a schema that was created for a measurement, with everything in it. Any other schema is
// refused.
func (d opener) Drop(ctx context.Context) error {
	if err := d.checkSchema(); err != nil {
		return err
	}
	if !strings.HasPrefix(d.schema, store.ScratchPrefix) {
		return fault.New(fault.Validation, "schema %s is not dropped: its name does not begin with %s", d.schema, store.ScratchPrefix)
	}
	config, err := d.config()
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return fault.New(fault.Unavailable, "cannot connect to the database").AsRetryable().Wrap(hidden(err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, fill("DROP SCHEMA IF EXISTS {schema} CASCADE", d.schema, ""))
	return err
}
