//! The connection that reads beside the writer: pages of events, in the order in which they are run or in the order of
//! their ids. The store belongs to one host, so a claim takes nothing from anybody and leaves no mark.
//!
//! A page is put together from streams, one for each index, each of which is in order. It continues exactly behind the
//! place where the one before ended, among equal times too: events that come or go between two pages move no others.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Result, Row};
use rustc_hash::FxHashSet;

use super::files::Files;
use super::guest_ids::GuestIds;
use super::{backup, connection, errors};
use crate::store::{
    Claim, Event, EventId, EventQuery, LATEST_MS, MissedRuns, Place, Repetition, StoreError, StoreReader,
};

/// Reads a database.
#[derive(Debug)]
pub struct SqliteReader {
    connection: Connection,
    files: Files,
    guests: GuestIds,
}

/// Part of a guest's events that one index keeps in order: those at one time behind a sequence, and those behind a time
/// up to another.
struct Stream {
    at: &'static str,
    behind: &'static str,
}

macro_rules! stream {
    ($index:literal, $those:literal, $time:literal) => {
        Stream {
            at: concat!(
                "SELECT sequence, kind, payload, due_ms, next_ms, interval_ms, missed, attempts, parked, error ",
                concat!("FROM events INDEXED BY ", $index, " WHERE guest = ?1 AND ", $those),
                concat!(" AND ", $time, " = ?2 AND sequence > ?3 ORDER BY sequence LIMIT ?4"),
            ),
            behind: concat!(
                "SELECT sequence, kind, payload, due_ms, next_ms, interval_ms, missed, attempts, parked, error ",
                concat!("FROM events INDEXED BY ", $index, " WHERE guest = ?1 AND ", $those),
                concat!(" AND ", $time, " > ?2 AND ", $time, " <= ?3 ORDER BY ", $time, ", sequence LIMIT ?4"),
            ),
        }
    };
}

/// In the order of ids and of running alike.
const REGULAR: Stream = stream!("events_regular", "parked = 0 AND next_ms = due_ms", "due_ms");
/// In the order of running.
const DELAYED_BY_PLACE: Stream = stream!("events_delayed_by_place", "parked = 0 AND next_ms <> due_ms", "next_ms");
/// In the order of ids.
const DELAYED_BY_ID: Stream = stream!("events_delayed_by_id", "parked = 0 AND next_ms <> due_ms", "due_ms");
/// In the order of ids.
const PARKED: Stream = stream!("events_parked", "parked = 1", "due_ms");

/// A piece of a stream.
struct Span<'a> {
    guest: (i64, &'a Arc<str>),
    /// The time and sequence behind which it begins.
    after: Option<(u64, u64)>,
    until_ms: u64,
    limit: i64,
}

impl SqliteReader {
    /// Opens a database that is in use.
    pub fn open(files: &Files) -> Result<Self, StoreError> {
        let connection =
            connection::reading(&files.database).map_err(|error| errors::opening(&files.database, &error))?;
        Ok(Self { connection, files: files.clone(), guests: GuestIds::default() })
    }

    fn told<T>(&self, read: Result<T>) -> Result<T, StoreError> {
        read.map_err(|error| errors::reading(&self.files.database, &error))
    }

    fn claimed(&mut self, claim: &Claim) -> Result<Vec<Event>> {
        let Some(guest) = self.guests.find(&self.connection, &claim.guest)? else { return Ok(Vec::new()) };
        let span = Span {
            guest: (guest, &claim.guest),
            after: claim.after.map(|after| (after.next_ms, after.sequence)),
            until_ms: claim.until.next_ms,
            limit: limit(claim.limit),
        };
        // One moment for all streams: an event goes from one to another when it fails.
        let moment = self.connection.unchecked_transaction()?;
        let mut events = Vec::new();
        for stream in [REGULAR, DELAYED_BY_PLACE] {
            stream.read(&moment, &span, &mut events)?;
        }
        events.sort_unstable_by_key(Event::place);
        events.truncate(claim.limit);
        while events.last().is_some_and(|event| event.place() > claim.until) {
            events.pop();
        }
        Ok(events)
    }

