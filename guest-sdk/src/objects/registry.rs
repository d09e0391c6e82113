//! The objects that this service has exported, by their numbers. Whoever has the service's mailbox asks here first.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::answer;
use crate::bindings::services::{Reference, Subject};
use crate::{Message, ObjectId, actor};

/// An object behind its methods' names: takes a name and arguments, and gives an answer.
type Methods = Rc<dyn Fn(&str, &[u8]) -> Vec<u8>>;

#[derive(Default)]
struct Registry {
    objects: BTreeMap<ObjectId, Methods>,
    /// The last number that was chosen here.
    last: ObjectId,
}

std::thread_local! {
    static REGISTRY: RefCell<Registry> = RefCell::default();
}

/// Exports an object, under a number of its own choice or under the next that is free.
#[doc(hidden)]
pub fn export(number: Option<ObjectId>, methods: impl Fn(&str, &[u8]) -> Vec<u8> + 'static) -> Reference {
    let (object, replaced) = REGISTRY.with_borrow_mut(|registry| {
        let object = number.unwrap_or_else(|| registry.next_free());
        (object, registry.objects.insert(object, Rc::new(methods)))
    });
    // Dropped here, since an object may withdraw others when it goes.
    drop(replaced);
    Reference { service: actor::this(), object }
}

impl Registry {
    /// Numbers are not used again, so that a reference to an object that is gone does not lead to another.
    fn next_free(&mut self) -> ObjectId {
        loop {
            self.last += 1;
            if !self.objects.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

/// The last number that was chosen here.
pub(crate) fn last() -> ObjectId {
    REGISTRY.with_borrow(|registry| registry.last)
}

/// Numbers up to that one belong to objects of an earlier instance.
pub(crate) fn go_on_after(last: ObjectId) {
    REGISTRY.with_borrow_mut(|registry| registry.last = last);
}

pub(super) fn withdraw(object: ObjectId) -> bool {
    let withdrawn = REGISTRY.with_borrow_mut(|registry| registry.objects.remove(&object));
    withdrawn.is_some()
}

/// Calls a method of one of this service's objects.
pub(super) fn invoke(object: ObjectId, method: &str, arguments: &[u8]) -> Vec<u8> {
    // The registry is free while the method runs: it may export and withdraw.
    match REGISTRY.with_borrow(|registry| registry.objects.get(&object).cloned()) {
        Some(methods) => methods(method, arguments),
        None => answer::gone(),
    }
}

/// The answer to a message that calls one of this service's objects; none for all other messages.
#[inline]
pub(crate) fn answer_call(message: &Message) -> Option<Vec<u8>> {
    let Subject::Object(object) = message.subject else { return None };
    Some(answer_to(object, &message.payload))
}

fn answer_to(object: ObjectId, payload: &[u8]) -> Vec<u8> {
    let call = payload.split_first().and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)));
    match call.map(|(method, arguments)| (std::str::from_utf8(method), arguments)) {
        Some((Ok(method), arguments)) => invoke(object, method, arguments),
        Some((Err(_), _)) | None => answer::no_such_method(),
    }
}
