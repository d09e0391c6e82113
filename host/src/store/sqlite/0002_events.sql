-- Pending events. Most are regular: not parked, and to be run when they are due. For those the order of running is the
-- order of the ids, and one index serves claims and listings alike, so that scheduling an event costs the row and one
-- entry. The few others, which have failed, are in indices of their own. Each index ends in the sequence by itself.

CREATE TABLE events (
    sequence    INTEGER PRIMARY KEY,
    -- guests.id
    guest       INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    payload     BLOB NOT NULL,
    due_ms      INTEGER NOT NULL,
    next_ms     INTEGER NOT NULL,
    -- Of repeating events: the interval, and what happens to missed runs (0: one stands for all, 1: they catch up).
    interval_ms INTEGER,
    missed      INTEGER,
    attempts    INTEGER NOT NULL,
    parked      INTEGER NOT NULL,
    error       TEXT
);

CREATE INDEX events_regular ON events (guest, due_ms) WHERE parked = 0 AND next_ms = due_ms;
CREATE INDEX events_delayed_by_place ON events (guest, next_ms) WHERE parked = 0 AND next_ms <> due_ms;
CREATE INDEX events_delayed_by_id ON events (guest, due_ms) WHERE parked = 0 AND next_ms <> due_ms;
CREATE INDEX events_parked ON events (guest, due_ms) WHERE parked = 1;

-- How many events of a guest are pending, the parked ones among them: counted by the host, so that nobody counts rows.
ALTER TABLE guests ADD COLUMN pending INTEGER NOT NULL DEFAULT 0;
ALTER TABLE guests ADD COLUMN parked INTEGER NOT NULL DEFAULT 0;