    fn listed(&mut self, query: &EventQuery) -> Result<Vec<Event>> {
        let streams = if query.parked_only { &[PARKED][..] } else { &[REGULAR, DELAYED_BY_ID, PARKED] };
        let moment = self.connection.unchecked_transaction()?;
        let mut events = Vec::new();
        for (id, name) in guests(&moment, query.guest.as_ref())? {
            let span = Span {
                guest: (id, &name),
                after: query.after.map(|EventId { due_ms, sequence }| (due_ms, sequence)),
                until_ms: LATEST_MS,
                limit: limit(query.limit),
            };
            for stream in streams {
                stream.read(&moment, &span, &mut events)?;
            }
            // No more than two pages at any time, however many guests there are.
            events.sort_unstable_by_key(Event::id);
            events.truncate(query.limit);
        }
        Ok(events)
    }

    fn looked_up(&self, sequence: u64) -> Result<Option<Event>> {
        let Ok(sequence) = i64::try_from(sequence) else { return Ok(None) };
        let mut statement = self.connection.prepare_cached(
            "SELECT sequence, kind, payload, due_ms, next_ms, interval_ms, missed, attempts, events.parked, error, name
             FROM events JOIN guests ON guests.id = events.guest WHERE sequence = ?1",
        )?;
        let event = |row: &Row<'_>| event(row, &row.get(10)?, row.get(1)?);
        statement.query_row([sequence], event).optional()
    }
}

impl StoreReader for SqliteReader {
    fn claim(&mut self, claim: &Claim) -> Result<Vec<Event>, StoreError> {
        let claimed = self.claimed(claim);
        self.told(claimed)
    }

    fn release(&mut self, _guest: &str, _from: Place) -> Result<(), StoreError> {
        Ok(())
    }

    fn event(&mut self, sequence: u64) -> Result<Option<Event>, StoreError> {
        self.told(self.looked_up(sequence))
    }

    fn events(&mut self, query: &EventQuery) -> Result<Vec<Event>, StoreError> {
        let listed = self.listed(query);
        self.told(listed)
    }

    fn backup(&mut self, file: &Path) -> Result<(), StoreError> {
        backup::write(&self.connection, file)
    }
}

impl Stream {
    /// Adds the first events of the span to `events`, in order.
    fn read(&self, connection: &Connection, span: &Span<'_>, events: &mut Vec<Event>) -> Result<()> {
        let before = events.len();
        // No time is less than nothing.
        let mut after_ms = -1;
        if let Some((ms, sequence)) = span.after {
            after_ms = number(ms);
            if ms <= span.until_ms {
                add(connection, self.at, [span.guest.0, after_ms, number(sequence), span.limit], span, events)?;
            }
        }
        let left = span.limit - (events.len() - before) as i64;
        if left > 0 {
            add(connection, self.behind, [span.guest.0, after_ms, number(span.until_ms), left], span, events)?;
        }
        Ok(())
    }
}

fn add(
    connection: &Connection,
    sql: &str,
    parameters: [i64; 4],
    span: &Span<'_>,
    events: &mut Vec<Event>,
) -> Result<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    // A page is mostly of few kinds, which then share their names.
    let mut kinds: FxHashSet<Arc<str>> = FxHashSet::default();
    while let Some(row) = rows.next()? {
        let kind = row.get_ref(1)?.as_str()?;
        let kind = match kinds.get(kind) {
            Some(kind) => Arc::clone(kind),
            None => {
                let kind: Arc<str> = kind.into();
                kinds.insert(Arc::clone(&kind));
                kind
            }
        };
        events.push(event(row, span.guest.1, kind)?);
    }
    Ok(())
}

/// The guests with their names, or the one that is asked for.
fn guests(connection: &Connection, only: Option<&Arc<str>>) -> Result<Vec<(i64, Arc<str>)>> {
    let mut statement =
        connection.prepare_cached("SELECT id, name FROM guests WHERE ?1 IS NULL OR name = ?1 ORDER BY id")?;
    let rows = statement.query_map([only], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn event(row: &Row<'_>, guest: &Arc<str>, kind: Arc<str>) -> Result<Event> {
    let ms = |at| row.get::<_, i64>(at).map(|ms| ms as u64);
    let missed = |catches_up| if catches_up { MissedRuns::CatchUp } else { MissedRuns::Coalesce };
    let repeat = match row.get::<_, Option<i64>>(5)? {
        Some(interval_ms) => Some(Repetition { interval_ms: interval_ms as u64, missed: missed(row.get(6)?) }),
        None => None,
    };
    Ok(Event {
        sequence: row.get::<_, i64>(0)? as u64,
        guest: Arc::clone(guest),
        kind,
        payload: row.get_ref(2)?.as_blob()?.into(),
        due_ms: ms(3)?,
        next_ms: ms(4)?,
        repeat,
        attempts: row.get(7)?,
        parked: row.get(8)?,
        error: row.get(9)?,
    })
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
