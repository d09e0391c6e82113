//! Bringing events to the loop in time: pages of what comes due are asked for and taken in, and a timer has the loop wake
//! when an event is due or a page is wanted.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use super::committing::Disk;
use super::event_orders::LookedUp;
use super::simulation::{Cx, HostSimulation, Timer};
use crate::sim::TimerId;
use crate::store::agenda::Wish;
use crate::store::{AskError, Page, Reader};

/// How long at most the wall clock goes unlooked at while an event is to come: it may be set forward.
const CLOCK_CHECK: Duration = Duration::from_secs(1);

/// The pause after a page could not be read.
const PAGE_RETRY: Duration = Duration::from_secs(1);

/// Timers take time.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// What the reader has read for the loop.
pub enum Answer {
    /// A page, by the number that it was asked for under.
    Page { number: u64, page: Result<Page, AskError> },
    /// An event that an operator decides about.
    LookedUp(LookedUp),
}

/// The way to what the store has of events, and what is under way.
pub struct EventPages {
    reader: Reader,
    answers: Receiver<Answer>,
    answer_sender: Sender<Answer>,
    /// The timer for the next thing to do, and when it fires.
    timer: Option<(TimerId, Duration)>,
    /// Pages that could not be read.
    unread: u64,
}

impl EventPages {
    pub fn new(reader: Reader) -> Self {
        let (answer_sender, answers) = crossbeam_channel::unbounded();
        Self { reader, answers, answer_sender, timer: None, unread: 0 }
    }

    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Where the reader's jobs put what they have read.
    pub fn answer_sender(&self) -> Sender<Answer> {
        self.answer_sender.clone()
    }
}

impl HostSimulation {
    /// Takes in what has been read, and asks for pages that are wanted.
    pub(super) fn follow_reader(&mut self, cx: &mut Cx<'_>) -> anyhow::Result<()> {
        while let Ok(answer) = self.event_pages.answers.try_recv() {
            match answer {
                Answer::Page { number, page: Ok(page) } => self.stage().events.agenda.page(number, page),
                // Nothing more is to be done with a database that is damaged.
                Answer::Page { page: Err(AskError::Store(error)), .. } if error.is_damage() => return Err(error.into()),
                Answer::Page { number, page: Err(error) } => self.page_unread(number, &error, cx),
                Answer::LookedUp(looked_up) => self.looked_up(looked_up, cx),
            }
        }
        let (now_ms, committed) = (cx.clock.wall_ms(), self.committing.committed());
        for wish in self.stage().events.agenda.take_wishes(now_ms, committed) {
            self.fulfil(wish, cx);
        }
        Ok(())
    }

    fn fulfil(&mut self, wish: Wish, cx: &Cx<'_>) {
        match wish {
            Wish::Page { number, claim } => {
                let (answers, handle) = (self.event_pages.answer_sender(), cx.handle.clone());
                let answered = move |page| {
                    // A loop that has ended needs no page.
                    let _ = answers.send(Answer::Page { number, page });
                    handle.nudge();
                };
                self.event_pages.reader.post_answering(move |store| store.claim(&claim), answered);
            }
            Wish::Release { guest, from } => self.event_pages.reader.post(move |store| {
                if let Err(error) = store.release(&guest, from) {
                    tracing::warn!("events that have no room in memory are not given back: {error}");
                }
            }),
        }
    }

    /// A page could not be read: another is asked for a little later, and the log hears of it at each doubling.
    fn page_unread(&mut self, number: u64, error: &AskError, cx: &mut Cx<'_>) {
        self.event_pages.unread += 1;
        let times = self.event_pages.unread;
        if times.is_power_of_two() {
            tracing::error!(times, "events that come due are not read: {error}");
        }
        let now = cx.clock.now();
        let later = cx.timers.register(now, self.names().events, PAGE_RETRY, None, false, Timer::PageFailed(number));
        if later.is_err() {
            self.stage().events.agenda.page_failed(number);
        }
    }

    /// Has the loop wake when there is something to do about events.
    pub(super) fn set_event_timer(&mut self, cx: &mut Cx<'_>) {
        if self.committing.disk() != Disk::Ready {
            return;
        }
        let Some(stage) = self.stage.as_deref() else { return };
        let Some(wake_ms) = stage.events.agenda.next_wake_ms(|number| self.is_ready(number)) else { return };
        let now = cx.clock.now();
        let wait = Duration::from_millis(wake_ms.saturating_sub(cx.clock.wall_ms())).clamp(SHORTEST_WAIT, CLOCK_CHECK);
        if let Some((timer, at)) = self.event_pages.timer {
            if at <= now + wait {
                return;
            }
            cx.timers.unregister(timer);
        }
        let registered = cx.timers.register(now, self.names().events, wait, None, false, Timer::Events);
        // A wheel that is full has other timers that make turns; a closed one is that of a host that stops.
        self.event_pages.timer = registered.ok().map(|timer| (timer, now + wait));
    }

    /// That timer has fired.
    pub(super) fn event_timer_fired(&mut self) {
        self.event_pages.timer = None;
    }
}
