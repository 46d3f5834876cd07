//! Counters that the driver of a network interface keeps beside the kernel's: the lines of `ethtool
//! -S`.
//!
//! In: its name, in this process' network namespace. Out: names and counts, as the driver has them. Not here:
//! which of them matter.

#![expect(unsafe_code, reason = "ioctls of interfaces, which have no wrapper")]

use std::io;
use std::ptr::null_mut;

use crate::interface::ask;

/// `SIOCETHTOOL`.
const ETHTOOL: libc::Ioctl = 0x8946;
/// Command that asks for the number of names in each set.
const SET_SIZES: u32 = 0x37;
/// The names of a set.
const NAMES: u32 = 0x1b;
/// The counts.
const COUNTS: u32 = 0x1d;
/// The set of the names of counts.
const COUNT_NAMES: u32 = 1;
/// Bytes of a name.
const NAME_BYTES: usize = 32;
/// Command, set or number, and number or the first half of a mask.
const HEAD_WORDS: usize = 4;
/// More than drivers have.
const MOST: u32 = 1 << 16;
/// A driver may have more counts at the next call, and some kernels write all of them.
const SPARE: usize = 4096;

/// Names and counts, in the driver's order; none where the driver counts nothing.
///
/// # Errors
/// The kernel's reason: `ENODEV` without the interface.
pub fn driver_counters(interface: &str) -> io::Result<Vec<(String, u64)>> {
    let mut head = [0; HEAD_WORDS + 1];
    head[0] = SET_SIZES;
    head[2] = 1 << COUNT_NAMES;
    match call(interface, &mut head) {
        Ok(()) => {}
        Err(why) if why.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(Vec::new()),
        Err(why) => return Err(why),
    }
    // A set that there is none of has lost its bit of the mask.
    let number = if head[2] == 0 { 0 } else { head[HEAD_WORDS] };
    if number == 0 {
        return Ok(Vec::new());
    }
    if number > MOST {
        return Err(io::Error::other("more counters than any driver has"));
    }
    let names = names(interface, number)?;
    let counts = counts(interface, number)?;
    Ok(names.into_iter().zip(counts).collect())
}

fn names(interface: &str, number: u32) -> io::Result<Vec<String>> {
    let names = number as usize;
    let mut words = vec![0; 3 + (names + SPARE) * NAME_BYTES / 4];
    words[..3].copy_from_slice(&[NAMES, COUNT_NAMES, number]);
    call(interface, &mut words)?;
    let bytes: Vec<u8> = words[3..].iter().flat_map(|w| w.to_ne_bytes()).collect();
    let of = |name: &[u8]| {
        let end = name.iter().position(|byte| *byte == 0);
        let name = &name[..end.unwrap_or(NAME_BYTES)];
        String::from_utf8_lossy(name).trim().to_owned()
    };
    Ok(bytes.chunks(NAME_BYTES).take(names).map(of).collect())
}

fn counts(interface: &str, number: u32) -> io::Result<Vec<u64>> {
    let counts = number as usize;
    let mut words = vec![0; 2 + (counts + SPARE) * 2];
    words[..2].copy_from_slice(&[COUNTS, number]);
    call(interface, &mut words)?;
    let of = |halves: &[u32]| {
        let mut bytes = [0; 8];
        for (place, half) in bytes.chunks_mut(4).zip(halves) {
            place.copy_from_slice(&half.to_ne_bytes());
        }
        u64::from_ne_bytes(bytes)
    };
    Ok(words[2..].chunks(2).take(counts).map(of).collect())
}

/// Gives the driver a command, which it answers in place.
fn call(interface: &str, command: &mut [u32]) -> io::Result<()> {
    let question = [command.as_mut_ptr(), null_mut(), null_mut()];
    // SAFETY: the address is that of a command whose head says how much of it the kernel may write, with room
    // for `SPARE` more than that.
    unsafe { ask(interface, ETHTOOL, question) }.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_counters_has_none_and_an_absent_one_is_refused() {
        assert_eq!(driver_counters("lo").unwrap(), []);
        for absent in ["weir-none", "a name that no interface can have"] {
            let why = driver_counters(absent).unwrap_err();
            assert_eq!(why.raw_os_error(), Some(libc::ENODEV), "{absent}");
        }
    }
}
