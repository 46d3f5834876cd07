//! The table of a group: which ranks there are, and where each listens.
//!
//! In: the file `DIR/GROUP.attach_info_tmp`, as peers write it too: a line with the group's name,
//! one with its size, one with `all` or `self`, then a line `RANK ADDRESS` for each rank, behind
//! which weir adds `tags=N`, `node=NAME`, `nonce=HEX`. Out: the same, entry by entry. Writers hold
//! a lock, and readers never see half a table: a new one is renamed over the old. Not here: whether
//! anybody listens there.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::address::RpcAddress;
use super::{DerCode, RpcError};

/// Longest name of a group.
const LONGEST: usize = 64;
/// Largest table that is read, in bytes.
const LARGEST: u64 = 256 << 20;
/// Characters that peers refuse in names of groups, and those that would lead out of a directory.
const REFUSED: &[char] = &[';', '"', '`', '\'', '\\', '/'];

/// A rank of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEntry {
    /// Its number.
    pub rank: u32,
    /// Where it listens.
    pub address: RpcAddress,
    /// How many tags it has, where the table says so.
    pub tags: Option<u32>,
    /// Its machine, where the table says so.
    pub node: Option<String>,
    /// Its server's run, where the table says so.
    pub nonce: Option<[u8; 16]>,
}

/// A group's ranks, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTable {
    /// By rank.
    pub entries: Vec<GroupEntry>,
    /// What is odd about the file and does no harm.
    pub warnings: Vec<String>,
}

impl GroupTable {
    /// The entry of a rank.
    pub fn find(&self, rank: u32) -> Option<&GroupEntry> {
        let place = self.entries.binary_search_by_key(&rank, |entry| entry.rank);
        place.ok().map(|place| &self.entries[place])
    }

    /// The smallest rank that is not in the table.
    pub fn next_free(&self) -> u32 {
        let ranks = self.entries.iter().map(|entry| entry.rank);
        ranks.zip(0..).find(|(rank, at)| rank != at).map_or_else(
            || u32::try_from(self.entries.len()).unwrap_or(u32::MAX),
            |(_, at)| at,
        )
    }
}

/// Whether a group may have this name.
///
/// # Errors
/// It may not, and why.
pub fn check_name(group: &str) -> Result<(), RpcError> {
    let printable = group
        .chars()
        .all(|c| c.is_ascii_graphic() && !REFUSED.contains(&c));
    if group.is_empty() || group.len() > LONGEST || !printable || group.contains("..") {
        return Err(RpcError::new(
            DerCode::Invalid,
            format!(
                "group name `{group}`: expected 1 to {LONGEST} printable characters without blanks, \
                 quotes, `;`, `\\`, `/` and `..`"
            ),
        ));
    }
    Ok(())
}

/// The file of a group.
pub fn table_path(directory: &Path, group: &str) -> PathBuf {
    directory.join(format!("{group}.attach_info_tmp"))
}

/// Reads a group's table.
///
/// # Errors
/// There is none, everybody may write it, or a line of it (which is named) is wrong.
pub fn read_table(directory: &Path, group: &str) -> Result<GroupTable, RpcError> {
    check_name(group)?;
    let path = table_path(directory, group);
    let facts = path.metadata().map_err(|error| {
        let message = format!(
            "group table {}: {error} (does `weir rpc serve --group {group}` run, with the same --path?)",
            path.display()
        );
        RpcError::new(DerCode::NotThere, message)
    })?;
    let refuse =
        |what: &str| RpcError::new(DerCode::Invalid, format!("{}:1: {what}", path.display()));
    if facts.mode() & 0o002 != 0 {
        return Err(refuse("everybody may write this table (chmod o-w)"));
    }
    if facts.len() > LARGEST {
        return Err(refuse("too large for a table"));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| refuse(&error.to_string()))?;
    parse_table(&path, &text, group)
}

/// The lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Reads the text of a table; `path` is for messages.
///
/// # Errors
/// A line is wrong; the message names it.
pub fn parse_table(path: &Path, text: &str, group: &str) -> Result<GroupTable, RpcError> {
    let at_line = |line: usize, what: &str| {
        RpcError::new(
            DerCode::Invalid,
            format!("{}:{line}: {what}", path.display()),
        )
    };
    let mut lines = lines(text);
    let mut next = |what: &str| lines.next().ok_or_else(|| at_line(1, what));
    let (line, name) = next("the table is empty")?;
    let last = |line: &str| line.split_whitespace().next_back().unwrap_or("").to_owned();
    if last(name) != group {
        return Err(at_line(
            line,
            &format!("this table is of group `{}`", last(name)),
        ));
    }
    let (line, size) = next("the table has no line with its size")?;
    let size: u32 = last(size)
        .parse()
        .map_err(|_| at_line(line, "expected the size of the group, as `size 4`"))?;
    let (line, which) = next("the table has no line `all`")?;
    if which != "all" && which != "self" {
        return Err(at_line(line, "expected `all` or `self`"));
    }
    let mut table = GroupTable::default();
    for (line, text) in lines {
        let entry = parse_entry(text).map_err(|what| at_line(line, &what))?;
        match table
            .entries
            .binary_search_by_key(&entry.rank, |other| other.rank)
        {
            Ok(_) => {
                return Err(at_line(
                    line,
                    &format!("rank {} is there twice", entry.rank),
                ));
            }
            Err(place) => table.entries.insert(place, entry),
        }
    }
    if table.entries.len() != size as usize {
        table.warnings.push(format!(
            "{}: the size is given as {size}, but there are {} ranks",
            path.display(),
            table.entries.len()
        ));
    }
    Ok(table)
}

