//! The names of services on this host: each belongs to one member, which may have several. Names survive a restart: they
//! wait for the member that comes in place of the one that ended. A name that begins with `@` is for later: it shall hold
//! on all nodes of a cluster.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::FxHashMap;

use super::handle::Handle;
use super::message::ServiceError;
use crate::guest::service_limits::{MAX_NAMES, check_name};

/// Names and whose they are.
#[derive(Debug, Default)]
pub struct Names {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    holders: FxHashMap<String, Holder>,
    of: FxHashMap<Handle, Vec<String>>,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    handle: Handle,
    /// It has ended, and another is to come in its place.
    is_away: bool,
}

impl Names {
    /// Gives a member a name.
    pub fn register(&self, name: &str, handle: Handle) -> Result<(), ServiceError> {
        check_name(name)?;
        let mut state = self.write();
        match state.holders.get(name) {
            Some(holder) if holder.handle == handle => return Ok(()),
            Some(_) => return Err(ServiceError::NameTaken),
            None if state.of.get(&handle).is_some_and(|names| names.len() >= MAX_NAMES) => {
                return Err(ServiceError::TooMany(MAX_NAMES as u32));
            }
            None => {}
        }
        state.holders.insert(name.to_owned(), Holder { handle, is_away: false });
        state.of.entry(handle).or_default().push(name.to_owned());
        Ok(())
    }

    /// Who has a name.
    pub fn query(&self, name: &str) -> Option<Handle> {
        self.read().holders.get(name).filter(|holder| !holder.is_away).map(|holder| holder.handle)
    }

    /// Takes a name away; false when nobody has it.
    pub fn unregister(&self, name: &str) -> bool {
        let mut state = self.write();
        let Some(holder) = state.holders.remove(name) else { return false };
        if let Some(names) = state.of.get_mut(&holder.handle) {
            names.retain(|of_holder| of_holder != name);
            if names.is_empty() {
                state.of.remove(&holder.handle);
            }
        }
        true
    }

    /// The names of a member.
    pub fn of(&self, handle: Handle) -> Vec<String> {
        self.read().of.get(&handle).cloned().unwrap_or_default()
    }

    /// A member has ended for good.
    pub fn remove(&self, handle: Handle) {
        let mut state = self.write();
        for name in state.of.remove(&handle).unwrap_or_default() {
            state.holders.remove(&name);
        }
    }

    /// A member has ended, and its names wait for another.
    pub fn hold(&self, handle: Handle) {
        let mut state = self.write();
        let State { holders, of } = &mut *state;
        for name in of.get(&handle).into_iter().flatten() {
            if let Some(holder) = holders.get_mut(name) {
                holder.is_away = true;
            }
        }
    }

    /// The names of one member are another's from here on.
    pub fn pass_on(&self, from: Handle, to: Handle) {
        let mut state = self.write();
        let Some(names) = state.of.remove(&from) else { return };
        for name in &names {
            state.holders.insert(name.clone(), Holder { handle: to, is_away: false });
        }
        state.of.entry(to).or_default().extend(names);
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // A panic cannot leave it half changed in a way that matters here: at worst a name stays taken.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Handle = Handle(1);
    const OTHER: Handle = Handle(2);

    #[test]
    fn a_name_has_one_holder_and_a_holder_may_have_several_names() {
        let names = Names::default();
        names.register("chat", ONE).unwrap();
        names.register("hall", ONE).unwrap();
        assert!(names.register("chat", ONE).is_ok(), "it has it already");
        assert!(matches!(names.register("chat", OTHER), Err(ServiceError::NameTaken)));
        assert_eq!(names.query("chat"), Some(ONE));
        assert!(names.unregister("chat") && !names.unregister("chat"));
        assert_eq!((names.query("chat"), names.of(ONE)), (None, vec!["hall".to_owned()]));
    }

    #[test]
    fn the_names_of_one_that_ended_are_free_unless_another_comes_in_its_place() {
        let names = Names::default();
        names.register("chat", ONE).unwrap();
        names.hold(ONE);
        assert_eq!(names.query("chat"), None);
        assert!(matches!(names.register("chat", OTHER), Err(ServiceError::NameTaken)));
        names.pass_on(ONE, OTHER);
        assert_eq!(names.query("chat"), Some(OTHER));
        names.remove(OTHER);
        assert!(names.register("chat", ONE).is_ok());
    }

    #[test]
    fn one_member_has_only_so_many_names_and_those_taken_away_leave_nothing() {
        let names = Names::default();
        assert!((0..MAX_NAMES).all(|number| names.register(&number.to_string(), ONE).is_ok()));
        assert!(matches!(names.register("one more", ONE), Err(ServiceError::TooMany(64))));
        assert!(names.register("7", ONE).is_ok(), "it has it already");
        assert!(names.register("one more", OTHER).is_ok());
        assert!((0..MAX_NAMES).all(|number| names.unregister(&number.to_string())) && names.unregister("one more"));
        names.pass_on(ONE, OTHER);
        let state = names.read();
        assert!(state.of.is_empty() && state.holders.is_empty());
    }

    #[test]
    fn a_name_that_cannot_be_is_refused() {
        assert!(matches!(Names::default().register("@world", ONE), Err(ServiceError::Refused(_))));
    }
}
