//! `wheelhouse events cancel`: removes a pending event of the running host, parked or not.

use super::EventArgs;
use crate::admin::ControlClient;
use crate::cli::report::print_answer;

/// Asks the host.
pub fn run(args: EventArgs) -> anyhow::Result<()> {
    let answer = ControlClient::find(args.host.data_dir()?)?.cancel_event(args.sequence)?;
    print_answer(args.json, &answer, &format!("event {} is cancelled", args.sequence))
}
