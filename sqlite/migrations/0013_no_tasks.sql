-- Nothing adds a task of this kind: workers take operations, items and steps, which have their own rows.
-- min_reader: 13

DROP TABLE holdfast_task;
