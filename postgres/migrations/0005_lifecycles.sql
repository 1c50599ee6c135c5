-- Lifecycles: entities that are held in a claim, the effects of what is done
-- under it, the configs, and who was refused.
-- min_reader: 5

-- phase: free; held, by a holder, until it runs out; due, to be resumed by
-- whoever has its handler; uncertain, until a person says what happened. What an
-- operation was stays on the row until the next: so who ends it again is told the
-- same. begun counts the effects that may have happened. manual is a claim that
-- nobody resumes. side is the row beside one in a table of the user's own, which
-- has the status that was last seen there.
ALTER TABLE {schema}.entity
    ADD COLUMN phase      text COLLATE "C" NOT NULL DEFAULT 'free' CHECK (phase IN ('free', 'held', 'due', 'uncertain')),
    ADD COLUMN operation  text COLLATE "C",
    ADD COLUMN step       text COLLATE "C",
    ADD COLUMN requester  text COLLATE "C",
    ADD COLUMN revert     text COLLATE "C",
    ADD COLUMN input      json,
    ADD COLUMN manual     boolean NOT NULL DEFAULT false,
    ADD COLUMN side       boolean NOT NULL DEFAULT false,
    ADD COLUMN holder     text,
    ADD COLUMN epoch      bigint NOT NULL DEFAULT 0 CHECK (epoch >= 0),
    ADD COLUMN until      timestamptz,
    ADD COLUMN claimed_at timestamptz,
    ADD COLUMN due_at     timestamptz,
    ADD COLUMN begun      integer NOT NULL DEFAULT 0 CHECK (begun >= 0),
    ADD COLUMN failures   integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    ADD COLUMN deaths     integer NOT NULL DEFAULT 0 CHECK (deaths >= 0),
    ADD COLUMN error      text,
    ADD COLUMN outcome    text COLLATE "C",
    ADD CHECK ((holder IS NULL) = (until IS NULL)),
    ADD CHECK ((holder IS NOT NULL) = (phase = 'held')),
    ADD CHECK (phase = 'free' OR (operation IS NOT NULL AND revert IS NOT NULL)),
    ADD CHECK (phase <> 'due' OR due_at IS NOT NULL);
CREATE INDEX entity_held ON {schema}.entity (shard, until) WHERE holder IS NOT NULL;
CREATE INDEX entity_due ON {schema}.entity (shard, lifecycle, due_at) WHERE phase = 'due';
CREATE UNIQUE INDEX entity_open ON {schema}.entity (shard, workspace, operation) WHERE phase <> 'free';

-- An effect, known by its operation, its name and the how-manieth of that name it
-- is. epoch is that of the attempt which began it last.
CREATE TABLE {schema}.effect (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    operation text        COLLATE "C" NOT NULL,
    name      text        COLLATE "C" NOT NULL,
    ordinal   integer     NOT NULL CHECK (ordinal >= 0),
    epoch     bigint      NOT NULL,
    state     text        COLLATE "C" NOT NULL CHECK (state IN ('begun', 'done', 'notDone')),
    policy    text        COLLATE "C" NOT NULL CHECK (policy IN ('retry', 'probe', 'hold')),
    result    json,
    begun_at  timestamptz NOT NULL,
    ended_at  timestamptz,
    PRIMARY KEY (shard, workspace, operation, name, ordinal),
    CHECK ((state = 'begun') = (ended_at IS NULL))
);

-- A lifecycle's config, as it is in force. While a change is looked into, wanted
-- is what is to come, and both are obeyed.
CREATE TABLE {schema}.lifecycle (
    shard      smallint    NOT NULL,
    workspace  text        COLLATE "C" NOT NULL,
    name       text        COLLATE "C" NOT NULL,
    revision   bigint      NOT NULL CHECK (revision > 0),
    statuses   json        NOT NULL,
    config     text        NOT NULL,
    wanted     json,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, name)
);

-- Who tried a step and was refused, as far as it could be noted.
CREATE TABLE {schema}.attempt (
    shard     smallint    NOT NULL,
    workspace text        COLLATE "C" NOT NULL,
    lifecycle text        COLLATE "C" NOT NULL,
    entity    text        COLLATE "C" NOT NULL,
    id        uuid        NOT NULL,
    step      text        COLLATE "C" NOT NULL,
    requester text        COLLATE "C" NOT NULL,
    code      text        COLLATE "C" NOT NULL,
    detail    json        NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (shard, workspace, lifecycle, entity, id)
);
CREATE INDEX attempt_at ON {schema}.attempt (shard, at);