fn parse_entry(text: &str) -> Result<GroupEntry, String> {
    let mut words = text.split_whitespace();
    let mut next = || words.next().ok_or("expected `RANK ADDRESS`");
    let rank = next()?
        .parse()
        .map_err(|_| "expected a rank, then its address")?;
    let address = next()?
        .parse()
        .map_err(|error: RpcError| error.message.into_owned())?;
    let mut entry = GroupEntry {
        rank,
        address,
        tags: None,
        node: None,
        nonce: None,
    };
    for word in words {
        match word.split_once('=') {
            Some(("tags", tags)) => {
                entry.tags = Some(tags.parse().map_err(|_| "expected tags=NUMBER")?);
            }
            Some(("node", node)) => entry.node = Some(node.to_owned()),
            Some(("nonce", nonce)) => {
                entry.nonce = Some(parse_nonce(nonce).ok_or("expected nonce= and 32 hex digits")?);
            }
            _ => {
                return Err(format!(
                    "`{word}` is no field of a table (tags=, node=, nonce=)"
                ));
            }
        }
    }
    Ok(entry)
}

fn parse_nonce(text: &str) -> Option<[u8; 16]> {
    let number = u128::from_str_radix(text, 16).ok()?;
    (text.len() == 32).then(|| number.to_be_bytes())
}

/// The lock on a group's table: whoever has it may change the table.
#[derive(Debug)]
pub struct TableLock {
    directory: PathBuf,
    group: String,
    _lock: File,
}

