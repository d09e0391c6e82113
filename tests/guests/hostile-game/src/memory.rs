//! A state that misbehaves while it is saved or restored.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

/// Carries the name of the harm: with `save:` in front for when it is saved, with `restore:` for when it is restored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory(pub String);

impl Serialize for Memory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.strip_prefix("save:") {
            Some("fail") => Err(S::Error::custom("this state cannot be saved")),
            Some("big") => serializer.serialize_bytes(&mischief::too_many_bytes()),
            Some(name) => {
                mischief::commit(name);
                serializer.serialize_str(&self.0)
            }
            None => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let memory = String::deserialize(deserializer)?;
        match memory.strip_prefix("restore:") {
            Some("fail") => return Err(D::Error::custom("this state cannot be restored")),
            Some(name) => _ = mischief::commit(name),
            None => {}
        }
        Ok(Self(memory))
    }
}
