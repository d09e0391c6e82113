//! A plain service: the trait that a `service` guest implements which handles each message from its beginning to its
//! end, and the macro that makes it one.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::bulk::{Head, Refusal as RefusedInBulk};
use crate::bindings::bulk_service as exports;
use crate::bindings::services::Message as ContractMessage;
use crate::instance::{self, Hosted};
use crate::message::Message;
use crate::{Refusal, actor, carried, clock, objects};

/// An actor outside the loop, with a handle and a mailbox. It handles one message after another; while it waits for
/// somebody's answer with [`calls`](crate::calls), its own mailbox waits too. This is the cheap kind of service: messages
/// that want no answer are handed over many at a time, without a line of the author's.
///
/// A service is launched by its guest's name, by others ([`services::launch`](crate::services::launch)) or by the host
/// where its configuration has `start = true`. Nothing that a service does is rolled back when it fails, and it sees
/// nothing of the world: for that it asks the game, whose name is a service's name like others.
///
/// **When its code is swapped** a service goes on with its handle, names, timeouts, subscriptions and clients, and with
/// this struct as it was: [`init`](Self::init) is not called again, [`restored`](Self::restored) is. Objects that it has
/// exported are gone with the old code; in `restored` it exports them again, under the same numbers.
///
/// **A service that is started again begins anew**, with `init` and the arguments of its first launch, under its names,
/// whether it failed or the host was started again. What must outlast that belongs to a game, in [`kv`](crate::kv).
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use wheelhouse_guest::prelude::*;
///
/// /// Hands out numbers, to each who asks the next.
/// #[derive(Serialize, Deserialize)]
/// struct Tickets {
///     next: u64,
/// }
///
/// impl Service for Tickets {
///     type Config = ();
///
///     fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
///         services::register("tickets", actor::this())?;
///         Ok(Self { next: 1 })
///     }
///
///     fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
///         match message.text()? {
///             "next" => {
///                 self.next += 1;
///                 Ok(format!("{}", self.next - 1).into_bytes())
///             }
///             other => refuse!("tickets knows no {other:?}"),
///         }
///     }
/// }
///
/// wheelhouse_guest::service!(Tickets);
/// # fn main() {}
/// ```
#[allow(unused_variables)]
pub trait Service: Serialize + DeserializeOwned + 'static {
    /// What the guest's own table of the configuration is read into; `()` for none.
    type Config: DeserializeOwned + 'static;

    /// The version of this struct's saved form. Raise it when fields change, and let [`migrate`](Self::migrate) read
    /// the older forms. See above for when that is.
    const STATE_VERSION: u32 = 1;

    /// Starts the service. `arguments` is what `launch` was given. Messages that came already wait until this returns; an
    /// error ends the service and answers them.
    fn init(config: Self::Config, arguments: Vec<u8>) -> Result<Self, Refusal>;

    /// Handles a message. Where it wants an answer, the result is the answer; an error is answered too, as `refused`.
    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal>;

    /// The saved form of another version as this one. Refusing it keeps the service on the code that it has.
    fn migrate(version: u32, state: &[u8]) -> Result<Self, Refusal> {
        refuse!("the saved state has version {version}, this service has version {}", Self::STATE_VERSION)
    }

    /// New code has taken over what this service was, in place of [`init`](Self::init). Here it puts in place what is not
    /// saved: what comes from the configuration, and the objects that it exports.
    fn restored(&mut self, config: Self::Config) {}
}

/// Makes a type that implements [`Service`] the guest that this crate compiles to.
#[macro_export]
macro_rules! service {
    ($service:ty) => {
        const _: () = {
            $crate::__hosted!($service, $service);
            #[allow(dead_code)]
            type Exported = $crate::service::Exported<$service>;
            #[cfg(target_arch = "wasm32")]
            $crate::bindings::bulk_service::export_bulk_service! {
                Exported with_types_in $crate::bindings::bulk_service
            }
        };
    };
}

/// What the world `bulk-service` exports, over the type `S`.
#[doc(hidden)]
pub struct Exported<S>(PhantomData<S>);

impl<S: Service + Hosted<Instance = S>> exports::Guest for Exported<S> {
    fn init(config: String, arguments: Vec<u8>) -> Result<(), String> {
        instance::start::<S>(|| S::init(carried::config(config)?, arguments))
    }

    fn handle(message: ContractMessage) -> Result<Vec<u8>, String> {
        instance::with_instance::<S, _>(|service| hand_over(service, message.into()))
    }

