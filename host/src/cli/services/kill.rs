//! `wheelhouse services kill`: ends a service of the running host.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::admin::ControlClient;
use crate::cli::report::print_answer;
use crate::cli::status::HostArgs;

/// What `wheelhouse services kill` is asked.
#[derive(Args, Debug)]
pub struct KillArgs {
    /// The service: its handle or one of its names, as `wheelhouse services` lists them
    #[arg(value_name = "HANDLE|NAME", value_parser = NonEmptyStringValueParser::new())]
    pub service: String,

    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Asks the host.
pub fn run(args: KillArgs) -> anyhow::Result<()> {
    let answer = ControlClient::find(args.host.data_dir()?)?.kill_service(&args.service)?;
    print_answer(args.json, &answer, &format!("service {} is killed", answer["killed"]))
}
