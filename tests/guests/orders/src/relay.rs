//! What a relay does.

use std::time::Duration;

use wheelhouse_guest::{Handle, Refusal, refuse};

use crate::next;

/// An order to a relay. `REST` is what it sends on, which may be an order itself: `call 7 call 8 echo hi` goes through
/// two relays.
#[derive(Debug, PartialEq)]
pub enum Relay<'a> {
    /// `echo REST`: answers `REST`.
    Echo(&'a str),
    /// `call HANDLE REST`: calls a service, and answers what it answers.
    Call { to: Handle, limit: Option<Duration>, rest: &'a str },
    /// `forward HANDLE REST`: has a service answer in its place.
    Forward { to: Handle, rest: &'a str },
    /// `sleep MS REST`: waits, and does what `REST` says.
    Sleep { duration: Duration, rest: &'a str },
    /// `naps N MS REST`: waits so many times, and answers `REST`.
    Naps { times: u32, duration: Duration, rest: &'a str },
    /// `spin`: computes without end.
    Spin,
    /// `leave MS REST`: ends, but waits first, and answers `REST`.
    Leave { duration: Duration, rest: &'a str },
}

impl<'a> Relay<'a> {
    /// Reads an order. `within MS HANDLE REST` is a call with a limit.
    pub fn parse(mut order: &'a str) -> Result<Self, Refusal> {
        let order = &mut order;
        Ok(match next::<String>(order)?.as_str() {
            "echo" => Self::Echo(order),
            "call" => Self::Call { to: next(order)?, limit: None, rest: order },
            "within" => {
                let limit = Some(Duration::from_millis(next(order)?));
                Self::Call { to: next(order)?, limit, rest: order }
            }
            "forward" => Self::Forward { to: next(order)?, rest: order },
            "sleep" => Self::Sleep { duration: Duration::from_millis(next(order)?), rest: order },
            "naps" => {
                let times = next(order)?;
                Self::Naps { times, duration: Duration::from_millis(next(order)?), rest: order }
            }
            "spin" => Self::Spin,
            "leave" => Self::Leave { duration: Duration::from_millis(next(order)?), rest: order },
            other => refuse!("a relay cannot {other}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_carries_another_as_its_rest() {
        let order = Relay::parse("within 50 7 call 8 echo hi").unwrap();
        assert_eq!(order, Relay::Call { to: 7, limit: Some(Duration::from_millis(50)), rest: "call 8 echo hi" });
        assert!(Relay::parse("call").is_err());
        assert!(Relay::parse("").is_err());
    }
}
