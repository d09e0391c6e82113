//! A job that misbehaves. Its arguments are the name of a harm (see `mischief`), or one of those below; `sum N` is the
//! well-behaved one.

use std::hint::black_box;

use wheelhouse_guest::prelude::*;

wheelhouse_guest::job!(run);

fn run(arguments: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    let arguments = std::str::from_utf8(&arguments)?;
    match arguments.split_once(' ').unwrap_or((arguments, "")) {
        ("big-result", _) => Ok(mischief::too_many_bytes()),
        ("big-error", _) => Err(Refusal::new(mischief::too_long_text())),
        ("fail", _) => refuse!("this job fails as it was told"),
        ("sum", number) => sum(number.parse()?),
        (name, _) if mischief::commit(name) => Ok(format!("survived {name}").into_bytes()),
        (name, _) => refuse!("this job cannot do {name:?}"),
    }
}

/// Honest work of a known length: one round takes about a nanosecond.
fn sum(rounds: u64) -> Result<Vec<u8>, Refusal> {
    let sum = (0..rounds).fold(0_u64, |sum, round| black_box(sum ^ round.wrapping_mul(31)));
    Ok(format!("{rounds} rounds: {sum}").into_bytes())
}
