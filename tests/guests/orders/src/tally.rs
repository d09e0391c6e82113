//! An object that one service exports and others call, each kind of caller in its way.

use wheelhouse_guest::objects::{RootRef, root};
use wheelhouse_guest::{Refusal, remote};

remote! {
    /// A sum.
    pub trait Tally as TallyRef {
        /// Adds, and says what it comes to.
        fn add(&mut self, number: u64) -> u64;
    }
}

/// The name under which `root` knows the tally.
pub const TALLY: &str = "tally";

/// The object.
#[derive(Debug, Default)]
pub struct Sum(u64);

impl Tally for Sum {
    fn add(&mut self, number: u64) -> u64 {
        self.0 += number;
        self.0
    }
}

/// The name service of objects.
pub fn the_root() -> Result<RootRef, Refusal> {
    root().ok_or_else(|| Refusal::new("there is no root"))
}
