//! The world between two runs of the host: one file in the data directory, written when the host stops and read when it
//! starts. Written beside the old one and then moved over it, so that there is always a whole one; behind a checksum, so
//! that a damaged one is never taken for a world.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::simulation::{Cx, HostSimulation};
use crate::world::{ThinkerId, WorldSnapshot};

const FILE_NAME: &str = "world.postcard";
/// How the file begins: this, the layout and the checksum (CRC-32) of what follows, each number in four bytes, the low
/// one first.
const MAGIC: [u8; 8] = *b"WHEELHSE";
const HEADER_BYTES: usize = MAGIC.len() + 4 + 4;
/// Raised when the layout of [`WorldSave`] changes.
const LAYOUT: u32 = 1;

/// Everything that the next run begins with.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorldSave {
    pub world: WorldSnapshot,
    /// Guest names by thinker id: ids are places in a configuration, which may change.
    pub thinkers: Vec<(ThinkerId, String)>,
    /// What guests saved, by name.
    pub states: Vec<(String, Vec<u8>)>,
}

/// What the save of an earlier run holds of guests that this run does not have, or could not load. It goes into the next
/// save as it is, so that a run without a guest costs nothing.
#[derive(Debug, Default)]
pub struct Kept {
    pub thinkers: Vec<(ThinkerId, String)>,
    pub states: Vec<(String, Vec<u8>)>,
}

/// Why a saved world cannot be used, or written.
#[derive(Debug, thiserror::Error)]
pub enum WorldFileError {
    #[error("the saved world {file} cannot be read: {error}; mend its permissions or move it away")]
    Read { file: PathBuf, error: std::io::Error },
    #[error("the saved world {file} is damaged ({error}) and was left as it is; move it away to begin a new world")]
    Damaged { file: PathBuf, error: &'static str },
    #[error("the saved world {file} was written by a newer Wheelhouse (layout {layout}); run that one")]
    Newer { file: PathBuf, layout: u32 },
    #[error("the world could not be saved to {file}: {error}; make room or mend the permissions")]
    Write { file: PathBuf, error: std::io::Error },
}

/// Reads the saved world, if there is one.
pub fn read(data_dir: &Path) -> Result<Option<WorldSave>, WorldFileError> {
    let file = data_dir.join(FILE_NAME);
    let bytes = match fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(WorldFileError::Read { file, error }),
    };
    match decode(&bytes) {
        Ok(save) => Ok(Some(save)),
        Err(Undecoded::Newer { layout }) => Err(WorldFileError::Newer { file, layout }),
        Err(Undecoded::Damaged(error)) => Err(WorldFileError::Damaged { file, error }),
    }
}

