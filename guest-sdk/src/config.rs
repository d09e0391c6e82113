//! Reads a guest's own table of the configuration, which the host hands over as JSON.

use std::any::TypeId;

use serde::de::DeserializeOwned;

use crate::Refusal;

/// Parses the table into the author's type. `()` takes any table, for a guest that has nothing to configure; an empty
/// text counts as an empty table.
pub(crate) fn parse<C: DeserializeOwned + 'static>(json: &str) -> Result<C, Refusal> {
    let json = if TypeId::of::<C>() == TypeId::of::<()>() {
        "null"
    } else if json.trim().is_empty() {
        "{}"
    } else {
        json
    };
    serde_json::from_str(json).map_err(|error| Refusal::new(format_args!("the guest's configuration: {error}")))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Flock {
        #[serde(default)]
        sheep: u32,
    }

    #[test]
    fn a_table_is_read_into_the_authors_type() {
        assert_eq!(parse::<Flock>(r#"{"sheep": 3}"#).unwrap().sheep, 3);
        assert_eq!(parse::<Flock>("").unwrap().sheep, 0);
    }

    #[test]
    fn a_guest_without_configuration_takes_any_table() {
        parse::<()>(r#"{"sheep": 3}"#).unwrap();
        parse::<()>("").unwrap();
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_place() {
        let refusal = parse::<Flock>(r#"{"sheep": "many"}"#).unwrap_err();
        assert!(refusal.message().contains("the guest's configuration"), "{refusal}");
        assert!(refusal.message().contains("line 1"), "{refusal}");
    }
}
