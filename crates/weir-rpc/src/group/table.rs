//! The table of a group: a file that says where each rank listens.
//!
//! In: a directory and the name of a group. Out: ranks, their addresses, how many tags they have; entries
//! that come and go, one writer at a time. The form is that of the older programs of the family, with
//! fields of weir's own behind the address. Not here: where the directory is.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use weir_schema::{RankTags, RpcTable};

use crate::auth::nonce;
use crate::group::address::RpcAddress;
use crate::group::nonce_text;
use crate::{DerCode, RpcError};

/// End of the file's name.
const SUFFIX: &str = ".attach_info_tmp";
/// Longest table, in bytes.
const LONGEST: u64 = 64 << 20;
/// Longest line, in bytes.
const LONGEST_LINE: usize = 64 << 10;
/// Time for which a process may hold the table's lock: a server that starts on a fabric needs some of it.
const LOCKED: Duration = Duration::from_secs(10);
/// The same where nobody knows who holds it, as on other machines, one after the other.
const LOCKED_UNKNOWN: Duration = Duration::from_secs(60);
/// Pause between two looks whether the lock is free.
const LOOK: Duration = Duration::from_millis(10);

/// A rank of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMember {
    /// Where it listens, each with another transport.
    pub addresses: Vec<RpcAddress>,
    /// Number of its tags, where the table says so.
    pub tags: Option<u32>,
    /// Its machine.
    pub node: Option<String>,
    /// Which run of the server it is.
    pub nonce: Option<String>,
}

impl GroupMember {
    /// True if it is on this machine, which those are that say nothing of theirs.
    pub fn is_on(&self, node: &str) -> bool {
        self.node.as_deref().is_none_or(|own| own == node)
    }
}

/// The ranks of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTable {
    /// By rank.
    pub members: BTreeMap<u32, GroupMember>,
    /// The size that it says is another: not all of a launcher's ranks are there yet, or who wrote it has
    /// lost or kept an entry.
    pub said_size: Option<u64>,
}

impl GroupTable {
    /// The file of a group in a directory.
    pub fn path(directory: &Path, group: &str) -> PathBuf {
        directory.join(format!("{group}{SUFFIX}"))
    }

