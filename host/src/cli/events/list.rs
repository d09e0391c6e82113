//! `wheelhouse events list`: the pending events of the running host, in the order in which they are due. Prints each page
//! as it comes, so that a list may be longer than memory.

use clap::Args;

use crate::admin::{ControlClient, EventFilter, EventPages, EventTable};
use crate::cli::report;
use crate::cli::status::HostArgs;
use crate::clock::{Clock, MonotonicClock};

/// What `wheelhouse events list` is asked.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// Only events that failed too often and wait for a decision
    #[arg(long)]
    pub parked: bool,

    /// Only events of this guest
    #[arg(long, value_name = "NAME")]
    pub guest: Option<String>,

    /// How many events at most; 0 for all of them
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: u64,

    /// Which host.
    #[command(flatten)]
    pub host: HostArgs,

    /// Print one JSON object, with a line for each event
    #[arg(long)]
    pub json: bool,
}

/// Asks and prints.
pub fn run(args: ListArgs) -> anyhow::Result<()> {
    let client = ControlClient::find(args.host.data_dir()?)?;
    let filter = EventFilter { guest: args.guest.clone(), parked_only: args.parked };
    let mut pages = client.events(filter, (args.limit > 0).then_some(args.limit));
    if args.json { print_json(&mut pages) } else { print_table(&mut pages, args.parked, args.guest.as_deref()) }
}

fn print_table(pages: &mut EventPages<'_>, parked: bool, guest: Option<&str>) -> anyhow::Result<()> {
    let mut table = EventTable::new(MonotonicClock::new().wall_ms());
    let mut listed = 0;
    for page in pages.by_ref() {
        let page = page?;
        listed += page.len();
        report::print(&table.page(&page))?;
    }
    if listed == 0 {
        let of = guest.map(|guest| format!(" of a guest \"{guest}\"")).unwrap_or_default();
        report::print(&format!("no event{of} is {}\n", if parked { "parked" } else { "pending" }))?;
    } else if pages.has_more() {
        report::print("and more, which `--limit 0` lists as well\n")?;
    }
    Ok(())
}

fn print_json(pages: &mut EventPages<'_>) -> anyhow::Result<()> {
    let mut text = "{\"events\":[".to_owned();
    let mut separator = "\n";
    for page in pages {
        for event in page? {
            text.push_str(separator);
            text.push_str(&event.to_string());
            separator = ",\n";
        }
        report::print(&text)?;
        text.clear();
    }
    report::print("\n]}\n")
}
