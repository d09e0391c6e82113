//! Swaps of services: new code is tried out with the state of one that runs, and then all services of the guest move to
//! it, some at a time, each between two of its messages. Their handles, names and mailboxes stay.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::oneshot;

use super::body::{Body, Who};
use super::code::ServiceCode;
use super::engine::SPARE_PLACES;
use super::handle::Handles;
use super::member::{Member, MemberKind};
use super::orders::{Move, Order};
use super::service_guest::{ServiceGuest, Version};
use super::services::Services;
use crate::guest::{CallError, Returned, SwapOptions};

/// How long a service that was hurried has until it must have come to the end of what it has in hand, beyond the time that
/// a message may compute.
const GRACE: Duration = Duration::from_secs(2);

/// How long a service is waited for that is to show its state for the trial. One that is too busy is left alone.
const SHOW_LIMIT: Duration = Duration::from_millis(500);

/// Services that move at a time: each needs a second place in the pool meanwhile.
const MOVING: usize = SPARE_PLACES as usize / 2;

/// Why services run on as they are.
#[derive(Debug, thiserror::Error)]
pub enum ServiceSwapError {
    #[error("no guest of kind service has that name")]
    NoSuchGuest,
    #[error("the new code failed its trial: {0}")]
    Trial(CallError),
}

/// How a swap went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceSwap {
    /// Services that run the new code.
    pub moved: usize,
    /// Those that stay on the old code, by the reason.
    pub stayed: BTreeMap<String, usize>,
}

impl Services {
    /// Has the services of a guest run other code from here on, as that generation. Services that are launched meanwhile
    /// run it from their beginning.
    pub async fn swap(&self, guest: &str, code: ServiceCode, generation: u64) -> Result<ServiceSwap, ServiceSwapError> {
        let guest = self.shared.guests.get(guest).ok_or(ServiceSwapError::NoSuchGuest)?;
        let version = Arc::new(Version { code, generation });
        self.try_out(guest, &version).await.map_err(ServiceSwapError::Trial)?;
        guest.begin(&version, self.swap_options());
        Ok(self.move_all(guest, &version, true).await)
    }

    /// Has all services of a guest go back to the code that they ran before: what they run has failed in its probation.
    pub(super) fn return_all(&self, guest: &Arc<ServiceGuest>, before: Arc<Version>, returned: Returned) {
        if let Some(tell) = self.shared.on_return.get() {
            tell(guest.identity.id, returned);
        }
        let (services, guest) = (self.clone(), Arc::clone(guest));
        self.runtime().spawn(async move {
            let ServiceSwap { moved, stayed } = services.move_all(&guest, &before, false).await;
            for (reason, count) in stayed {
                tracing::warn!(guest = guest.name(), count, "services stay on code that has failed: {reason}");
            }
            tracing::info!(guest = guest.name(), moved, generation = before.generation, "services have gone back");
        });
    }

    /// Tries other code out, on a service that nobody knows and that knows nobody.
    async fn try_out(&self, guest: &Arc<ServiceGuest>, version: &Arc<Version>) -> Result<(), CallError> {
        let state = self.shown_state(guest).await.filter(|state| !state.is_empty());
        let nobody = Services::new(
            self.options().clone(),
            self.max_payload_bytes(),
            Vec::new(),
            Handles::beginning_at(0),
            self.runtime().clone(),
        );
        let label = Arc::from(format!("{} (trial)", guest.name()));
        let member = Arc::new(Member::new(nobody.new_handle(), MemberKind::Service, label, nobody.new_mailbox()));
        let who = Who { services: nobody, member, guest: Arc::clone(guest), arguments: Bytes::new() };
        let version = Arc::clone(version);
        // On a thread for services, and with the engine's clock going, so that it is stopped when it takes too long.
        let trial = self.runtime().spawn(async move {
            let _ticking = who.guest.engine.tick();
            Body::try_out(&who, version, state.as_deref()).await
        });
        trial
            .await
            .unwrap_or_else(|error| Err(CallError::Trapped { message: error.to_string(), backtrace: String::new() }))
    }

    /// The state of a service of that guest, one that has nothing in hand if there is any.
    async fn shown_state(&self, guest: &ServiceGuest) -> Option<Vec<u8>> {
        let members = self.members_of(guest);
        let in_hand = |member: &Member| member.in_hand.load(Ordering::Relaxed);
        let member = members.iter().min_by_key(|member| in_hand(member))?;
        let (show, shown) = oneshot::channel();
        member.orders.give(Order::Show(show));
        let shown = tokio::time::timeout(SHOW_LIMIT, shown).await;
        if shown.is_err() {
            member.orders.withdraw();
        }
        shown.ok()?.ok()?.ok()
    }

    async fn move_all(&self, guest: &ServiceGuest, to: &Arc<Version>, on_probation: bool) -> ServiceSwap {
        let members = stream::iter(self.members_of(guest));
        let moving = members.map(|member| self.move_one(member, to, on_probation));
        let mut outcomes = moving.buffer_unordered(MOVING);
        let mut swap = ServiceSwap::default();
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Ok(true) => swap.moved += 1,
                // It has ended meanwhile.
                Ok(false) => {}
                Err(reason) => *swap.stayed.entry(reason).or_default() += 1,
            }
        }
        swap
    }

    /// Moves one service; false where it has ended.
    async fn move_one(&self, member: Arc<Member>, to: &Arc<Version>, on_probation: bool) -> Result<bool, String> {
        let (done, mut moved) = oneshot::channel();
        member.orders.give(Order::Move(Move { to: Arc::clone(to), on_probation, done }));
        if let Ok(moved) = tokio::time::timeout(self.swap_options().drain(), &mut moved).await {
            return moved.map_or(Ok(false), |moved| moved.map(|()| true));
        }
        member.orders.hurry();
        let limit = self.options().deadline() + GRACE;
        let moved = tokio::time::timeout(limit, &mut moved).await;
        member.orders.calm();
        match moved {
            Ok(moved) => moved.map_or(Ok(false), |moved| moved.map(|()| true)),
            Err(_) => {
                member.orders.withdraw();
                Err("it did not come to the end of what it has in hand".to_owned())
            }
        }
    }

    fn members_of(&self, guest: &ServiceGuest) -> Vec<Arc<Member>> {
        let all = self.shared.directory.iter();
        let of_guest = all.filter(|member| member.kind == MemberKind::Service && *member.label == *guest.name());
        of_guest.map(|member| Arc::clone(&member)).collect()
    }

    /// The options of swaps.
    pub(super) fn swap_options(&self) -> &SwapOptions {
        self.shared.swap_options.get_or_init(SwapOptions::default)
    }
}