    /// Reads a group's table.
    ///
    /// # Errors
    /// There is none, others may write it, or a line makes no sense: with file and line.
    pub fn read(directory: &Path, group: &str) -> Result<Self, RpcError> {
        let path = Self::path(directory, group);
        let refuse = |why: String| {
            RpcError::new(
                DerCode::NotThere,
                format!("group table {}: {why}", path.display()),
            )
        };
        let of_file = |error: std::io::Error| match error.kind() {
            ErrorKind::PermissionDenied => {
                let help = "`weir rpc serve --public` lets everyone read it";
                refuse(format!("{error} ({help})"))
            }
            ErrorKind::NotFound => {
                let help = "`weir rpc serve` starts a server and writes it";
                refuse(format!("{error} ({help})"))
            }
            _ => refuse(error.to_string()),
        };
        // A pipe that somebody has put there would wait for its other end.
        let mut options = File::options();
        options
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let mut file = options.open(&path).map_err(of_file)?;
        let facts = file.metadata().map_err(of_file)?;
        if !facts.is_file() {
            return Err(refuse("it is no regular file".to_owned()));
        }
        if facts.permissions().mode() & 0o002 != 0 {
            return Err(refuse("everyone may write it (chmod o-w)".to_owned()));
        }
        if facts.len() > LONGEST {
            return Err(refuse(format!("longer than {LONGEST} bytes")));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(of_file)?;
        Self::parse(&text, group).map_err(|(line, why)| {
            let message = format!("group table {}:{line}: {why}", path.display());
            RpcError::new(DerCode::NotThere, message)
        })
    }

    /// A table's text.
    ///
    /// # Errors
    /// The number of a line and what is wrong with it.
    pub fn parse(text: &str, group: &str) -> Result<Self, (usize, String)> {
        let lines = || (1..).zip(text.lines().map(str::trim));
        if let Some((number, _)) = lines().find(|(_, line)| line.len() > LONGEST_LINE) {
            return Err((number, format!("it is longer than {LONGEST_LINE} bytes")));
        }
        let mut lines = lines().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (number, line) = lines.next().ok_or((1, "it is empty".to_owned()))?;
        // A name may have spaces.
        let name = line.split_once(char::is_whitespace);
        let name = name.map_or(line, |(_, name)| name.trim());
        if name != group.trim() && line != group.trim() {
            return Err((number, format!("it is of group `{name}`, not `{group}`")));
        }
        let (number, line) = lines
            .next()
            .ok_or((number + 1, "no size follows".to_owned()))?;
        let size: u64 = last_word(line)
            .parse()
            .map_err(|_| (number, format!("`{line}` is no size")))?;
        let mut table = Self::default();
        for (number, line) in lines {
            if matches!(line, "all" | "self") && table.members.is_empty() {
                continue;
            }
            let (rank, member) = member(line).map_err(|why| (number, why))?;
            if table.members.insert(rank, member).is_some() {
                return Err((number, format!("rank {rank} stands there twice")));
            }
        }
        table.said_size = (size != table.members.len() as u64).then_some(size);
        Ok(table)
    }

    /// Ranks and how many tags each has, in order.
    pub fn ranks(&self) -> Vec<RankTags> {
        rank_tags(&self.members)
    }

    /// Its text. `is_plain`: without fields that older programs would take for more ranks.
    pub fn text(&self, group: &str, is_plain: bool) -> String {
        let there = self.members.len() as u64;
        let size = self.said_size.map_or(there, |said| said.max(there));
        let mut text = format!("name {group}\nsize {size}\nall\n");
        for (rank, member) in &self.members {
            let mut addresses = member.addresses.iter();
            let Some(first) = addresses.next() else {
                continue;
            };
            let _ = write!(text, "{rank} {first}");
            if !is_plain {
                let also: Vec<_> = addresses.map(ToString::to_string).collect();
                let fields = [
                    ("tags", member.tags.map(|tags| tags.to_string())),
                    ("node", member.node.clone()),
                    ("nonce", member.nonce.clone()),
                    ("also", (!also.is_empty()).then(|| also.join(","))),
                ];
                for (name, value) in fields {
                    if let Some(value) = value {
                        let _ = write!(text, " {name}={value}");
                    }
                }
            }
            text.push('\n');
        }
        text
    }

    /// The lowest rank that nobody has.
    pub fn free_rank(&self) -> u32 {
        let taken = self.members.keys().zip(0..);
        let first_gap = taken.clone().find(|(rank, place)| **rank != *place);
        first_gap.map_or_else(
            || u32::try_from(self.members.len()).unwrap_or(0),
            |(_, place)| place,
        )
    }
}

/// Ranks and how many tags each has, in order.
pub(super) fn rank_tags(members: &BTreeMap<u32, GroupMember>) -> Vec<RankTags> {
    let of = |(rank, member): (&u32, &GroupMember)| RankTags {
        rank: *rank,
        tags: member.tags.unwrap_or(1),
    };
    members.iter().map(of).collect()
}

/// The first word is skipped, whatever it is; it may be missing.
fn last_word(line: &str) -> &str {
    line.split_whitespace().last().unwrap_or_default()
}

fn member(line: &str) -> Result<(u32, GroupMember), String> {
    let mut words = line.split_whitespace();
    let (Some(rank), Some(address)) = (words.next(), words.next()) else {
        return Err(format!("`{line}` is no `<rank> <address>`"));
    };
    let rank = rank.parse().map_err(|_| format!("`{rank}` is no rank"))?;
    let address = reachable(address).map_err(|why| why.to_string())?;
    let mut member = GroupMember {
        addresses: vec![address],
        ..GroupMember::default()
    };
    for word in words {
        match word.split_once('=') {
            Some(("tags", tags)) => {
                let tags = tags
                    .parse()
                    .map_err(|_| format!("`{word}` is no number of tags"))?;
                member.tags = Some(tags);
            }
            Some(("node", node)) => member.node = Some(node.to_owned()),
            Some(("nonce", nonce)) => member.nonce = Some(nonce.to_owned()),
            Some(("also", more)) => {
                let more = more.split(',').map(reachable);
                let more: Result<Vec<RpcAddress>, RpcError> = more.collect();
                member
                    .addresses
                    .extend(more.map_err(|why| why.to_string())?);
            }
            // A field of a newer version.
            Some(_) => {}
            None => return Err(format!("`{word}` is no field")),
        }
    }
    Ok((rank, member))
}

fn reachable(text: &str) -> Result<RpcAddress, RpcError> {
    let address: RpcAddress = text.parse()?;
    address.check_reachable()?;
    Ok(address)
}

/// Changes the table, alone: others wait. A missing one is an empty one. A table without members
/// stays, and says so.
///
/// # Errors
/// It cannot be read or written, or the change is refused.
pub fn change_table<R>(
    place: &RpcTable,
    change: impl FnOnce(&mut GroupTable) -> Result<R, RpcError>,
) -> Result<R, RpcError> {
    let path = GroupTable::path(&place.directory, &place.group);
    let io = |error| RpcError::io(format_args!("write {}", path.display()))(error);
    let lock = place
        .directory
        .join(format!("{}{SUFFIX}.lock", place.group));
    let lock_file = own_file().truncate(false).open(&lock).map_err(io)?;
    // Given back with the file.
    wait_for_lock(&lock_file, &lock, [LOCKED, LOCKED_UNKNOWN])?;
    let mut table = if path.exists() {
        GroupTable::read(&place.directory, &place.group)?
    } else {
        GroupTable::default()
    };
    let result = change(&mut table)?;
    let text = table.text(&place.group, place.is_plain);
    let (group, mark) = (&place.group, nonce_text(nonce().map_err(io)?));
    let new = place.directory.join(format!(".{group}{SUFFIX}.{mark}"));
    let written = write_table(place, &new, &text).and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.map_err(io)?;
    Ok(result)
}

/// Locks a file, or says who has it. Many servers may start at the same time: the time begins anew with each that
/// gets the lock, as far as the kernel's list has them.
fn wait_for_lock(file: &File, path: &Path, limits: [Duration; 2]) -> Result<(), RpcError> {
    let number = file
        .metadata()
        .map_err(RpcError::io("look at a lock"))?
        .ino();
    let (mut last, mut since) = (None, Instant::now());
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => {
                return Err(RpcError::io(format_args!("lock {}", path.display()))(error));
            }
            Err(TryLockError::WouldBlock) => {}
        }
        // Without the list the holder has no name, and nothing else changes.
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        let now = holder(&locks, number).map(str::to_owned);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        let most = limits[usize::from(last.is_none())];
        if since.elapsed() > most {
            let who = last.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"));
            let why = format!(
                "{who} has held this lock for more than {} s",
                most.as_secs()
            );
            let why = format!("{}: {why}", path.display());
            return Err(RpcError::new(DerCode::Busy, why));
        }
        std::thread::sleep(LOOK);
    }
}