enum Undecoded {
    Newer { layout: u32 },
    Damaged(&'static str),
}

fn decode(bytes: &[u8]) -> Result<WorldSave, Undecoded> {
    let Some((header, content)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(Undecoded::Damaged("it is cut off"));
    };
    let Some(numbers) = header.strip_prefix(&MAGIC) else {
        return Err(Undecoded::Damaged("it does not begin as a saved world does"));
    };
    let number = |at: usize| u32::from_le_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
    let (layout, checksum) = (number(0), number(4));
    if layout > LAYOUT {
        return Err(Undecoded::Newer { layout });
    }
    if checksum != crc32fast::hash(content) {
        return Err(Undecoded::Damaged("its checksum is wrong"));
    }
    postcard::from_bytes(content).map_err(|_| Undecoded::Damaged("it is not laid out as its number says"))
}

/// Writes the saved world.
pub fn write(data_dir: &Path, save: &WorldSave) -> Result<(), WorldFileError> {
    let file = data_dir.join(FILE_NAME);
    let new_file = file.with_extension("new");
    let written = encode(save).and_then(|bytes| {
        let mut out = File::create(&new_file)?;
        out.write_all(&bytes)?;
        out.sync_all()?;
        fs::rename(&new_file, &file)?;
        File::open(data_dir)?.sync_all()
    });
    written.map_err(|error| WorldFileError::Write { file, error })
}

fn encode(save: &WorldSave) -> std::io::Result<Vec<u8>> {
    let content = postcard::to_stdvec(save).map_err(std::io::Error::other)?;
    let numbers = [LAYOUT, crc32fast::hash(&content)].map(u32::to_le_bytes);
    Ok([MAGIC.as_slice(), numbers.as_flattened(), &content].concat())
}

impl HostSimulation {
    /// Everything that is worth keeping.
    pub(super) fn save(&mut self, cx: &mut Cx<'_>) -> WorldSave {
        let mut states = self.save_guests(cx);
        states.extend(self.kept.states.iter().cloned());
        let stage = self.stage();
        let mut world = stage.world.snapshot();
        world.forget_connections();
        let mut thinkers: Vec<_> = stage.thinkers.iter().map(|(name, id)| (*id, name.clone())).collect();
        thinkers.extend(self.kept.thinkers.iter().cloned());
        WorldSave { world, thinkers, states }
    }
}

impl WorldSave {
    /// Gives each NPC the id that its thinker, by name, has in this run.
    pub fn rename_thinkers(&mut self, mut now: impl FnMut(&str) -> ThinkerId) {
        let renamed: Vec<(ThinkerId, ThinkerId)> =
            self.thinkers.iter().map(|(before, name)| (*before, now(name))).collect();
        for entity in &mut self.world.entities {
            if let Some(thinker) = entity.thinker {
                entity.thinker = renamed.iter().find(|(before, _)| *before == thinker).map(|(_, now)| *now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Position, Spawn, World, WorldLimits};

    fn save() -> WorldSave {
        let mut world = World::new(WorldLimits::default());
        let npc = |thinker| Spawn {
            kind: 2,
            position: Position::new(0, 1, 2),
            thinker: Some(ThinkerId(thinker)),
            connection: None,
        };
        world.transact(|world| world.spawn(npc(1)).and_then(|_| world.spawn(npc(2)))).unwrap();
        WorldSave {
            world: world.snapshot(),
            thinkers: vec![(ThinkerId(1), "sheep".to_owned()), (ThinkerId(2), "wolf".to_owned())],
            states: vec![("rules".to_owned(), vec![1, 2, 3])],
        }
    }

    #[test]
    fn what_was_written_is_read_and_a_new_directory_holds_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert!(read(directory.path()).unwrap().is_none());
        let save = save();
        write(directory.path(), &save).unwrap();
        write(directory.path(), &save).unwrap();
        let read = read(directory.path()).unwrap().unwrap();
        assert_eq!((read.world, read.thinkers, read.states), (save.world, save.thinkers, save.states));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing half-written is left beside it");
    }

    #[test]
    fn a_damaged_file_is_refused_by_name_wherever_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &save()).unwrap();
        let file = directory.path().join(FILE_NAME);
        let whole = fs::read(&file).unwrap();
        for length in 0..whole.len() {
            fs::write(&file, &whole[..length]).unwrap();
            let refused = read(directory.path()).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("the saved world {} is damaged", file.display())), "{refused}");
        }
    }

    #[test]
    fn a_file_with_any_byte_changed_or_added_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &save()).unwrap();
        let file = directory.path().join(FILE_NAME);
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x40;
            fs::write(&file, &changed).unwrap();
            assert!(read(directory.path()).is_err(), "byte {at}");
        }
        for other in [[whole.as_slice(), &[0]].concat(), vec![0; whole.len()]] {
            fs::write(&file, &other).unwrap();
            assert!(matches!(read(directory.path()), Err(WorldFileError::Damaged { .. })));
        }
    }

    #[test]
    fn a_file_of_a_newer_layout_is_left_to_whoever_knows_it() {
        let directory = tempfile::tempdir().unwrap();
        let newer = [MAGIC.as_slice(), &(LAYOUT + 1).to_le_bytes(), &[0; 4]].concat();
        fs::write(directory.path().join(FILE_NAME), newer).unwrap();
        assert!(matches!(read(directory.path()), Err(WorldFileError::Newer { layout, .. }) if layout == LAYOUT + 1));
    }

    #[test]
    fn npcs_keep_their_thinkers_by_name_when_the_configuration_changes() {
        let mut save = save();
        save.rename_thinkers(|name| ThinkerId(if name == "wolf" { 1 } else { 9 }));
        let thinkers: Vec<_> = save.world.entities.iter().map(|entity| entity.thinker).collect();
        assert_eq!(thinkers, [Some(ThinkerId(9)), Some(ThinkerId(1))]);
    }
}
