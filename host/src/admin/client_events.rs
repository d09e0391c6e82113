//! Listing events through the control port, page by page: [`ControlClient::events`] gives an [`EventPages`], which keeps
//! only one page at a time, however many events are pending.

use serde_json::Value;

use super::routes::MAX_PAGE;
use super::{ControlClient, ControlClientError};

/// Which events are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only this guest's.
    pub guest: Option<String>,
    /// Only parked ones.
    pub parked_only: bool,
}

/// The pages of a list of events. The first may be empty; an error is the last.
#[derive(Debug)]
pub struct EventPages<'a> {
    client: &'a ControlClient,
    filter: EventFilter,
    /// How many events are still wanted; `None` for all there are.
    wanted: Option<u64>,
    next: Next,
}

/// What the next request asks for.
#[derive(Debug)]
enum Next {
    First,
    After(String),
    /// Nothing: there are no more, or an error came instead of them.
    End,
}

impl<'a> EventPages<'a> {
    pub(super) fn new(client: &'a ControlClient, filter: EventFilter, limit: Option<u64>) -> Self {
        Self { client, filter, wanted: limit, next: Next::First }
    }

    /// Whether there are more events than were given so far.
    pub fn has_more(&self) -> bool {
        matches!(self.next, Next::After(_))
    }

    fn path(&self, after: Option<&str>) -> String {
        let page = self.wanted.map_or(MAX_PAGE, |wanted| usize::try_from(wanted).unwrap_or(MAX_PAGE).min(MAX_PAGE));
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("limit", &page.to_string());
        if let Some(guest) = &self.filter.guest {
            query.append_pair("guest", guest);
        }
        if self.filter.parked_only {
            query.append_pair("parked", "true");
        }
        if let Some(after) = after {
            query.append_pair("after", after);
        }
        format!("/v1/events?{}", query.finish())
    }

    fn page(&mut self, path: &str) -> Result<Vec<Value>, ControlClientError> {
        let mut answer = self.client.get(path)?;
        let Value::Array(events) = answer["events"].take() else {
            return Err(self.client.no_answer("its answer is no page of events".to_owned()));
        };
        if let Some(wanted) = &mut self.wanted {
            *wanted = wanted.saturating_sub(events.len() as u64);
        }
        self.next = match answer["next"].take() {
            Value::String(next) => Next::After(next),
            _ => Next::End,
        };
        Ok(events)
    }
}

impl Iterator for EventPages<'_> {
    type Item = Result<Vec<Value>, ControlClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.wanted == Some(0) {
            return None;
        }
        let after = match &self.next {
            Next::End => return None,
            Next::First => None,
            Next::After(after) => Some(after.as_str()),
        };
        let path = self.path(after);
        // Unless the answer says how it goes on, it does not.
        self.next = Next::End;
        Some(self.page(&path))
    }
}
