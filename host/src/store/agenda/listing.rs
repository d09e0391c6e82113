//! Pending events of a guest in the order of their ids, page by page: what the disk has, with everything laid over it that
//! the disk does not have yet. Whoever asks brings the way to the disk, which is not gone where all is in memory.

use std::sync::Arc;

use super::{Agenda, AgendaGuest};
use crate::store::event::{Event, EventId};

impl Agenda {
    /// The first `limit` events of the guest behind `after`. `read` answers as many events as it is asked for that the
    /// disk has behind an id, or fewer where there are no more.
    pub fn list<E>(
        &self,
        guest: AgendaGuest,
        after: Option<EventId>,
        limit: usize,
        mut read: impl FnMut(Option<EventId>, usize) -> Result<Vec<Event>, E>,
    ) -> Result<Vec<Arc<Event>>, E> {
        let listed = &self.guests[guest.0];
        let is_wanted = |event: &Event| event.guest == listed.name && after.is_none_or(|after| event.id() > after);
        let noted = self.noted.values().filter_map(|noted| noted.now.as_ref());
        let unsettled = self.unsettled.pending().filter(|event| !self.noted.contains_key(&event.sequence));
        let mut found: Vec<Arc<Event>> = noted.chain(unsettled).filter(|event| is_wanted(event)).cloned().collect();

        let is_changed = |sequence: u64| self.noted.contains_key(&sequence) || self.unsettled.get(sequence).is_some();
        if listed.is_all_in_memory() && listed.parked == 0 {
            let settled = listed.window.iter().filter(|event| is_wanted(event) && !is_changed(event.sequence));
            found.extend(settled.cloned());
        } else {
            let mut from_disk = 0;
            let mut cursor = after;
            while from_disk < limit {
                let page = read(cursor, limit)?;
                let is_last = page.len() < limit;
                cursor = page.last().map(Event::id).or(cursor);
                let unchanged = page.into_iter().filter(|event| !is_changed(event.sequence)).map(Arc::new);
                let before = found.len();
                found.extend(unchanged);
                from_disk += found.len() - before;
                if is_last {
                    break;
                }
            }
        }
        found.sort_unstable_by_key(|event| event.id());
        found.truncate(limit);
        Ok(found)
    }
}
