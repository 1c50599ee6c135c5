package batch_test

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/postgres"
)

func postgresURL(t *testing.T) holdfast.Database { return postgres.URL(holdfasttest.PostgreSQL(t)) }
