//! A job that computes for so many milliseconds as its argument says, and answers with its version.

use std::time::Duration;

use changeling::Mark;
use wheelhouse_guest::prelude::*;

wheelhouse_guest::job!(run);

fn run(arguments: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    let mark = Mark::read();
    mark.misbehave("run")?;
    let until = clock::now() + Duration::from_millis(std::str::from_utf8(&arguments)?.parse()?);
    while clock::now() < until {
        std::hint::spin_loop();
    }
    Ok(mark.version.clone().into_bytes())
}
