use std::fs;

use super::scratch::{all_events, commit_and_be_killed, files, last_number, numbered, open, sequences};
use crate::store::{Store, StoreError};

#[test]
fn a_backup_put_into_an_empty_directory_is_a_world_and_goes_on_from_there() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    let mut reader = store.reader().unwrap();
    for number in 1..=3 {
        writer.commit(&[numbered(number)]).unwrap();
    }
    let elsewhere = tempfile::tempdir().unwrap();
    reader.backup(&elsewhere.path().join("world.db")).unwrap();
    writer.commit(&[numbered(4)]).unwrap();
    assert_eq!(files(elsewhere.path()).into_keys().collect::<Vec<_>>(), ["world.db"]);

    let copy = open(elsewhere.path());
    let loaded = copy.load().unwrap();
    assert_eq!((last_number(&loaded), loaded.next_sequence, loaded.is_new), (3, 4, false));
    drop(copy);
    commit_and_be_killed(elsewhere.path(), 4..=5);
    let copy = open(elsewhere.path());
    assert_eq!(last_number(&copy.load().unwrap()), 5);
    assert_eq!(sequences(&all_events(&mut *copy.reader().unwrap())), [1, 2, 3, 4, 5]);
}

#[test]
fn a_backup_replaces_nothing_and_leaves_nothing_half_written() {
    let directory = tempfile::tempdir().unwrap();
    commit_and_be_killed(directory.path(), 1..=1);
    let store = open(directory.path());
    let mut reader = store.reader().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let taken = elsewhere.path().join("taken");
    fs::write(&taken, "dear to me").unwrap();
    let text = reader.backup(&taken).unwrap_err().to_string();
    let expected = format!(
        "the backup {} cannot be written: there is a file of that name already; name a new file in a folder with room",
        taken.display()
    );
    assert_eq!(text, expected);
    for hopeless in ["no/such/folder", "taken/inside"] {
        let refused = reader.backup(&elsewhere.path().join(hopeless));
        assert!(matches!(refused, Err(StoreError::Backup { .. })), "{hopeless}");
    }
    assert!(matches!(reader.backup(&directory.path().join("world.db")), Err(StoreError::Backup { .. })));
    assert_eq!(files(elsewhere.path()).len(), 1);
    assert_eq!(fs::read_to_string(&taken).unwrap(), "dear to me");
}

#[test]
fn a_backup_holds_no_commit_up() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut writer = store.writer(vec![]).unwrap();
    writer.commit(&[numbered(1)]).unwrap();
    let mut reader = store.reader().unwrap();
    let copy = directory.path().join("copy.db");
    let (begin, begun) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let backup = scope.spawn(|| {
            begin.send(()).unwrap();
            reader.backup(&copy)
        });
        begun.recv().unwrap();
        for number in 2..=20 {
            writer.commit(&[numbered(number)]).unwrap();
            writer.upkeep(false).unwrap();
        }
        backup.join().unwrap().unwrap();
    });
    assert!(copy.exists());
}
