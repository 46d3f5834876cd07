//! Which start of which machine this is.
//!
//! In: what the kernel says of it. Out: a number that all processes of a running machine have in common, and
//! no others. Not here: which run of a server (its nonce).

use std::sync::OnceLock;

use weir_sys::Tree;

/// The number of this machine as it runs now; 0 where the kernel does not say.
pub(crate) fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let name = Tree::real().word("proc/sys/kernel/random/boot_id");
        name.map_or(0, |name| number(&name))
    })
}

/// Both halves of the digits.
fn number(name: &str) -> u64 {
    let digits: Vec<u64> = name
        .chars()
        .filter_map(|one| one.to_digit(16).map(u64::from))
        .collect();
    let half = |digits: &[u64]| digits.iter().fold(0, |sum: u64, digit| sum << 4 | digit);
    digits
        .chunks(16)
        .map(half)
        .fold(0, |one, other| one ^ other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_number_until_it_starts_again() {
        let one = number("9b32a5a7-39b9-4d36-8f8e-8d4a8a6c8a01\n");
        assert_eq!(one, 0x9b32_a5a7_39b9_4d36 ^ 0x8f8e_8d4a_8a6c_8a01);
        assert_ne!(one, number("9b32a5a7-39b9-4d36-8f8e-8d4a8a6c8a02\n"));
        assert_ne!(boot(), 0);
        assert_eq!(boot(), boot());
    }
}
