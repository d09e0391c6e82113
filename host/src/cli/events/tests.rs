use clap::Parser;

use super::EventsCommand;
use crate::cli::{Command, CommandLine};

fn parsed(line: &str) -> Result<Command, clap::Error> {
    CommandLine::try_parse_from(line.split(' ')).map(|line| line.command)
}

fn events(line: &str) -> EventsCommand {
    match parsed(&format!("wheelhouse events {line}")) {
        Ok(Command::Events(command)) => command,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_list_is_of_a_hundred_events_unless_it_is_told_otherwise() {
    for (line, expected) in [
        ("list", (false, None, 100, false)),
        ("list --parked --json", (true, None, 100, true)),
        ("list --guest rules --limit 0", (false, Some("rules"), 0, false)),
        ("list --limit=7 --data-dir d", (false, None, 7, false)),
    ] {
        let EventsCommand::List(list) = events(line) else { panic!("{line}") };
        assert_eq!((list.parked, list.guest.as_deref(), list.limit, list.json), expected, "{line}");
    }
}

#[test]
fn an_event_is_named_by_its_id_or_its_sequence_in_every_command_about_one() {
    for id in ["12", "1767323045678-12"] {
        for command in ["show", "cancel", "retry", "drop"] {
            let args = match events(&format!("{command} {id} --json --config w.toml")) {
                EventsCommand::Show(args) if command == "show" => args,
                EventsCommand::Cancel(args) if command == "cancel" => args,
                EventsCommand::Retry(args) if command == "retry" => args,
                EventsCommand::Drop(args) if command == "drop" => args,
                other => panic!("{command}: {other:?}"),
            };
            assert_eq!((args.sequence, args.json), (12, true), "{command} {id}");
        }
    }
}

#[test]
fn a_save_and_a_backup_take_the_same_options() {
    for line in
        ["save --json --data-dir d", "save --config w.toml", "backup a.db --json", "backup /b/a.db --data-dir d"]
    {
        assert!(parsed(&format!("wheelhouse {line}")).is_ok(), "{line}");
    }
}

#[test]
fn wrong_usage_has_status_2_and_says_what_is_wrong() {
    for (line, said) in [
        ("events", "Usage: wheelhouse events"),
        ("events show", "<ID>"),
        ("events show ripen", "an event has an id like 1767323045678-12; `wheelhouse events list` prints them"),
        ("events drop 1-2-3", "invalid value '1-2-3' for '<ID>'"),
        ("events drop 1 2", "unexpected argument '2'"),
        ("events forget 1", "unrecognized subcommand 'forget'"),
        ("events list --limit=-1", "invalid value '-1' for '--limit <N>'"),
        ("events list --limit many", "invalid value 'many' for '--limit <N>'"),
        ("events list --config w.toml --data-dir d", "cannot be used with"),
        ("backup", "<FILE>"),
        ("save now", "unexpected argument 'now'"),
    ] {
        let error = parsed(&format!("wheelhouse {line}")).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(said), "{line}: {error}");
    }
}
