//! File systems of a test's own: a small one that can be filled, and one that takes no writes. Mounting needs rights that
//! not every machine gives; where it is not allowed there is nothing to test, and the test says so. Where `CI` is set,
//! as services that run tests for others do, it fails instead: there nobody would read that it tested nothing.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted folder. It is unmounted when this is dropped, so it must live longer than what runs on it.
pub struct Mount {
    folder: PathBuf,
}

impl Mount {
    /// Mounts an empty file system in memory with so much room over a folder; none where mounting is not allowed.
    pub fn small(folder: &Path, kilobytes: u32) -> Option<Self> {
        let options = format!("size={kilobytes}k");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder);
        Self::made_by(&mut command, folder)
    }

    /// Mounts a folder over itself so that nothing in it can be changed; none where mounting is not allowed.
    pub fn read_only(folder: &Path) -> Option<Self> {
        let mut command = Command::new("mount");
        command.arg("--bind").arg(folder).arg(folder);
        let mount = Self::made_by(&mut command, folder)?;
        if mount.remount("bind,ro") {
            return Some(mount);
        }
        refused();
        None
    }

    /// Gives a small file system more or less room.
    pub fn resize(&self, kilobytes: u32) {
        assert!(self.remount(&format!("size={kilobytes}k")), "{} takes no other size", self.folder.display());
    }

    fn made_by(command: &mut Command, folder: &Path) -> Option<Self> {
        if succeeds(command) {
            return Some(Self { folder: folder.to_owned() });
        }
        refused();
        None
    }

    fn remount(&self, options: &str) -> bool {
        succeeds(Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.folder))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a program that a failed test left behind may still have files open there.
        succeeds(Command::new("umount").arg("--lazy").arg(&self.folder));
    }
}

/// Says that nothing can be tested, and where `CI` is set fails for that.
fn refused() {
    let must_run = env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(
        !must_run,
        "this user may not mount file systems, and where CI is set these tests must run: run them as root"
    );
    eprintln!("nothing is tested here: this user may not mount file systems");
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
