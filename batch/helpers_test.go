package batch_test

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

func postgresURL(t *testing.T) holdfast.Database { return holdfasttest.At(holdfasttest.PostgreSQL(t)) }