    fn deliver(heads: Vec<Head>, payloads: Vec<u8>) -> Result<u32, RefusedInBulk> {
        S::with_slot(|slot| match slot {
            Some(service) => {
                let until = clock::now() + BULK_TIME;
                let handle = |message: Message| hand_over(service, message).map(|_answer| ());
                deliver(&heads, &payloads, handle, || clock::now() >= until)
            }
            None => Err(RefusedInBulk { handled: 0, reason: instance::NOT_STARTED.into() }),
        })
    }
}

/// A call of one of this service's objects is for the object; everything else is for the author.
#[inline]
fn hand_over(service: &mut impl Service, message: Message) -> Result<Vec<u8>, Refusal> {
    match objects::answer_call(&message) {
        Some(answer) => Ok(answer),
        None => service.handle(message),
    }
}

/// For so long messages are handled in one call: the host offers the others again, and counts the time anew.
const BULK_TIME: Duration = Duration::from_millis(1);

/// After so many messages the time is looked at.
const LOOK_AFTER: u32 = 4;

/// Hands messages over one after another, their payloads where they lie, up to the first that is refused or after which
/// the service wants to exit, or until the time is over.
fn deliver(
    heads: &[Head],
    mut payloads: &[u8],
    mut handle: impl FnMut(Message) -> Result<(), Refusal>,
    is_over: impl Fn() -> bool,
) -> Result<u32, RefusedInBulk> {
    for (head, handled) in heads.iter().zip(1..) {
        let Some((payload, behind)) = payloads.split_at_checked(head.length as usize) else {
            return Err(RefusedInBulk { handled, reason: "the payloads end before the messages do".into() });
        };
        payloads = behind;
        let (source, subject) = (head.source, head.subject);
        let message = Message { source, session: None, subject, payload: Cow::Borrowed(payload) };
        if let Err(refusal) = handle(message) {
            return Err(RefusedInBulk { handled, reason: refusal.into_message() });
        }
        if actor::is_exiting() || (handled % LOOK_AFTER == 0 && is_over()) {
            return Ok(handled);
        }
    }
    Ok(heads.len() as u32)
}

impl<S: Service + Hosted<Instance = S>> exports::exports::wheelhouse::sim::lifecycle::Guest for Exported<S> {
    fn save() -> Vec<u8> {
        instance::save::<S>(|service| carried::save(S::STATE_VERSION, service))
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        let restored = carried::restore(&state, S::STATE_VERSION, S::migrate);
        let (config, mut service): (_, S) = restored.map_err(Refusal::into_message)?;
        service.restored(config);
        S::with_slot(|slot| *slot = Some(service));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subject;

    fn heads(lengths: &[u32]) -> Vec<Head> {
        let head = |(&length, source)| Head { source, subject: Subject::Plain, length };
        lengths.iter().zip(1..).map(head).collect()
    }

    /// Delivers `a`, `bc`, nothing, `d`; what was handled and the outcome.
    fn delivered(handle: impl Fn(&str) -> Result<(), Refusal>) -> (String, Result<u32, RefusedInBulk>) {
        let mut handled = String::new();
        let handle = |message: Message| {
            let text = message.text()?;
            handled += &format!("{}:{text} ", message.source);
            handle(text)
        };
        let outcome = deliver(&heads(&[1, 2, 0, 1]), b"abcd", handle, || false);
        (handled, outcome)
    }

    #[test]
    fn messages_that_come_together_are_handled_in_order_each_with_its_payload() {
        assert_eq!(delivered(|_| Ok(())), ("1:a 2:bc 3: 4:d ".into(), Ok(4)));
    }

    #[test]
    fn a_refusal_says_how_many_were_handled_and_leaves_the_others() {
        let (handled, outcome) = delivered(|text| if text == "bc" { refuse!("no {text}") } else { Ok(()) });
        assert_eq!(handled, "1:a 2:bc ");
        assert_eq!(outcome, Err(RefusedInBulk { handled: 2, reason: "no bc".into() }));
    }

    #[test]
    fn after_the_message_in_which_it_exits_a_service_handles_no_other() {
        let (handled, outcome) = delivered(|text| {
            if text.is_empty() {
                actor::note_exit();
            }
            Ok(())
        });
        assert_eq!((handled.as_str(), outcome), ("1:a 2:bc 3: ", Ok(3)));
    }

    #[test]
    fn payloads_that_end_too_soon_are_refused() {
        assert_eq!(deliver(&heads(&[1, 2]), b"ab", |_| Ok(()), || false).unwrap_err().handled, 2);
    }

    #[test]
    fn when_the_time_is_over_the_rest_is_left_for_another_call() {
        let heads = heads(&[0; 10]);
        let looks = std::cell::Cell::new(0);
        let is_over = || looks.replace(looks.get() + 1) == 1;
        assert_eq!(deliver(&heads, b"", |_| Ok(()), is_over).unwrap(), 2 * LOOK_AFTER);
    }
}
