-- Tasks: work that somebody takes, holds and settles.
-- min_reader: 1

-- A hold is four columns on the row of the thing held: who has it, under which
-- epoch, until when, and how many have died holding it. The epoch only grows.
CREATE TABLE {schema}.task (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    queue      text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    version    bigint      NOT NULL CHECK (version >= 0),
    state      text        COLLATE "C" NOT NULL CHECK (state IN ('due', 'done', 'failed', 'dead')),
    due_at     timestamptz NOT NULL,
    input      json        NOT NULL,
    output     json,
    error      text,
    failures   integer     NOT NULL CHECK (failures >= 0),
    holder     text,
    epoch      bigint      NOT NULL CHECK (epoch >= 0),
    until      timestamptz,
    deaths     integer     NOT NULL CHECK (deaths >= 0),
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, queue, id),
    CHECK ((holder IS NULL) = (until IS NULL)),
    CHECK (holder IS NULL OR state = 'due')
) WITH (fillfactor = 70);

-- Only live work is in the indexes: what is finished costs nothing.
CREATE INDEX task_due ON {schema}.task (shard, queue, due_at) WHERE state = 'due' AND holder IS NULL;
CREATE INDEX task_held ON {schema}.task (shard, until) WHERE holder IS NOT NULL;
