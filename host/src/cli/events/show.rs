//! `wheelhouse events show`: everything about one pending event of the running host, its payload included.

use super::EventArgs;
use crate::admin::{ControlClient, event_details};
use crate::cli::report::print_answer;
use crate::clock::{Clock, MonotonicClock};

/// Asks and prints.
pub fn run(args: EventArgs) -> anyhow::Result<()> {
    let event = ControlClient::find(args.host.data_dir()?)?.event(args.sequence)?;
    let details = event_details(&event, MonotonicClock::new().wall_ms());
    print_answer(args.json, &event, details.trim_end())
}
