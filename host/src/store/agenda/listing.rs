//! Pending events of a guest in the order of their ids, page by page: what the disk has, with everything laid over it that
//! the disk does not have yet. Whoever asks brings the way to the disk, which is not gone where all is in memory.

use std::sync::Arc;

use super::{Agenda, AgendaGuest};
use crate::store::backend::Page;
use crate::store::event::{Event, EventId};

impl Agenda {
    /// The first events of the guest behind `after`: at most `limit`, and of at most `max_bytes` of payload together unless
    /// the first alone is longer. A short answer does not tell that there are no more; an empty one does. `read` answers a
    /// page of at most so many events that the disk has behind an id.
    pub fn list<E>(
        &self,
        guest: AgendaGuest,
        after: Option<EventId>,
        limit: usize,
        max_bytes: usize,
        mut read: impl FnMut(Option<EventId>, usize) -> Result<Page, E>,
    ) -> Result<Vec<Arc<Event>>, E> {
        let listed = &self.guests[guest.0];
        let is_wanted = |event: &Event| event.guest == listed.name && after.is_none_or(|after| event.id() > after);
        let noted = self.noted.values().filter_map(|noted| noted.now.as_ref());
        let unsettled = self.unsettled.pending().map(|(_, event)| event);
        let unsettled = unsettled.filter(|event| !self.noted.contains_key(&event.sequence));
        let mut found: Vec<Arc<Event>> = noted.chain(unsettled).filter(|event| is_wanted(event)).cloned().collect();

        let is_changed = |sequence: u64| self.changed(sequence).is_some();
        if listed.is_all_in_memory() && listed.parked == 0 {
            let settled = listed.window.iter().filter(|event| is_wanted(event) && !is_changed(event.sequence));
            found.extend(settled.cloned());
        } else {
            let (mut from_disk, mut bytes) = (0, 0);
            let mut cursor = after;
            while from_disk < limit && (from_disk == 0 || bytes < max_bytes) {
                let page = read(cursor, limit)?;
                let before = cursor;
                cursor = page.events.last().map(Event::id).or(cursor);
                for event in page.events.into_iter().filter(|event| !is_changed(event.sequence)) {
                    from_disk += 1;
                    bytes += event.payload.len();
                    found.push(Arc::new(event));
                }
                // A page that leads no further would be read again and again.
                if page.is_last || cursor == before {
                    cursor = None;
                    break;
                }
            }
            // Behind the last that was read there may be others on disk.
            found.retain(|event| cursor.is_none_or(|read_until| event.id() <= read_until));
        }
        found.sort_unstable_by_key(|event| event.id());
        let mut bytes = 0;
        let fitting = found.iter().enumerate().take_while(|(at, event)| {
            bytes += event.payload.len();
            *at < limit && (*at == 0 || bytes <= max_bytes)
        });
        let fitting = fitting.count();
        found.truncate(fitting);
        Ok(found)
    }
}