/// The process that holds the lock of a file, by the kernel's list: `1: FLOCK ADVISORY WRITE 77 fe:00:5 0 EOF`.
fn holder(locks: &str, inode: u64) -> Option<&str> {
    let mut held = locks
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_it = |place: &&str| place.rsplit(':').next() == Some(inode.to_string().as_str());
    held.find_map(|words| match words[..] {
        [_, "FLOCK", _, _, process, ref place, ..] if is_it(place) => Some(process),
        _ => None,
    })
}

fn write_table(place: &RpcTable, path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = own_file().create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    if place.is_public {
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

/// Takes entries out, unless another run of a server has them by now.
///
/// # Errors
/// As of [`change_table`].
pub fn remove_from_table(place: &RpcTable, ranks: &[u32], nonce: &str) -> Result<(), RpcError> {
    change_table(place, |table| {
        table.members.retain(|rank, member| {
            let is_other = member.nonce.as_deref().is_some_and(|other| other != nonce);
            !ranks.contains(rank) || is_other
        });
        // Whoever has gone is missed by nobody.
        table.said_size = None;
        Ok(())
    })
}

/// Of this user alone from the beginning. In a directory that others write to, a link could lead anywhere, and a pipe
/// would wait for its other end.
fn own_file() -> OpenOptions {
    let mut options = File::options();
    options.create(true).write(true).mode(0o600);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed());
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "name daos_server\nsize 2\nall\n# a note\n0 tcp://127.0.0.1:7000 tags=3 \
                         node=a nonce=0f also=shm:///run/weir/0\n2 tcp://127.0.0.1:7002\n";

    #[test]
    fn a_table_is_read_and_written_the_same() {
        let table = GroupTable::parse(TABLE, "daos_server").unwrap();
        assert_eq!(table.said_size, None);
        assert_eq!(table.members[&0].tags, Some(3));
        assert_eq!(table.members[&0].addresses[1].scheme, "shm");
        let ranks: Vec<_> = table
            .ranks()
            .iter()
            .map(|one| (one.rank, one.tags))
            .collect();
        assert_eq!(ranks, [(0, 3), (2, 1)]);
        assert_eq!(table.free_rank(), 1);
        let again = GroupTable::parse(&table.text("daos_server", false), "daos_server").unwrap();
        assert_eq!(again, table);
        let plain = table.text("daos_server", true);
        assert!(plain.contains("\n0 tcp://127.0.0.1:7000\n"), "{plain}");
        let bare = "daos_server\n1\n0 tcp://127.0.0.1:7000\n";
        assert_eq!(
            GroupTable::parse(bare, "daos_server")
                .unwrap()
                .members
                .len(),
            1
        );
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line() {
        for (text, line, why) in [
            ("", 1, "empty"),
            ("name other\nsize 0\nall\n", 1, "group `other`"),
            ("name g\nsize many\n", 2, "no size"),
            ("name g\nsize 1\nall\n0\n", 4, "<rank> <address>"),
            ("name g\nsize 1\nall\nx tcp://a:1\n", 4, "no rank"),
            ("name g\nsize 1\nall\n0 a:1\n", 4, "TRANSPORT://PLACE"),
            (
                "name g\nsize 2\nall\n0 tcp://a:1\n0 tcp://a:2\n",
                5,
                "twice",
            ),
            ("name g\nsize 1\nall\n0 tcp://a:1 junk\n", 4, "no field"),
            (
                "name g\nsize 1\nall\n0 tcp://a:70000\n",
                4,
                "from 1 to 65535",
            ),
            (&"x".repeat(1 << 20), 1, "longer than 65536 bytes"),
        ] {
            let (number, found) = GroupTable::parse(text, "g").unwrap_err();
            assert_eq!(number, line, "{text}");
            assert!(found.contains(why), "{found}");
        }
        let odd = GroupTable::parse("name g\nsize 3\nall\n0 tcp://a:1\n", "g").unwrap();
        assert_eq!(odd.said_size, Some(3));
    }

    /// A directory for a test, with the place of a group's table in it.
    fn place(name: &str, is_public: bool) -> (PathBuf, RpcTable) {
        let directory = format!("weir-table-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        fs::create_dir_all(&directory).unwrap();
        let place = RpcTable {
            directory: directory.clone(),
            group: "g".to_owned(),
            is_public,
            is_plain: false,
        };
        (directory, place)
    }

    #[test]
    fn the_name_of_a_group_may_have_spaces() {
        for group in ["a b", "b", " a "] {
            let text = GroupTable::default().text(group, false);
            GroupTable::parse(&text, group).unwrap();
        }
        assert!(GroupTable::parse("name a b\nsize 0\nall\n", "b").is_err());
        GroupTable::parse("a b\n0\n", "a b").unwrap();
    }

    #[test]
    fn a_size_that_was_said_stays_until_somebody_leaves() {
        let text = "name g\nsize 3\nall\n0 tcp://a:1\n1 tcp://a:2\n";
        let (directory, place) = place("size", false);
        fs::write(GroupTable::path(&directory, "g"), text).unwrap();
        let size = |table: &mut GroupTable| Ok(table.said_size);
        assert_eq!(change_table(&place, size), Ok(Some(3)));
        assert_eq!(change_table(&place, size), Ok(Some(3)));
        remove_from_table(&place, &[1], "x").unwrap();
        assert_eq!(change_table(&place, size), Ok(None));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn links_that_others_put_into_the_directory_lead_nowhere() {
        for is_public in [false, true] {
            let (directory, place) = place("links", is_public);
            let victim = directory.join("victim");
            fs::write(&victim, "precious").unwrap();
            let planted = directory.join("g.attach_info_tmp.lock");
            std::os::unix::fs::symlink(&victim, &planted).unwrap();
            let refused = change_table(&place, |_| Ok(())).unwrap_err();
            assert!(refused.message.contains("symbolic link"), "{refused}");
            fs::remove_file(&planted).unwrap();
            change_table(&place, |_| Ok(())).unwrap();
            let mode = |name: &str| {
                let facts = fs::metadata(directory.join(name)).unwrap();
                facts.permissions().mode() & 0o777
            };
            assert_eq!(mode("g.attach_info_tmp.lock"), 0o600);
            let table = if is_public { 0o644 } else { 0o600 };
            assert_eq!(mode("g.attach_info_tmp"), table);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 3);
            fs::remove_dir_all(&directory).unwrap();
        }
    }

    /// Opening one would wait for its other end.
    #[test]
    fn a_pipe_is_no_table_and_no_lock() {
        let (directory, place) = place("pipes", false);
        for name in ["g.attach_info_tmp", "g.attach_info_tmp.lock"] {
            let pipe = directory.join(name);
            let _ = fs::remove_file(&pipe);
            let made = std::process::Command::new("mkfifo").arg(&pipe).status();
            assert!(made.unwrap().success());
            let why = change_table(&place, |_| Ok(())).unwrap_err().message;
            let known = ["it is no regular file", "No such device or address"];
            assert!(known.iter().any(|known| why.contains(known)), "{why}");
            fs::remove_file(&pipe).unwrap();
        }
        change_table(&place, |_| Ok(())).unwrap();
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn entries_come_and_go_and_those_of_a_later_run_stay() {
        let (directory, place) = place("entries", false);
        let member = |nonce: &str| GroupMember {
            addresses: vec!["tcp://127.0.0.1:1".parse().unwrap()],
            tags: Some(1),
            node: None,
            nonce: Some(nonce.to_owned()),
        };
        for (rank, nonce) in [(0, "a"), (1, "b")] {
            let add = |table: &mut GroupTable| Ok(table.members.insert(rank, member(nonce)));
            change_table(&place, add).unwrap();
        }
        remove_from_table(&place, &[0, 1], "a").unwrap();
        let left = GroupTable::read(&directory, "g").unwrap();
        assert_eq!(left.members.keys().collect::<Vec<_>>(), [&1]);
        let path = GroupTable::path(&directory, "g");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let refused = GroupTable::read(&directory, "g").unwrap_err();
        assert!(refused.message.contains("chmod o-w"), "{refused}");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_lock_that_somebody_keeps_is_not_waited_for_without_end() {
        let (directory, _) = place("kept", false);
        let path = directory.join("lock");
        let held = own_file().open(&path).unwrap();
        held.lock().unwrap();
        let (said, heard) = std::sync::mpsc::channel();
        let second = path.clone();
        std::thread::spawn(move || {
            let file = own_file().open(&second).unwrap();
            let most = [Duration::from_millis(20); 2];
            said.send(wait_for_lock(&file, &second, most)).unwrap();
        });
        let waited = heard.recv_timeout(Duration::from_secs(20));
        let why = waited.expect("it gives up").unwrap_err();
        let text = &why.message;
        assert!(text.contains("has held this lock for more than"), "{why}");
        assert!(text.contains(&path.display().to_string()), "{why}");
        drop(held);
        let file = own_file().open(&path).unwrap();
        wait_for_lock(&file, &path, [LOCKED; 2]).unwrap();
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn the_holder_of_a_lock_is_found_by_its_file() {
        let locks = "1: POSIX  ADVISORY  WRITE 5 fe:00:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 6 fe:00:78 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 7 fe:00:77 0 EOF\n";
        assert_eq!(holder(locks, 77), Some("7"));
        assert_eq!(holder(locks, 79), None);
    }
}
