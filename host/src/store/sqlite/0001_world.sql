-- The world and what is kept of guests. Guests, thinkers and key-value spaces are all named by rows of `guests`; the
-- writer sees to it that they exist, so that no row pays for a check of its references.

CREATE TABLE guests (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    -- 1 once its first init in this world has succeeded.
    initialised INTEGER NOT NULL DEFAULT 0,
    -- What it saved last.
    state       BLOB
);

CREATE TABLE entities (
    id      INTEGER PRIMARY KEY,
    kind    INTEGER NOT NULL,
    map     INTEGER NOT NULL,
    x       INTEGER NOT NULL,
    y       INTEGER NOT NULL,
    -- guests.id
    thinker INTEGER
);

CREATE TABLE entity_data (
    entity INTEGER NOT NULL,
    name   TEXT NOT NULL,
    value  BLOB NOT NULL,
    PRIMARY KEY (entity, name)
) WITHOUT ROWID;

CREATE TABLE kv (
    -- guests.id
    guest INTEGER NOT NULL,
    key   TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (guest, key)
) WITHOUT ROWID;

-- next_entity_id, next_sequence: what comes next. commits: transactions so far. run: a random number, a new one in each
-- run and in each backup, by which a log is known to belong to this file; previous_run: the one before.
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('commits', 0), ('run', random());
