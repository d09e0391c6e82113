//! A service of the lobby: the name service, where objects are registered under names and looked up by others with
//! `objects::root()`.
//!
//! It shows how a service exports an object and keeps a hand on it: the object is exported by `init` under a fixed number,
//! and shares what it knows with the service. All that is in memory: a root that is started again knows no names, and those
//! who have registered some must do it again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use wheelhouse_guest::objects::{ROOT_OBJECT, Root, RootRef};
use wheelhouse_guest::prelude::*;

/// The longest name in bytes.
const MAX_NAME_BYTES: usize = 64;

/// How many names there may be: with all of them `list` stays below what one message carries.
const MAX_NAMES: usize = 8_192;

/// The object.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Names(BTreeMap<String, Reference>);

impl Root for Names {
    fn register(&mut self, name: String, object: Reference) -> Result<bool, Refusal> {
        if self.0.get(&name).is_some_and(|holder| holder.service != object.service) {
            return Ok(false);
        }
        self.replace(name, object)?;
        Ok(true)
    }

    fn replace(&mut self, name: String, object: Reference) -> Result<Option<Reference>, Refusal> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            refuse!("a name has 1 to {MAX_NAME_BYTES} bytes, and this one {}", name.len());
        }
        if self.0.len() >= MAX_NAMES && !self.0.contains_key(&name) {
            refuse!("root has {MAX_NAMES} names already, and takes no more");
        }
        Ok(self.0.insert(name, object))
    }

    fn lookup(&self, name: String) -> Option<Reference> {
        self.0.get(&name).copied()
    }

    fn unregister(&mut self, name: String) -> bool {
        self.0.remove(&name).is_some()
    }

    fn list(&self) -> Vec<(String, Reference)> {
        self.0.iter().map(|(name, object)| (name.clone(), *object)).collect()
    }
}

/// The service: it shares the names with the object that it exports, and its saved form is the names.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Names", into = "Names")]
struct NameService {
    names: Rc<RefCell<Names>>,
}

impl Service for NameService {
    type Config = ();

    fn init(_config: (), _arguments: Vec<u8>) -> Result<Self, Refusal> {
        let service = Self::from(Names::default());
        service.export();
        services::register("root", actor::this())?;
        Ok(service)
    }

    fn handle(&mut self, message: Message) -> Result<Vec<u8>, Refusal> {
        refuse!("root answers calls of its object {ROOT_OBJECT} only, and got {:?}", message.subject)
    }

    fn restored(&mut self, _config: ()) {
        self.export();
    }
}

impl NameService {
    /// Exports the names, as the object that everybody knows.
    fn export(&self) {
        RootRef::export_shared(Some(ROOT_OBJECT), self.names.clone());
    }
}

impl From<Names> for NameService {
    fn from(names: Names) -> Self {
        Self { names: Rc::new(RefCell::new(names)) }
    }
}

impl From<NameService> for Names {
    fn from(service: NameService) -> Self {
        service.names.borrow().clone()
    }
}

wheelhouse_guest::service!(NameService);

#[cfg(test)]
mod tests {
    use super::*;

    fn object(service: u64) -> Reference {
        Reference { service, object: 1 }
    }

    #[test]
    fn a_name_stays_with_the_service_that_has_it_until_another_replaces_it() {
        let mut names = Names::default();
        assert_eq!(names.register("bank".into(), object(7)), Ok(true));
        assert_eq!(names.register("bank".into(), object(8)), Ok(false));
        assert_eq!(names.register("bank".into(), object(7)), Ok(true));
        assert_eq!(names.replace("bank".into(), object(8)), Ok(Some(object(7))));
        assert_eq!(names.lookup("bank".into()), Some(object(8)));
        assert_eq!(names.list(), [("bank".into(), object(8))]);
        assert!(names.unregister("bank".into()));
        assert!(!names.unregister("bank".into()));
        assert_eq!(names.lookup("bank".into()), None);
    }

    #[test]
    fn there_is_an_end_to_names() {
        let mut names = Names::default();
        assert!(names.register(String::new(), object(7)).is_err());
        assert!(names.register("x".repeat(65), object(7)).is_err());
        for number in 0..MAX_NAMES {
            assert_eq!(names.register(number.to_string(), object(7)), Ok(true));
        }
        assert!(names.register("one more".into(), object(7)).is_err());
        assert_eq!(names.register("0".into(), object(7)), Ok(true), "a name that is there may change");
    }
}
