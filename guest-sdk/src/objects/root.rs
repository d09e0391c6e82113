//! The name service of objects: what is registered with the service called `root`, anybody can look up.

use crate::bindings::services::Reference;
use crate::{ObjectId, Refusal, services};

/// The number under which the service `root` exports its names.
pub const ROOT_OBJECT: ObjectId = 1;

crate::remote! {
    /// Names of objects. The guest `root` implements it; [`root`] finds it.
    ///
    /// A reference stays registered when the object, or its service, is gone: whoever looks it up hears it at the first
    /// call. It is for the service that comes after to [`replace`](RootRef::replace) it.
    pub trait Root as RootRef {
        /// Gives an object a name. False when the name stands for an object of another service; `replace` takes it over.
        fn register(&mut self, name: String, object: Reference) -> Result<bool, Refusal>;

        /// Gives an object a name whoever has it, and gives back what it stood for before.
        fn replace(&mut self, name: String, object: Reference) -> Result<Option<Reference>, Refusal>;

        /// The object with that name, if there is one.
        fn lookup(&self, name: String) -> Option<Reference>;

        /// Takes a name away. False when it was not given.
        fn unregister(&mut self, name: String) -> bool;

        /// All names in their order, with what they stand for.
        fn list(&self) -> Vec<(String, Reference)>;
    }
}

/// The service that has the names; none when there is no service called `root`.
///
/// ```no_run
/// # use wheelhouse_guest::prelude::*;
/// # wheelhouse_guest::remote! { pub trait Counter as CounterRef { fn add(&mut self, by: u64) -> u64; } }
/// fn count() -> Result<u64, Refusal> {
///     let Some(root) = objects::root() else { refuse!("there is no service called root") };
///     let Some(counter) = root.lookup("sheep".into())? else { refuse!("nobody counts sheep") };
///     Ok(CounterRef::from(counter).add(1)?)
/// }
/// ```
pub fn root() -> Option<RootRef> {
    services::query("root").map(|service| Reference { service, object: ROOT_OBJECT }.into())
}
