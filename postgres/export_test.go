package postgres

const (
	MigratedShape = migratedShape
	ShapeSQL      = shapeSQL
)
