//! What operators ask of the running host, carried to where it is known: the control port calls it, the loop and the
//! store answer. It waits for them and decides nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::board::StatusReader;
use super::event_orders::{Decision, EventOrder};
use super::simulation::Item;
use super::swapper::Swapper;
use crate::admin::{ControlError, HostControl, LostMessages, ServiceList};
use crate::guest::{Generation, Swapped};
use crate::service::{Handle, Member, MemberKind, Services};
use crate::sim::{LoopHandle, Reply};
use crate::store::{Event, EventQuery, ListedEvent, Page, Reader, Writer};

/// Answers the control port.
pub(super) struct Control {
    pub(super) status: StatusReader,
    pub(super) handle: LoopHandle<Item>,
    pub(super) services: Services,
    pub(super) swapper: Swapper,
    pub(super) reader: Reader,
    pub(super) writer: Writer,
}

/// How often a save that takes long looks whether the disk takes nothing.
const LOOK_FOR_TROUBLE_EVERY: Duration = Duration::from_millis(250);

impl Control {
    /// Posts an item to the loop and waits for its answer.
    async fn ask<R>(&self, item: impl FnOnce(Reply<R>) -> Item) -> Result<R, ControlError> {
        let answer = self.handle.post_with_reply(item).await;
        answer.map_err(|error| ControlError::Unavailable { reason: error.to_string() })
    }

    async fn order(&self, sequence: u64, decision: Decision) -> Result<(), ControlError> {
        self.refuse_in_trouble(|reason| ControlError::Unavailable { reason })?;
        self.ask(|reply| Item::Event(EventOrder { sequence, decision, reply })).await?
    }

    /// What has to be on disk before it is answered is not begun while the disk takes nothing.
    fn refuse_in_trouble(&self, error: impl FnOnce(String) -> ControlError) -> Result<(), ControlError> {
        self.writer.trouble().map_or(Ok(()), |trouble| Err(error(trouble.text)))
    }
}

impl HostControl for Control {
    async fn status(&self) -> Result<Value, ControlError> {
        serde_json::to_value(self.status.read()).map_err(unavailable)
    }

    async fn cancel_task(&self, task: u64) -> Result<(), ControlError> {
        let was_running = self.ask(|reply| Item::CancelTask { task, reply }).await?;
        if was_running { Ok(()) } else { Err(ControlError::NoSuchTask { task }) }
    }

    async fn services(&self) -> Result<ServiceList, ControlError> {
        Ok(ServiceList { list: self.services.list(), services: self.services.snapshot() })
    }

    async fn dead_letters(&self) -> Result<LostMessages, ControlError> {
        let last = self.services.dead_letters();
        Ok(LostMessages { count: self.services.snapshot().dead_letters, last })
    }

    async fn kill_service(&self, service: String) -> Result<u64, ControlError> {
        let member = service_named(&self.services, &service)?;
        if !self.services.kill(member.handle) {
            return Err(ControlError::NoSuchService { service });
        }
        tracing::info!(guest = &*member.label, handle = member.handle.0, "an operator has killed a service");
        Ok(member.handle.0)
    }

    async fn swap(&self, guest: String, file: PathBuf) -> Result<Swapped, ControlError> {
        self.swapper.swap(guest, file).await
    }

    async fn swap_back(&self, guest: String) -> Result<Swapped, ControlError> {
        self.swapper.swap_back(guest).await
    }

    async fn history(&self, guest: String) -> Result<Vec<Generation>, ControlError> {
        self.swapper.history(&guest)
    }

    async fn events(&self, query: EventQuery) -> Result<Page<ListedEvent>, ControlError> {
        self.reader.ask(move |store| store.events(&query)).await.map_err(unavailable)
    }

    async fn event(&self, sequence: u64) -> Result<Event, ControlError> {
        let found = self.reader.ask(move |store| store.event(sequence)).await.map_err(unavailable)?;
        found.ok_or(ControlError::NoSuchEvent { sequence })
    }

    async fn cancel_event(&self, sequence: u64) -> Result<(), ControlError> {
        self.order(sequence, Decision::Cancel).await
    }

    async fn retry_event(&self, sequence: u64) -> Result<(), ControlError> {
        self.order(sequence, Decision::Retry).await
    }

    async fn drop_event(&self, sequence: u64) -> Result<(), ControlError> {
        self.order(sequence, Decision::Drop).await
    }

    async fn save(&self) -> Result<(), ControlError> {
        let mut saved = std::pin::pin!(self.ask(|reply| Item::Checkpoint { reply }));
        loop {
            self.refuse_in_trouble(|reason| ControlError::SaveFailed { reason })?;
            // It may be this save that finds the disk full.
            match tokio::time::timeout(LOOK_FOR_TROUBLE_EVERY, &mut saved).await {
                Ok(saved) => return saved,
                Err(_) => continue,
            }
        }
    }

    /// What is not kept with every handler is saved first, so that the copy has it. Where the disk takes nothing the copy
    /// is all the more wanted, and made of what there is.
    async fn backup(&self, file: PathBuf) -> Result<(), ControlError> {
        if self.save().await.is_err() {
            tracing::warn!(file = %file.display(), "a backup is made without what was not on disk yet");
        }
        let copied = self.reader.ask_aside(move |store| store.backup(&file)).await;
        copied.map_err(unavailable)?.map_err(|error| ControlError::BackupRefused { reason: error.to_string() })
    }
}

/// The service with that handle, or else with that name: a name may look like the handle of somebody else.
fn service_named(services: &Services, text: &str) -> Result<Arc<Member>, ControlError> {
    let by_handle = text.parse().ok().and_then(|handle| services.member(Handle(handle)));
    let by_name = || services.query(text).and_then(|handle| services.member(handle));
    let Some(member) = by_handle.or_else(by_name) else {
        return Err(ControlError::NoSuchService { service: text.to_owned() });
    };
    match member.kind {
        MemberKind::Service => Ok(member),
        kind => Err(ControlError::NotAService { service: text.to_owned(), kind }),
    }
}

fn unavailable(error: impl ToString) -> ControlError {
    ControlError::Unavailable { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Handles, ServiceOptions};

    /// What a member is, as the refusal to kill it tells.
    fn kind_of(services: &Services, text: &str) -> Option<MemberKind> {
        match service_named(services, text).map(|member| member.handle).unwrap_err() {
            ControlError::NotAService { service, kind } if service == text => Some(kind),
            ControlError::NoSuchService { service } if service == text => None,
            other => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn a_member_is_found_by_handle_before_name_and_only_services_are_killed() {
        let runtime = tokio::runtime::Handle::current();
        let services = Services::new(ServiceOptions::default(), 1024, Vec::new(), Handles::beginning_at(0), runtime);
        let game = services.add_member(MemberKind::Game, "rules");
        let native = services.add_member(MemberKind::Native, "logger");
        services.register(&game.handle.to_string(), native.handle).unwrap();
        services.register("007", native.handle).unwrap();
        for (text, kind) in [
            ("rules", Some(MemberKind::Game)),
            ("logger", Some(MemberKind::Native)),
            (&*game.handle.to_string(), Some(MemberKind::Game)),
            ("007", Some(MemberKind::Native)),
            ("rule", None),
            ("0", None),
            ("-1", None),
        ] {
            assert_eq!(kind_of(&services, text), kind, "{text}");
        }
    }
}
