//! Remote objects: a service exports an object, passes the reference on in messages, and whoever holds it calls its
//! methods as if the object were its own. [`remote!`](crate::remote) makes the trait that the object implements and the
//! reference that callers hold.
//!
//! ```
//! use wheelhouse_guest::objects::ObjectError;
//! use wheelhouse_guest::prelude::*;
//!
//! wheelhouse_guest::remote! {
//!     /// Counts.
//!     pub trait Counter as CounterRef {
//!         /// Adds, and says what it comes to.
//!         fn add(&mut self, by: u64) -> u64;
//!         /// What is counted.
//!         fn name(&self) -> Result<String, Refusal>;
//!     }
//! }
//!
//! struct Sheep(u64);
//!
//! impl Counter for Sheep {
//!     fn add(&mut self, by: u64) -> u64 {
//!         self.0 += by;
//!         self.0
//!     }
//!
//!     fn name(&self) -> Result<String, Refusal> {
//!         if self.0 == 0 {
//!             refuse!("nothing is counted yet");
//!         }
//!         Ok("sheep".into())
//!     }
//! }
//!
//! /// In the service that has the object: a reference, to be put in any message.
//! fn offer() -> CounterRef {
//!     CounterRef::export(Sheep(0))
//! }
//!
//! /// In a plain service, its own object or another's: it waits for the answer.
//! fn use_it(counter: CounterRef) -> Result<u64, ObjectError> {
//!     counter.add(2)
//! }
//!
//! /// In an async service.
//! async fn use_it_async(counter: CounterRef) -> Result<u64, ObjectError> {
//!     counter.awaited().add(2).await
//! }
//!
//! /// In a game: the answer comes to `on_reply`, where `objects::answer::<u64>(answer)` reads it.
//! fn use_it_from_a_game(counter: CounterRef) -> Result<Session, ObjectError> {
//!     counter.requested().add(2)
//! }
//! ```
//!
//! # What to know
//!
//! - **Objects end with their service.** One that is started again has another handle, for which no reference from
//!   before is valid: it exports again in `init` and says so where its objects are looked up, such as at [`root`].
//! - A method runs from its beginning to its end. An object that is called while one of its methods runs, by that method
//!   itself or by somebody it asked, answers [`ObjectError::Busy`].
//! - Arguments and results are values that own what they hold. A method that may refuse returns a `Result<T, Refusal>`,
//!   or of another error that serde can carry; its caller writes `counter.name()??`, once for the call and once for the
//!   method.
//! - A game holds references and calls; it exports no objects.
//! - Where to find objects to begin with: [`root`] is a name service for them.
//!
//! # What goes over the wire
//!
//! For guests in other languages. A call is a message whose subject is `object` with the object's number. Its payload
//! is the length of the method's name in one byte, the name, and the arguments as postcard writes a tuple of them, which
//! is one after another. The answer begins with one byte:
//!
//! | byte | means | what follows |
//! | --- | --- | --- |
//! | 0 | the result | the result, as postcard writes it |
//! | 1 | there is no such object (any more) | nothing |
//! | 2 | the object has no such method | nothing |
//! | 3 | the arguments do not fit the method | nothing |
//! | 4 | the method failed | why, as UTF-8 |
//! | 5 | the object is busy with a call around this one | nothing |

mod answer;
pub(crate) mod registry;
#[macro_use]
mod remote;
mod root;

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

#[doc(hidden)]
pub use answer::{arguments, arguments_do_not_fit, busy, no_such_method, result};
pub(crate) use registry::answer_call;
#[doc(hidden)]
pub use registry::export;
pub use remote::{Awaited, Blocking, Requested};
pub use root::{ROOT_OBJECT, Root, RootRef, root};

use crate::bindings::services::{Reference, ServiceError};
use crate::{Session, actor, async_calls, calls, requests};

/// Why a call of an object's method has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObjectError {
    /// The object was withdrawn, or its service has ended.
    #[error("the object is gone, or the service that had it is")]
    Gone,
    /// The object is of another kind than the reference says, or of another version.
    #[error("the object has no such method")]
    NoSuchMethod,
    /// The object's method takes other arguments.
    #[error("the arguments do not fit the object's method")]
    Arguments,
    /// The object is in the middle of a call that has led to this one.
    #[error("the object is busy with a call around this one")]
    Busy,
    /// The method failed, or its result is of another type; this says why.
    #[error("the object's method failed: {0}")]
    Failed(String),
    /// The message did not get there, or back.
    #[error(transparent)]
    Service(ServiceError),
}

impl From<ServiceError> for ObjectError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Gone(_) => Self::Gone,
            error => Self::Service(error),
        }
    }
}

/// An object that its service keeps a hand on as well.
pub type SharedObject<T> = Rc<RefCell<T>>;

/// Takes an object back: who calls it from now on hears that it is gone. False when this service has no such object.
pub fn withdraw(reference: impl Into<Reference>) -> bool {
    let reference = reference.into();
    reference.service == actor::this() && registry::withdraw(reference.object)
}

/// The result of a call of which a game hears in [`on_reply`](crate::Game::on_reply).
pub fn answer<T: DeserializeOwned>(answer: Result<Vec<u8>, ServiceError>) -> Result<T, ObjectError> {
    answer::read(&answer?)
}

/// Calls a method and waits, as a plain service does.
#[doc(hidden)]
pub fn call<T: DeserializeOwned>(
    reference: Reference,
    method: &str,
    arguments: &impl Serialize,
) -> Result<T, ObjectError> {
    let arguments = answer::write_arguments(arguments)?;
    let answer = match own_answer(reference, method, &arguments) {
        Some(answer) => answer,
        None => calls::invoke(reference, method, &arguments, None)?,
    };
    answer::read(&answer)
}

/// Calls a method and waits, as an async service does.
#[doc(hidden)]
pub async fn call_awaited<T: DeserializeOwned>(
    reference: Reference,
    method: &str,
    arguments: &impl Serialize,
) -> Result<T, ObjectError> {
    let arguments = answer::write_arguments(arguments)?;
    let answer = match own_answer(reference, method, &arguments) {
        Some(answer) => answer,
        None => async_calls::invoke(reference, method, arguments, None).await?,
    };
    answer::read(&answer)
}

/// What an object of this very service answers, without the host's doing; none when it is another's.
fn own_answer(reference: Reference, method: &str, arguments: &[u8]) -> Option<Vec<u8>> {
    (reference.service == actor::this()).then(|| registry::invoke(reference.object, method, arguments))
}

/// Calls a method as a game does.
#[doc(hidden)]
pub fn call_requested(reference: Reference, method: &str, arguments: &impl Serialize) -> Result<Session, ObjectError> {
    let arguments = answer::write_arguments(arguments)?;
    Ok(requests::invoke(reference, method, &arguments, None)?)
}

#[cfg(test)]
mod tests;
