//! Many versions of one test guest: copies of its file with another mark; see the guest `changeling`.

use std::fs;
use std::path::PathBuf;

use crate::config::{built, tests_folder};
use crate::host::World;

/// What stands before the mark, which is as long as the rest of these bytes.
const PREFIX: &[u8] = b"changeling=";
const MARKED_BYTES: usize = 64;

/// A copy of the guest `changeling-KIND`, in the world's folder, whose mark is another: a version, and perhaps a harm.
pub fn version(world: &World, kind: &str, mark: &str) -> PathBuf {
    let mut file = fs::read(built(&tests_folder().join("guests"), &format!("changeling-{kind}"))).expect("it is there");
    let mut found = file.windows(PREFIX.len()).enumerate().filter(|(_, bytes)| *bytes == PREFIX).map(|(at, _)| at);
    let (at, other) = (found.next().expect("the guest has a mark"), found.next());
    assert_eq!(other, None, "the guest has one mark");
    let marked = format!("{}{mark}", String::from_utf8_lossy(PREFIX));
    file[at..at + MARKED_BYTES].copy_from_slice(format!("{marked:MARKED_BYTES$}").as_bytes());
    world.write(&format!("{kind}-{}.wasm", mark.replace([' ', ':'], "-")), file)
}
