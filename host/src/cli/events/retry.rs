//! `wheelhouse events retry`: sends an event on its way again that is parked or waits for its next attempt.

use super::EventArgs;
use crate::admin::ControlClient;
use crate::cli::report::print_answer;

/// Asks the host.
pub fn run(args: EventArgs) -> anyhow::Result<()> {
    let answer = ControlClient::find(args.host.data_dir()?)?.retry_event(args.sequence)?;
    print_answer(args.json, &answer, &format!("event {} is on its way again", args.sequence))
}
