//! `wheelhouse events drop`: removes a parked event; one that may still run is refused and left alone.

use super::EventArgs;
use crate::admin::ControlClient;
use crate::cli::report::print_answer;

/// Asks the host.
pub fn run(args: EventArgs) -> anyhow::Result<()> {
    let answer = ControlClient::find(args.host.data_dir()?)?.drop_event(args.sequence)?;
    print_answer(args.json, &answer, &format!("event {} is dropped", args.sequence))
}
