//! `wheelhouse swap`: has a guest of the running host run new code, or the code that it ran before, while the world goes
//! on. Where that fails the guest runs what it ran, and the error says why.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::report::print_answer;
use super::status::HostArgs;
use crate::admin::ControlClient;
use crate::guest::Swapped;

/// What `wheelhouse swap` is asked.
#[derive(Args, Debug)]
#[command(
    after_help = "New code that fails too often in its first seconds gives way to the code before it by itself; \
                        see [swap] in the configuration. A host that is started again runs what was swapped in last, \
                        until the file that the configuration names changes."
)]
pub struct SwapArgs {
    /// The guest: its name in the configuration
    #[arg(value_name = "NAME")]
    pub guest: String,

    /// The file with the new code
    #[arg(value_name = "FILE", required_unless_present = "back", conflicts_with = "back")]
    pub file: Option<PathBuf>,

    /// Go back to the code that ran before; again, to the one before that
    #[arg(long)]
    pub back: bool,

    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Asks the host.
pub fn run(args: SwapArgs) -> anyhow::Result<()> {
    let client = ControlClient::find(args.host.data_dir()?)?;
    let swapped = match &args.file {
        Some(file) => {
            // The host may have been started in another folder.
            let file = std::path::absolute(file).with_context(|| format!("{file:?} names no file"))?;
            client.swap(&args.guest, &file)?
        }
        None => client.swap_back(&args.guest)?,
    };
    print_answer(args.json, &serde_json::to_value(&swapped)?, &words(&swapped))
}

/// What has happened, a line each.
pub fn words(swapped: &Swapped) -> String {
    let Swapped { guest, generation, took_ms, compile_ms, pause_us, notes, .. } = swapped;
    let times = format!("took {took_ms} ms, {compile_ms} of them to compile; the loop paused for {pause_us} µs");
    let mut lines = vec![format!("{guest} runs generation {generation} ({times})")];
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n")
}
