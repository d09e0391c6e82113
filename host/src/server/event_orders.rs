//! What operators decide about events: cancel one, have one tried again, or drop one that is parked. The loop carries it
//! out, since it alone knows what an event is now; one that only the disk knows is looked up first, off the loop.

use std::sync::Arc;

use super::event_pages::Answer;
use super::simulation::{Cx, HostSimulation};
use crate::admin::ControlError;
use crate::sim::Reply;
use crate::store::agenda::Known;
use crate::store::{AskError, Event};

/// What is to become of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is not to run, parked or not.
    Cancel,
    /// One that has failed is to be run at once, as if it had not.
    Retry,
    /// One that is parked is not to run.
    Drop,
}

/// A decision about one event, and who waits until it is on disk.
pub struct EventOrder {
    pub sequence: u64,
    pub decision: Decision,
    pub reply: Reply<Result<(), ControlError>>,
}

/// An order for an event that was looked up.
pub struct LookedUp {
    /// The number of the look in the agenda.
    look: u64,
    order: EventOrder,
    found: Result<Option<Event>, AskError>,
}

impl HostSimulation {
    pub(super) fn event_order(&mut self, order: EventOrder, cx: &Cx<'_>) {
        match self.stage().events.agenda.find_any(order.sequence) {
            Known::Pending(event) => self.decide(order, &event, cx),
            Known::NotPending => order.refuse_missing(),
            Known::AsOnDisk => self.look_up(order, cx),
        }
    }

    fn look_up(&mut self, order: EventOrder, cx: &Cx<'_>) {
        let committed = self.committing.committed();
        let look = self.stage().events.agenda.begin_look(committed);
        let (answers, handle) = (self.event_pages.answer_sender(), cx.handle.clone());
        let sequence = order.sequence;
        let answered = move |found| {
            // A loop that has ended drops the order, and whoever waits hears of it.
            let _ = answers.send(Answer::LookedUp(LookedUp { look, order, found }));
            handle.nudge();
        };
        self.event_pages.reader().post_answering(move |store| store.event(sequence), answered);
    }

    /// The disk has answered; what has happened to the event since comes first.
    pub(super) fn looked_up(&mut self, LookedUp { look, order, found }: LookedUp, cx: &Cx<'_>) {
        let agenda = &mut self.stage().events.agenda;
        let known = agenda.find_any(order.sequence);
        agenda.end_look(look);
        match (known, found) {
            (Known::Pending(event), _) => self.decide(order, &event, cx),
            (Known::AsOnDisk, Ok(Some(event))) => self.decide(order, &Arc::new(event), cx),
            (Known::AsOnDisk, Err(error)) => {
                order.reply.send(Err(ControlError::Unavailable { reason: error.to_string() }));
            }
            (Known::NotPending, _) | (Known::AsOnDisk, Ok(None)) => order.refuse_missing(),
        }
    }

    fn decide(&mut self, order: EventOrder, event: &Arc<Event>, cx: &Cx<'_>) {
        let EventOrder { sequence, decision, reply } = order;
        let now = match decision {
            Decision::Cancel => Ok(None),
            Decision::Drop if event.parked => Ok(None),
            Decision::Drop => Err(ControlError::NotParked { sequence }),
            Decision::Retry if event.attempts > 0 => Ok(Some(event.retried(cx.clock.wall_ms()))),
            Decision::Retry => Err(ControlError::NotFailed { sequence }),
        };
        match now {
            Ok(now) => {
                let (guest, kind) = (&*event.guest, &*event.kind);
                tracing::info!(sequence, guest, kind, ?decision, "an operator has decided about an event");
                let stage = self.stage();
                stage.events.agenda.replace(event, now);
                stage.commit_events();
                let number = stage.batch.number;
                self.committing.when_on_disk(number, move || reply.send(Ok(())));
            }
            Err(error) => reply.send(Err(error)),
        }
    }
}

impl EventOrder {
    fn refuse_missing(self) {
        let sequence = self.sequence;
        self.reply.send(Err(ControlError::NoSuchEvent { sequence }));
    }
}
