//! The connection that reads beside the writer: pages of events, in the order in which they are run or in the order of
//! their ids. The store belongs to one host, so a claim takes nothing from anybody and leaves no mark.
//!
//! A page is put together from streams, one for each index, each of which is in order. It continues exactly behind the
//! place where the one before ended, among equal times too: events that come or go between two pages move no others. Each
//! stream is read as far as the page has room, so that the page is complete up to the first event that one has left out.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Result, Row};
use rustc_hash::FxHashSet;

use super::files::Files;
use super::guest_ids::GuestIds;
use super::{backup, connection, errors};
use crate::store::{
    Claim, Event, EventId, EventQuery, Interrupter, LATEST_MS, ListedEvent, MissedRuns, Page, Place, Repetition,
    StoreError, StoreReader,
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
                "SELECT sequence, kind, iif(length(payload) <= ?5, payload, NULL), due_ms, next_ms, interval_ms, missed, ",
                "attempts, parked, error, length(payload) ",
                concat!("FROM events INDEXED BY ", $index, " WHERE guest = ?1 AND ", $those),
                concat!(" AND ", $time, " = ?2 AND sequence > ?3 ORDER BY sequence LIMIT ?4"),
            ),
            behind: concat!(
                "SELECT sequence, kind, iif(length(payload) <= ?5, payload, NULL), due_ms, next_ms, interval_ms, missed, ",
                "attempts, parked, error, length(payload) ",
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
    limit: usize,
    max_bytes: usize,
    longest_payload: usize,
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

    fn claimed(&mut self, claim: &Claim) -> Result<Page> {
        let Some(guest) = self.guests.find(&self.connection, &claim.guest)? else { return Ok(Page::nothing()) };
        let span = Span {
            guest: (guest, &claim.guest),
            after: claim.after.map(|after| (after.next_ms, after.sequence)),
            until_ms: claim.until.next_ms,
            limit: claim.limit,
            max_bytes: claim.max_bytes,
            longest_payload: usize::MAX,
        };
        // One moment for all streams: an event goes from one to another when it fails.
        let moment = self.connection.unchecked_transaction()?;
        let mut merged = Merged::new(Event::place);
        for stream in [REGULAR, DELAYED_BY_PLACE] {
            stream.read(&moment, &span, &mut merged)?;
        }
        merged.cut(claim.limit, claim.max_bytes);
        let mut page = merged.page().into_events();
        while page.events.pop_if(|event| event.place() > claim.until).is_some() {
            page.is_last = true;
        }
        Ok(page)
    }

    fn listed(&mut self, query: &EventQuery) -> Result<Page<ListedEvent>> {
        let streams = if query.parked_only { &[PARKED][..] } else { &[REGULAR, DELAYED_BY_ID, PARKED] };
        let moment = self.connection.unchecked_transaction()?;
        let mut merged = Merged::new(Event::id);
        for (id, name) in guests(&moment, query.guest.as_ref())? {
            let span = Span {
                guest: (id, &name),
                after: query.after.map(|EventId { due_ms, sequence }| (due_ms, sequence)),
                until_ms: LATEST_MS,
                limit: query.limit,
                max_bytes: query.max_bytes,
                longest_payload: query.longest_payload,
            };
            for stream in streams {
                stream.read(&moment, &span, &mut merged)?;
            }
            // A few pages at any time, however many guests there are.
            merged.cut(query.limit, query.max_bytes);
        }
        Ok(merged.page())
    }

    fn looked_up(&self, sequence: u64) -> Result<Option<Event>> {
        let Ok(sequence) = i64::try_from(sequence) else { return Ok(None) };
        let mut statement = self.connection.prepare_cached(
            "SELECT sequence, kind, payload, due_ms, next_ms, interval_ms, missed, attempts, events.parked, error,
                    length(payload), name
             FROM events JOIN guests ON guests.id = events.guest WHERE sequence = ?1",
        )?;
        let event = |row: &Row<'_>| event(row, &row.get(11)?, row.get(1)?, payload(row)?).map(|listed| listed.event);
        statement.query_row([sequence], event).optional()
    }
}

impl StoreReader for SqliteReader {
    fn claim(&mut self, claim: &Claim) -> Result<Page, StoreError> {
        let claimed = self.claimed(claim);
        self.told(claimed)
    }

    fn release(&mut self, _guest: &str, _from: Place) -> Result<(), StoreError> {
        Ok(())
    }

    fn event(&mut self, sequence: u64) -> Result<Option<Event>, StoreError> {
        self.told(self.looked_up(sequence))
    }

    fn events(&mut self, query: &EventQuery) -> Result<Page<ListedEvent>, StoreError> {
        let listed = self.listed(query);
        self.told(listed)
    }

    fn backup(&mut self, file: &Path) -> Result<(), StoreError> {
        backup::write(&self.connection, &self.files, file)
    }

    fn interrupter(&self) -> Option<Interrupter> {
        let connection = self.connection.get_interrupt_handle();
        Some(Box::new(move || connection.interrupt()))
    }
}

