//! An async service: the trait that a `service` guest implements which takes the next message while it waits, and the
//! macro that makes it one.

#[doc(hidden)]
pub mod runtime;

use std::marker::PhantomData;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::async_service as exports;
use crate::bindings::services::Message as ContractMessage;
use crate::instance::{self, Hosted};
use crate::message::Message;
use crate::{Refusal, carried, objects};

/// An actor that takes the next message while its handlers wait, with [`async_calls`](crate::async_calls). It is for a
/// service whose answers depend on others' answers and which must stay open meanwhile; otherwise the plain
/// [`Service`](crate::Service) is a few times cheaper for small messages.
///
/// Several handlers of one service are under way at a time, but between two `.await`s each runs alone: nothing needs a
/// lock. They share the service by `&self`, so that what changes is in a [`Cell`](std::cell::Cell) or a
/// [`RefCell`](std::cell::RefCell), with two rules:
///
/// - **No borrow of a `RefCell` lives across an `.await`**: another handler that borrows then panics, and a panic ends
///   the service. Borrow, take what is needed, let go, then wait. (Clippy's `await_holding_refcell_ref` sees it.)
/// - **What was read before an `.await` may be out of date behind it.** Look again.
///
/// A handler waits for the host only: for answers, or for [`sleep`](crate::async_calls::sleep). To wait for what another
/// handler does, [defer](crate::actor::defer) the answer and let the other one [reply](crate::actor::reply).
///
/// **When its code is swapped** a service goes on with its handle, names, timeouts, subscriptions and clients, and with
/// this struct as it was: [`init`](Self::init) is not called again, [`restored`](Self::restored) is. Objects that it has
/// exported are gone with the old code; in `restored` it exports them again, under the same numbers.
///
/// **A service that is started again begins anew**, with `init` and the arguments of its first launch, under its names,
/// whether it failed or the host was started again. What must outlast that belongs to a game, in [`kv`](crate::kv).
///
/// ```
/// use std::cell::Cell;
///
/// use serde::{Deserialize, Serialize};
/// use wheelhouse_guest::prelude::*;
///
/// /// Asks the bank before it sells, and serves others while the bank thinks.
/// #[derive(Serialize, Deserialize)]
/// struct Shop {
///     stock: Cell<u32>,
/// }
///
/// impl AsyncService for Shop {
///     type Config = ();
///
///     async fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
///         Ok(Self { stock: Cell::new(3) })
///     }
///
///     async fn handle(&self, message: Message<'static>) -> Result<Vec<u8>, Refusal> {
///         let Some(bank) = services::query("bank") else { refuse!("the bank is closed") };
///         async_calls::call(bank, &message.payload, None).await?;
///         // Somebody else may have bought the last one meanwhile.
///         let Some(left) = self.stock.get().checked_sub(1) else { refuse!("sold out") };
///         self.stock.set(left);
///         Ok(b"sold".to_vec())
///     }
/// }
///
/// wheelhouse_guest::async_service!(Shop);
/// # fn main() {}
/// ```
// A guest has one thread, so that it does not matter whether the futures may change theirs.
#[allow(async_fn_in_trait, unused_variables)]
pub trait AsyncService: Serialize + DeserializeOwned + 'static {
    /// What the guest's own table of the configuration is read into; `()` for none.
    type Config: DeserializeOwned + 'static;

    /// The version of this struct's saved form. Raise it when fields change, and let [`migrate`](Self::migrate) read
    /// the older forms. See above for when that is.
    const STATE_VERSION: u32 = 1;

    /// Starts the service. `arguments` is what `launch` was given. Messages that came already wait until this returns; an
    /// error ends the service and answers them.
    async fn init(config: Self::Config, arguments: Vec<u8>) -> Result<Self, Refusal>;

    /// Handles a message. Where it wants an answer, the result is the answer; an error is answered too, as `refused`.
    async fn handle(&self, message: Message<'static>) -> Result<Vec<u8>, Refusal>;

    /// The saved form of another version as this one. Refusing it keeps the service on the code that it has.
    fn migrate(version: u32, state: &[u8]) -> Result<Self, Refusal> {
        refuse!("the saved state has version {version}, this service has version {}", Self::STATE_VERSION)
    }

    /// New code has taken over what this service was, in place of [`init`](Self::init). Here it puts in place what is not
    /// saved: what comes from the configuration, and the objects that it exports.
    fn restored(&mut self, config: Self::Config) {}
}

/// Makes a type that implements [`AsyncService`] the guest that this crate compiles to.
#[macro_export]
macro_rules! async_service {
    ($service:ty) => {
        const _: () = {
            $crate::__hosted!($service, ::std::rc::Rc<$service>);
            #[allow(dead_code)]
            type Exported = $crate::async_service::Exported<$service>;
            #[cfg(target_arch = "wasm32")]
            $crate::bindings::async_service::export_async_service! {
                Exported with_types_in $crate::bindings::async_service
            }
        };
    };
}

/// What the world `async-service` exports, over the type `S`.
#[doc(hidden)]
pub struct Exported<S>(PhantomData<S>);

impl<S: AsyncService + Hosted<Instance = Rc<S>>> exports::Guest for Exported<S> {
    async fn init(config: String, arguments: Vec<u8>) -> Result<(), String> {
        crate::panic::report_panics();
        let config = carried::config(config).map_err(Refusal::into_message)?;
        let service = S::init(config, arguments).await.map_err(Refusal::into_message)?;
        S::with_slot(|slot| *slot = Some(Rc::new(service)));
        Ok(())
    }

    async fn handle(message: ContractMessage) -> Result<Vec<u8>, String> {
        let message = Message::from(message);
        if let Some(answer) = objects::answer_call(&message) {
            return Ok(answer);
        }
        // Lent for a moment only: other handlers come in while this one waits.
        let Some(service) = S::with_slot(|slot| slot.clone()) else { return Err(instance::NOT_STARTED.into()) };
        service.handle(message).await.map_err(Refusal::into_message)
    }
}

impl<S: AsyncService + Hosted<Instance = Rc<S>>> exports::exports::wheelhouse::sim::lifecycle::Guest for Exported<S> {
    fn save() -> Vec<u8> {
        instance::save::<S>(|service| carried::save(S::STATE_VERSION, service.as_ref()))
    }

    fn restore(state: Vec<u8>) -> Result<(), String> {
        let restored = carried::restore(&state, S::STATE_VERSION, S::migrate);
        let (config, mut service): (_, S) = restored.map_err(Refusal::into_message)?;
        service.restored(config);
        S::with_slot(|slot| *slot = Some(Rc::new(service)));
        Ok(())
    }
}