impl TableLock {
    /// Waits for the lock. Others hold it for moments only.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn take(directory: &Path, group: &str) -> Result<Self, RpcError> {
        check_name(group)?;
        let path = directory.join(format!("{group}.attach_info_lock"));
        let fail = || RpcError::io(format!("lock {}", path.display()));
        let mut options = OpenOptions::new();
        let lock = options
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(fail())?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|errno| fail()(errno.into()))?;
        Ok(Self {
            directory: directory.to_owned(),
            group: group.to_owned(),
            _lock: lock,
        })
    }

    /// The table; an empty one where there is none.
    ///
    /// # Errors
    /// As [`read_table`].
    pub fn read(&self) -> Result<GroupTable, RpcError> {
        if table_path(&self.directory, &self.group).exists() {
            read_table(&self.directory, &self.group)
        } else {
            Ok(GroupTable::default())
        }
    }

    /// Adds entries, in place of older ones of their ranks. With `public` others may read the
    /// table; with `plain` it has no fields of weir's own, for peers.
    ///
    /// # Errors
    /// The old table is wrong, or the new one cannot be written.
    pub fn add(&self, entries: &[GroupEntry], public: bool, plain: bool) -> Result<(), RpcError> {
        let mut table = self.read()?;
        table
            .entries
            .retain(|old| entries.iter().all(|new| new.rank != old.rank));
        table.entries.extend_from_slice(entries);
        table.entries.sort_by_key(|entry| entry.rank);
        self.write(&table, public, plain)
    }

    /// Takes out entries of a server's run, which nobody has replaced; the last one takes the table
    /// with it.
    ///
    /// # Errors
    /// As [`TableLock::add`].
    pub fn remove(&self, gone: &[GroupEntry], public: bool, plain: bool) -> Result<(), RpcError> {
        let mut table = self.read()?;
        let same =
            |old: &GroupEntry, new: &GroupEntry| old.rank == new.rank && old.address == new.address;
        table
            .entries
            .retain(|old| !gone.iter().any(|new| same(old, new)));
        if table.entries.is_empty() {
            // It may be gone already.
            let _ = std::fs::remove_file(table_path(&self.directory, &self.group));
            return Ok(());
        }
        self.write(&table, public, plain)
    }

    fn write(&self, table: &GroupTable, public: bool, plain: bool) -> Result<(), RpcError> {
        let path = table_path(&self.directory, &self.group);
        let new = path.with_extension(format!("attach_info_new.{}", std::process::id()));
        let fail = || RpcError::io(format!("write {}", new.display()));
        let mut file = File::create(&new).map_err(fail())?;
        let mode = if public { 0o644 } else { 0o600 };
        file.set_permissions(Permissions::from_mode(mode))
            .map_err(fail())?;
        file.write_all(self.text(table, plain).as_bytes())
            .map_err(fail())?;
        std::fs::rename(&new, &path).map_err(fail())
    }

    fn text(&self, table: &GroupTable, plain: bool) -> String {
        let mut text = format!("name {}\nsize {}\nall\n", self.group, table.entries.len());
        for entry in &table.entries {
            // Writing to a string cannot fail.
            let _ = write!(text, "{} {}", entry.rank, entry.address);
            if !plain {
                if let Some(tags) = entry.tags {
                    let _ = write!(text, " tags={tags}");
                }
                if let Some(node) = &entry.node {
                    let _ = write!(text, " node={node}");
                }
                if let Some(nonce) = entry.nonce {
                    let _ = write!(text, " nonce={:032x}", u128::from_be_bytes(nonce));
                }
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<GroupTable, String> {
        parse_table(Path::new("t"), text, "g").map_err(|error| error.message.into_owned())
    }

    #[test]
    fn tables_of_peers_are_read() {
        let table =
            parse("name g\nsize 2\nall\n1 ofi+tcp://192.0.2.7:31416\n0 tcp://h:1\n").unwrap();
        assert_eq!(
            table
                .entries
                .iter()
                .map(|entry| entry.rank)
                .collect::<Vec<_>>(),
            [0, 1]
        );
        assert_eq!(table.find(1).unwrap().address.scheme, "ofi+tcp");
        let bare = parse("# made by hand\ng\n1\n\nself\n0 tcp://h:1 tags=3 node=n\n").unwrap();
        assert_eq!(bare.entries[0].tags, Some(3));
        assert!(
            parse("name g\nsize 3\nall\n0 tcp://h:1\n")
                .unwrap()
                .warnings[0]
                .contains("3")
        );
    }

    #[test]
    fn what_is_wrong_with_a_table_is_named_with_its_line() {
        let head = "name g\nsize 1\nall\n";
        for (text, words) in [
            ("", "t:1: the table is empty"),
            ("name other\n", "t:1: this table is of group `other`"),
            ("name g\nsize x\n", "t:2: expected the size"),
            ("name g\nsize 1\nsome\n", "t:3: expected `all`"),
            (
                &format!("{head}0 tcp://a:1\n\n0 tcp://b:1\n"),
                "t:6: rank 0 is there twice",
            ),
            (&format!("{head}junk\n"), "t:4: expected a rank"),
            (&format!("{head}0 junk\n"), "t:4: address `junk`"),
            (
                &format!("{head}0 tcp://a:1 nonce=12\n"),
                "t:4: expected nonce=",
            ),
            (
                &format!("{head}0 tcp://a:1 junk\n"),
                "t:4: `junk` is no field",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(words), "{text:?}: {error}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", "a b", "a/b", "..", "a;b", "ä", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("daos_server").is_ok());
    }

    fn entry(rank: u32, port: u16) -> GroupEntry {
        GroupEntry {
            rank,
            address: format!("tcp://127.0.0.1:{port}").parse().unwrap(),
            tags: Some(2),
            node: Some("n".to_owned()),
            nonce: Some([0xab; 16]),
        }
    }

    #[test]
    fn servers_add_replace_and_take_out_their_own_lines() {
        let directory = std::env::temp_dir().join(format!("weir-table-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let lock = TableLock::take(&directory, "g").unwrap();
        lock.add(&[entry(2, 12), entry(0, 10)], false, false)
            .unwrap();
        assert_eq!(lock.read().unwrap().next_free(), 1);
        lock.add(&[entry(0, 20), entry(1, 21)], true, false)
            .unwrap();
        let table = read_table(&directory, "g").unwrap();
        assert_eq!(table.entries, [entry(0, 20), entry(1, 21), entry(2, 12)]);
        assert_eq!(table.next_free(), 3);
        let path = table_path(&directory, "g");
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o644);
        // Somebody else has rank 0 by now.
        lock.remove(&[entry(0, 10), entry(1, 21)], false, true)
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "name g\nsize 2\nall\n0 tcp://127.0.0.1:20\n2 tcp://127.0.0.1:12\n"
        );
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let error = read_table(&directory, "g").unwrap_err();
        assert!(
            error.message.contains("g.attach_info_tmp:1: everybody"),
            "{error}"
        );
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        lock.remove(&[entry(0, 20), entry(2, 12)], false, false)
            .unwrap();
        assert!(read_table(&directory, "g").unwrap_err().code == DerCode::NotThere);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