/// What several streams have brought, in one order.
struct Merged<K> {
    key: fn(&Event) -> K,
    events: Vec<ListedEvent>,
    /// The first event that is known to be missing: behind it there may be others.
    missing: Option<K>,
}

impl<K: Ord + Copy> Merged<K> {
    fn new(key: fn(&Event) -> K) -> Self {
        Self { key, events: Vec::new(), missing: None }
    }

    fn is_missing(&mut self, event: &Event) {
        let key = (self.key)(event);
        self.missing = Some(self.missing.map_or(key, |first| first.min(key)));
    }

    /// Keeps the first, in order, as many as there may be, and only as far as none is missing.
    fn cut(&mut self, limit: usize, max_bytes: usize) {
        let key = self.key;
        self.events.sort_unstable_by_key(|listed| key(&listed.event));
        if let Some(missing) = self.missing {
            self.events.truncate(self.events.partition_point(|listed| key(&listed.event) < missing));
        }
        let mut room = Room::new(limit, max_bytes);
        if let Some(first) = self.events.iter().position(|listed| !room.takes(listed.event.payload.len())) {
            self.missing = Some(key(&self.events[first].event));
            self.events.truncate(first);
        }
    }

    fn page(self) -> Page<ListedEvent> {
        Page { is_last: self.missing.is_none(), events: self.events }
    }
}

/// The room of a page.
struct Room {
    limit: usize,
    max_bytes: usize,
    taken: usize,
    bytes: usize,
}

impl Room {
    fn new(limit: usize, max_bytes: usize) -> Self {
        Self { limit, max_bytes, taken: 0, bytes: 0 }
    }

    /// Whether another payload of that length is taken. The first is, however long it is.
    fn takes(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        let takes = self.taken < self.limit && (self.taken == 0 || self.bytes <= self.max_bytes);
        self.taken += 1;
        takes
    }
}

impl Stream {
    /// Adds the first events of the span, in order, and the key of the next one if there is no room for it.
    fn read<K: Ord + Copy>(&self, connection: &Connection, span: &Span<'_>, merged: &mut Merged<K>) -> Result<()> {
        let mut room = Room::new(span.limit, span.max_bytes);
        // No time is less than nothing.
        let mut after_ms = -1;
        if let Some((ms, sequence)) = span.after {
            after_ms = number(ms);
            if ms <= span.until_ms && !add(connection, self.at, [after_ms, number(sequence)], span, &mut room, merged)?
            {
                return Ok(());
            }
        }
        add(connection, self.behind, [after_ms, number(span.until_ms)], span, &mut room, merged)?;
        Ok(())
    }
}

/// Adds the events that a statement finds, as long as there is room. Answers whether these are all.
fn add<K: Ord + Copy>(
    connection: &Connection,
    sql: &str,
    [from, to]: [i64; 2],
    span: &Span<'_>,
    room: &mut Room,
    merged: &mut Merged<K>,
) -> Result<bool> {
    let mut statement = connection.prepare_cached(sql)?;
    // One more than there may be shows whether there are more.
    let limit = limit(span.limit.saturating_sub(room.taken).saturating_add(1));
    let mut rows = statement.query([span.guest.0, from, to, limit, self::limit(span.longest_payload)])?;
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
        let payload = payload(row)?;
        if !room.takes(payload.len()) {
            merged.is_missing(&event(row, span.guest.1, kind, &[])?.event);
            return Ok(false);
        }
        merged.events.push(event(row, span.guest.1, kind, payload)?);
    }
    Ok(true)
}

/// The payload, as far as it was asked for.
fn payload<'a>(row: &'a Row<'_>) -> Result<&'a [u8]> {
    Ok(row.get_ref(2)?.as_blob_or_null()?.unwrap_or_default())
}

/// The guests with their names, or the one that is asked for.
fn guests(connection: &Connection, only: Option<&Arc<str>>) -> Result<Vec<(i64, Arc<str>)>> {
    let mut statement =
        connection.prepare_cached("SELECT id, name FROM guests WHERE ?1 IS NULL OR name = ?1 ORDER BY id")?;
    let rows = statement.query_map([only], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn event(row: &Row<'_>, guest: &Arc<str>, kind: Arc<str>, payload: &[u8]) -> Result<ListedEvent> {
    let ms = |at| row.get::<_, i64>(at).map(|ms| ms as u64);
    let missed = |catches_up| if catches_up { MissedRuns::CatchUp } else { MissedRuns::Coalesce };
    let repeat = match row.get::<_, Option<i64>>(5)? {
        Some(interval_ms) => Some(Repetition { interval_ms: interval_ms as u64, missed: missed(row.get(6)?) }),
        None => None,
    };
    let event = Event {
        sequence: row.get::<_, i64>(0)? as u64,
        guest: Arc::clone(guest),
        kind,
        payload: payload.into(),
        due_ms: ms(3)?,
        next_ms: ms(4)?,
        repeat,
        attempts: row.get(7)?,
        parked: row.get(8)?,
        error: row.get(9)?,
    };
    Ok(ListedEvent { event, payload_bytes: row.get::<_, i64>(10)? as usize })
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
