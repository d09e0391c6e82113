//! A disk without room: on a small file system in memory where this user may mount one, and otherwise in a database that
//! is kept from growing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::scratch::{all_events, last_number, numbered, open};
use super::write::SqliteWriter;
use crate::store::{Batch, SqliteStore, Store, StoreError, StoreWriter};
use crate::world::WorldChange;

/// A file system of 2 MiB; goes with the value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A batch that overwrites nothing.
fn bulky(number: u64) -> Batch {
    let mut batch = numbered(number);
    batch.world.push(WorldChange::Kv {
        space: "rules".into(),
        key: format!("bulk {number}").into(),
        value: Some(vec![7; 100_000]),
    });
    batch
}

/// Commits until there is no room, and answers with the number of the batch for which there was none.
fn fill(writer: &mut dyn StoreWriter) -> u64 {
    for number in 1.. {
        match writer.commit(&[bulky(number)]) {
            Ok(()) => {
                let kept = writer.upkeep(false);
                assert!(!matches!(kept, Err(error) if !error.is_temporary()));
            }
            Err(error) => {
                assert!(error.is_temporary(), "{error:?}");
                assert!(error.to_string().contains("cannot be written: "), "{error}");
                return number;
            }
        }
        assert!(number < 1000, "the disk never gets full");
    }
    unreachable!("the loop ends by itself")
}

#[test]
fn a_full_disk_refuses_a_commit_and_the_same_batch_goes_through_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(directory.path()) else {
        eprintln!("no file system can be mounted here; a database that must not grow stands in for it");
        return refused_by_a_database_that_must_not_grow();
    };
    let room = disk.0.join("room");
    fs::write(&room, vec![1; 800_000]).unwrap();
    let store = open(&disk.0);
    let mut writer = store.writer(vec![]).unwrap();
    let refused = fill(&mut *writer);
    assert!(refused > 1);
    for _ in 0..3 {
        assert!(writer.commit(&[bulky(refused)]).unwrap_err().is_temporary());
    }
    // What was committed is there, for readers and for whoever comes after a kill.
    assert_eq!(last_number(&store.load().unwrap()), refused - 1);
    fs::remove_file(&room).unwrap();
    writer.commit(&[bulky(refused)]).unwrap();
    assert_eq!(all_events(&mut *store.reader().unwrap()).len() as u64, refused);
    drop((writer, store));
    assert_eq!(last_number(&open(&disk.0).load().unwrap()), refused);
}

#[test]
fn a_host_killed_on_a_full_disk_finds_everything_committed_again() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(directory.path()) else {
        return refused_by_a_database_that_must_not_grow();
    };
    let store = open(&disk.0);
    let mut writer = store.writer(vec![]).unwrap();
    let refused = fill(&mut *writer);
    drop((writer, store));
    let store = open(&disk.0);
    assert_eq!(last_number(&store.load().unwrap()), refused - 1);
    // A start needs a little room, and says so.
    fs::write(disk.0.join("rest"), vec![1; 4_000_000]).unwrap_err();
    if let Err(error) = store.writer(vec![]) {
        let text = error.to_string();
        assert!(!matches!(error, StoreError::Damaged { .. } | StoreError::LogLost { .. }), "{text}");
        assert_eq!(last_number(&store.load().unwrap()), refused - 1);
    }
}

#[test]
fn a_disk_without_room_for_a_new_world_is_told_in_one_line_and_left_empty() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(directory.path()) else { return };
    let rest = disk.0.join("rest");
    for free in [0, 4096, 12_288, 32_768, 65_536] {
        fs::write(&rest, vec![1; 4_000_000]).unwrap_err();
        let file = fs::OpenOptions::new().write(true).open(&rest).unwrap();
        file.set_len(file.metadata().unwrap().len() - free).unwrap();
        let store = match SqliteStore::open(&disk.0) {
            Ok(store) => store,
            Err(error) => {
                let text = error.to_string();
                assert!(text.ends_with("cannot be written: the disk is full; make room"), "{free}: {text}");
                assert_eq!(text.lines().count(), 1);
                assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 1, "something stays");
                continue;
            }
        };
        if let Err(error) = store.writer(vec![]) {
            assert!(error.to_string().ends_with("the disk is full; make room"), "{free}: {error}");
        }
        drop(store);
        for entry in fs::read_dir(&disk.0).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
}

#[test]
fn a_backup_onto_a_full_disk_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let mounted = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(mounted.path()) else { return };
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    for number in 1..=40 {
        writer.commit(&[bulky(number)]).unwrap();
    }
    let error = store.reader().unwrap().backup(&disk.0.join("copy.db")).unwrap_err();
    assert!(error.to_string().contains("cannot be written: the disk is full"), "{error}");
    assert_eq!(fs::read_dir(&disk.0).unwrap().count(), 0);
}

fn refused_by_a_database_that_must_not_grow() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    drop(store.writer(vec![]).unwrap());
    let mut writer = SqliteWriter::open(&super::Files::of(directory.path()), vec![]).unwrap();
    writer.limit_pages(100);
    let refused = fill(&mut writer);
    assert!(refused > 1 && writer.commit(&[bulky(refused)]).unwrap_err().is_temporary());
    assert_eq!(last_number(&store.load().unwrap()), refused - 1);
    writer.limit_pages(1000);
    writer.commit(&[bulky(refused)]).unwrap();
    assert_eq!(last_number(&store.load().unwrap()), refused);
}

#[test]
fn a_database_that_must_not_grow_refuses_like_a_full_disk() {
    refused_by_a_database_that_must_not_grow();
}
