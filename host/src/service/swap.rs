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

/// Services that come to the end of what they have in hand at a time. As many of them move as there are spare places; the
/// others wait for that.
const MOVING: usize = 128;

/// How long a trial may take by the clock.
const TRIAL_LIMIT: Duration = Duration::from_secs(30);

/// Why services run on as they are.
#[derive(Debug, thiserror::Error)]
pub enum ServiceSwapError {
    #[error("no guest of kind service has that name")]
    NoSuchGuest,
    #[error("the new code failed its trial: {0}")]
    Trial(CallError),
    #[error("no service took the new code: {0}")]
    NobodyMoved(String),
}

/// How a swap went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceSwap {
    /// Services that run the new code.
    pub moved: usize,
    /// Those that are still in their `init`, and move when that is over.
    pub starting: usize,
    /// Those that stay on the old code, by the reason.
    pub stayed: BTreeMap<String, usize>,
}

/// What became of one service.
enum Outcome {
    Moved,
    Starting,
    Ended,
}

impl Services {
    /// Has the services of a guest run other code from here on, as that generation. Services that are launched meanwhile
    /// run it from their beginning.
    pub async fn swap(&self, guest: &str, code: ServiceCode, generation: u64) -> Result<ServiceSwap, ServiceSwapError> {
        let guest = self.shared.guests.get(guest).ok_or(ServiceSwapError::NoSuchGuest)?;
        let version = Arc::new(Version { code, generation });
        let _turn = guest.turn.lock().await;
        self.try_out(guest, &version).await.map_err(ServiceSwapError::Trial)?;
        let before = guest.begin(&version, self.swap_options());
        let swap = self.move_all(guest, &version, true).await;
        let took_nobody = swap.moved + swap.starting == 0;
        match swap.stayed.keys().next() {
            Some(reason) if took_nobody && guest.take_back(&version, before) => {
                Err(ServiceSwapError::NobodyMoved(reason.clone()))
            }
            _ => Ok(swap),
        }
    }

    /// Has all services of a guest go back to the code that they ran before: what they run has failed in its probation.
    pub(super) fn return_all(&self, guest: &Arc<ServiceGuest>, before: Arc<Version>, returned: Returned) {
        if let Some(tell) = self.shared.on_return.get() {
            tell(guest.identity.id, returned);
        }
        let (services, guest) = (self.clone(), Arc::clone(guest));
        self.runtime().spawn(async move {
            let _turn = guest.turn.lock().await;
            let ServiceSwap { moved, stayed, .. } = services.move_all(&guest, &before, false).await;
            for (reason, count) in stayed {
                tracing::warn!(guest = guest.name(), count, "services stay on code that has failed: {reason}");
            }
            tracing::info!(guest = guest.name(), moved, generation = before.generation, "services have gone back");
        });
    }

    /// Tries other code out with the state of a service that runs. Code that was replaced a moment ago need not take over
    /// what came of that: its services know what they were.
    async fn try_out(&self, guest: &Arc<ServiceGuest>, version: &Arc<Version>) -> Result<(), CallError> {
        let state = self.shown_state(guest).await.filter(|state| !state.is_empty());
        match self.try_out_with(guest, version, state).await {
            Err(CallError::Refused(_)) if guest.is_kept_before(version.generation) => {
                self.try_out_with(guest, version, None).await
            }
            tried => tried,
        }
    }

    /// Tries other code out, on a service that nobody knows and that knows nobody.
    async fn try_out_with(
        &self,
        guest: &Arc<ServiceGuest>,
        version: &Arc<Version>,
        state: Option<Vec<u8>>,
    ) -> Result<(), CallError> {
        let _place = self.shared.spare_places.acquire().await;
        let nobody = self.for_trial();
        let label = Arc::from(format!("{} (trial)", guest.name()));
        let member = Arc::new(Member::new(nobody.new_handle(), MemberKind::Service, label, nobody.new_mailbox()));
        let who = Who { services: nobody, member, guest: Arc::clone(guest), arguments: Bytes::new() };
        let version = Arc::clone(version);
        // On a thread for services, and with the engine's clock going, so that it is stopped when it takes too long.
        let trial = self.runtime().spawn(async move {
            let _ticking = who.guest.engine.tick();
            let trial = Body::try_out(&who, version, state.as_deref());
            let limit_ms = TRIAL_LIMIT.as_millis() as u64;
            let late = CallError::Deadline { limit_ms, backtrace: String::new() };
            tokio::time::timeout(TRIAL_LIMIT, trial).await.unwrap_or(Err(late))
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
        let moving = members.map(|member| self.move_one(guest, member, to, on_probation));
        let mut outcomes = moving.buffer_unordered(MOVING);
        let mut swap = ServiceSwap::default();
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Ok(Outcome::Moved) => swap.moved += 1,
                Ok(Outcome::Starting) => swap.starting += 1,
                Ok(Outcome::Ended) => {}
                Err(reason) => *swap.stayed.entry(reason).or_default() += 1,
            }
        }
        swap
    }

    /// Moves one service.
    async fn move_one(
        &self,
        guest: &ServiceGuest,
        member: Arc<Member>,
        to: &Arc<Version>,
        on_probation: bool,
    ) -> Result<Outcome, String> {
        if !guest.is_current(to) {
            return Err("other code is there already".to_owned());
        }
        let outcome = |moved: Result<Result<(), String>, oneshot::error::RecvError>| {
            moved.map_or(Ok(Outcome::Ended), |moved| moved.map(|()| Outcome::Moved))
        };
        let (done, mut moved) = oneshot::channel();
        member.orders.give(Order::Move(Move { to: Arc::clone(to), on_probation, done }));
        if let Ok(moved) = tokio::time::timeout(self.swap_options().drain(), &mut moved).await {
            return outcome(moved);
        }
        if !member.orders.has_started() {
            // It carries its order out when it has.
            return Ok(Outcome::Starting);
        }
        member.orders.hurry();
        let limit = self.options().deadline() + GRACE;
        if let Ok(moved) = tokio::time::timeout(limit, &mut moved).await {
            return outcome(moved);
        }
        if member.orders.withdraw() {
            return Err("it did not come to the end of what it has in hand".to_owned());
        }
        // It is about to move, or was just then.
        outcome(moved.await)
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
