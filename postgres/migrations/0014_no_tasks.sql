-- Nothing adds a task of this kind: workers take operations, items and steps, which have their own rows.
-- min_reader: 14

DROP TABLE {schema}.task;
