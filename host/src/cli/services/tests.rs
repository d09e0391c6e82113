use clap::Parser;

use super::kill::KillArgs;
use super::{ServicesArgs, ServicesCommand};
use crate::cli::{Command, CommandLine};

fn parsed(line: &str) -> Result<Command, clap::Error> {
    CommandLine::try_parse_from(line.split(' ')).map(|line| line.command)
}

fn services(line: &str) -> ServicesArgs {
    match parsed(line) {
        Ok(Command::Services(args)) => args,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn services_alone_lists_them_and_takes_the_options_of_every_question() {
    for (line, dead_letters, json) in [
        ("wheelhouse services", false, false),
        ("wheelhouse services --json --config w.toml", false, true),
        ("wheelhouse services --dead-letters", true, false),
        ("wheelhouse services --data-dir d --dead-letters --json", true, true),
    ] {
        let args = services(line);
        assert_eq!((args.dead_letters, args.json, args.command.is_none()), (dead_letters, json, true), "{line}");
    }
}

#[test]
fn a_service_is_killed_by_its_handle_or_by_any_name() {
    for name in ["217745280000", "chat", "a/b", "Ärger"] {
        let args = services(&format!("wheelhouse services kill {name} --json --config w.toml"));
        let Some(ServicesCommand::Kill(KillArgs { service, json, .. })) = args.command else { panic!("{name}") };
        assert_eq!((&*service, json), (name, true));
    }
}

#[test]
fn wrong_usage_has_status_2_and_says_what_is_wrong() {
    for (line, said) in [
        ("wheelhouse services kill", "<HANDLE|NAME>"),
        ("wheelhouse services kill ", "a value is required"),
        ("wheelhouse services kill a b", "unexpected argument 'b'"),
        ("wheelhouse services kill a --dead-letters", "unexpected argument '--dead-letters'"),
        ("wheelhouse services --dead-letters kill a", "cannot be used with"),
        ("wheelhouse services end a", "unrecognized subcommand 'end'"),
        ("wheelhouse services --config w.toml --data-dir d", "cannot be used with"),
    ] {
        let error = parsed(line).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{line}");
        assert!(error.to_string().contains(said), "{line}: {error}");
    }
}
