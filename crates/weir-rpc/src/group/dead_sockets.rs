//! Sockets in the file system that servers left which were killed.
//!
//! In: a directory, a rank. Out: those that nobody listens on are gone. Not here: who may have a rank
//! (`held_rank`).

use std::path::{Path, PathBuf};

use weir_sys::socket::remove_dead;

/// The name of a rank's socket.
pub(crate) fn socket_name(group: &str, rank: u32, process: u32) -> String {
    format!("{group}-{rank}-{process}.sock")
}

/// Removes the sockets of a rank whose processes are gone; those that were.
pub(crate) fn remove_dead_of(directory: &Path, group: &str, rank: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let process = name.and_then(|name| process_of(name, group, rank));
        // One that is about to listen is there.
        process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
    };
    let left = entries.map(|entry| entry.path()).filter(is_left);
    left.filter(|path| remove_dead(path)).collect()
}

/// The process whose socket has this name.
fn process_of(name: &str, group: &str, rank: u32) -> Option<u32> {
    let digits = name.strip_prefix(&format!("{group}-{rank}-"))?;
    digits.strip_suffix(".sock")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, socket};
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_sockets_of_the_rank_that_nobody_listens_on_are_removed() {
        let name = format!("weir-dead-sockets-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        // Far above the numbers that processes have.
        let path = |rank, process| directory.join(socket_name("g", rank, process));
        let [dead, lives, own, other, file] = [
            (0, 4_100_000_001),
            (0, 4_100_000_002),
            (0, std::process::id()),
            (1, 4_100_000_001),
            (0, 4_100_000_003),
        ]
        .map(|(rank, process)| path(rank, process));
        for left in [&dead, &own, &other] {
            // Never listened on: a process that another test starts may have a listener a moment longer.
            let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
            bind(&socket, &SocketAddrUnix::new(left).unwrap()).unwrap();
        }
        let _listens = UnixListener::bind(&lives).unwrap();
        std::fs::write(&file, "mine").unwrap();
        assert_eq!(
            remove_dead_of(&directory, "g", 0),
            std::slice::from_ref(&dead)
        );
        assert!(!dead.exists());
        assert!(
            [&lives, &own, &other, &file]
                .iter()
                .all(|path| path.exists())
        );
        assert!(!remove_dead(&lives) && !remove_dead(&file) && remove_dead(&own));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
