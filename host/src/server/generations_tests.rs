use super::*;
use crate::guest::GuestKind;

struct World {
    folder: tempfile::TempDir,
    guest: GuestSettings,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let guest = GuestSettings::new("rules", GuestKind::Game, folder.path().join("rules.wasm"));
        Self { folder, guest }
    }

    fn book(&self) -> Generations {
        Generations::open(self.folder.path().join("generations"), 3)
    }

    /// Starts a host whose configured file has that text; what it runs. Text with a `!` cannot be run.
    fn start(&self, book: &Generations, configured: &str) -> (Option<String>, u64) {
        fs::write(&self.guest.file, configured).unwrap();
        let load = |bytes: &[u8], _: &Path| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            (!text.contains('!')).then_some(text)
        };
        book.begin(&self.guest, configured.as_bytes(), 1000, load)
    }

    fn swap(&self, book: &Generations, text: &str) -> u64 {
        let number = book.next_number("rules");
        let file = self.folder.path().join("new.wasm");
        book.note_begun(&Begun { guest: &self.guest, number, bytes: text.as_bytes(), file: &file, now_ms: 2000 });
        number
    }

    fn fates(&self, book: &Generations) -> Vec<(u64, Fate)> {
        book.of("rules").into_iter().map(|generation| (generation.number, generation.fate)).collect()
    }
}

fn ran(text: &str, number: u64) -> (Option<String>, u64) {
    (Some(text.to_owned()), number)
}

#[test]
fn what_was_swapped_in_runs_after_a_restart_until_the_configured_file_changes() {
    let world = World::new();
    let book = world.book();
    assert_eq!(world.start(&book, "one"), ran("one", 1));
    assert_eq!(world.swap(&book, "two"), 2);
    let later = world.book();
    assert_eq!(world.start(&later, "one"), ran("two", 2));
    assert_eq!(world.start(&world.book(), "three"), ran("three", 3));
    assert_eq!(world.start(&world.book(), "three"), ran("three", 3));
}

#[test]
fn a_file_that_cannot_be_run_gives_way_to_what_ran_last() {
    let world = World::new();
    let book = world.book();
    assert_eq!(world.start(&book, "broken!"), (None, 1));
    assert_eq!(world.start(&book, "one"), ran("one", 1));
    assert_eq!(world.start(&world.book(), "broken!"), ran("one", 1));
    assert_eq!(world.start(&world.book(), "one"), ran("one", 1));
}

#[test]
fn a_kept_file_that_was_changed_is_not_run() {
    let world = World::new();
    let book = world.book();
    world.start(&book, "one");
    world.swap(&book, "two");
    fs::write(world.folder.path().join("generations/rules/2.wasm"), "evil").unwrap();
    assert_eq!(world.start(&world.book(), "one"), ran("one", 3));
}

#[test]
fn only_so_many_are_kept_with_their_files_and_numbers_are_not_used_again() {
    let world = World::new();
    let book = world.book();
    world.start(&book, "one");
    for text in ["two", "three", "four"] {
        world.swap(&book, text);
    }
    let expected = [(2, Fate::Replaced), (3, Fate::Replaced), (4, Fate::Running)];
    assert_eq!(world.fates(&world.reopened()), expected);
    let kept = world.folder.path().join("generations/rules");
    assert!(!kept.join("1.wasm").exists() && kept.join("2.wasm").exists());
    assert_eq!(world.swap(&book, "five"), 5);
}

impl World {
    fn reopened(&self) -> Generations {
        let book = self.book();
        self.start(&book, "one");
        book
    }
}

#[test]
fn going_back_passes_over_what_has_failed() {
    let world = World::new();
    let book = world.book();
    world.start(&book, "one");
    world.swap(&book, "two");
    book.note_returned(&world.guest, 2, 1, Fate::Failed("a trap".to_owned()), 3000);
    assert_eq!(world.swap(&book, "three"), 3);
    assert_eq!(book.before("rules").map(|before| before.number), Some(1));
    book.note_returned(&world.guest, 3, 1, Fate::TakenBack, 4000);
    let expected = [(1, Fate::Running), (2, Fate::Failed("a trap".to_owned())), (3, Fate::TakenBack)];
    assert_eq!(world.fates(&book), expected);
    assert_eq!(book.before("rules"), None);
    assert_eq!(world.start(&world.book(), "one"), ran("one", 1));
}

#[test]
fn a_generation_comes_back_with_its_code_and_what_it_saved() {
    let world = World::new();
    let book = world.book();
    world.start(&book, "one");
    world.swap(&book, "two");
    book.keep_state(&world.guest, 1, Some(b"saved"));
    let before = book.before("rules").unwrap();
    assert_eq!(book.code("rules", &before).unwrap(), b"one");
    assert_eq!(book.state("rules", 1).as_deref(), Some(&b"saved"[..]));
    book.keep_state(&world.guest, 1, None);
    assert_eq!(book.state("rules", 1), None);
}
