//! Ids that sort by time: ULIDs, 26 characters of Crockford's base 32.
//!
//! In: a time. Out: an id nobody else has: 48 bits of milliseconds, 80 bits of chance.

use std::hash::{BuildHasher as _, RandomState};

/// Digits, without I, L, O and U, which look like others.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LENGTH: usize = 26;
/// The characters that are the time: enough to name a run, as long as no other began in the same
/// millisecond.
pub const SHOWN_CHARACTERS: usize = 10;
/// Fewer characters are no id.
pub const FEWEST_CHARACTERS: usize = 4;

/// The id of what began then.
pub fn new_id(unix_ns: u64) -> String {
    // The keys of hashing come from the system.
    let random = |part: u64| RandomState::new().hash_one(part);
    id_of(
        unix_ns / 1_000_000,
        (u128::from(random(0)) << 64) | u128::from(random(1)),
    )
}

fn id_of(unix_ms: u64, random: u128) -> String {
    let mut bits = (u128::from(unix_ms) << 80) | (random & ((1 << 80) - 1));
    let mut id = [b'0'; LENGTH];
    for digit in id.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(bits & 31).unwrap_or(0)];
        bits >>= 5;
    }
    id.iter().map(|digit| char::from(*digit)).collect()
}

/// True if a word may be the beginning of an id.
pub fn is_id_prefix(word: &str) -> bool {
    let length = word.chars().count();
    (FEWEST_CHARACTERS..=LENGTH).contains(&length) && has_digits_of_id(word)
}

/// True if it would be one, had it more characters.
pub fn is_short_id(word: &str) -> bool {
    (1..FEWEST_CHARACTERS).contains(&word.chars().count()) && has_digits_of_id(word)
}

/// True if an id may begin with these characters, however many they are.
fn has_digits_of_id(word: &str) -> bool {
    let is_digit = |c: char| c.is_ascii() && DIGITS.contains(&(c.to_ascii_uppercase() as u8));
    // Until the year 3084.
    word.starts_with('0') && word.chars().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_differ() {
        // The example of the ULID's description.
        assert_eq!(&id_of(1_469_922_850_259, 0)[..10], "01ARZ3NDEK");
        assert_eq!(&new_id(1_469_922_850_259_999_999)[..10], "01ARZ3NDEK");
        let early = new_id(1_000_000_000);
        let late = new_id(1_001_000_000);
        assert!(early < late && early.len() == LENGTH);
        assert_ne!(new_id(5), new_id(5));
        assert_eq!(id_of(0, u128::MAX), "0".repeat(10) + &"Z".repeat(16));
    }

    #[test]
    fn the_beginning_of_an_id_is_told_from_a_file_name() {
        let id = new_id(1_795_239_012_000_000_000);
        assert!(is_id_prefix(&id) && is_id_prefix(&id[..6].to_lowercase()));
        for word in [
            "01a",
            "r.json",
            "base",
            "1234",
            "0ol1",
            "0123456789ABCDEFGHJKMNPQRST",
            "",
        ] {
            assert!(!is_id_prefix(word), "{word}");
            assert_eq!(is_short_id(word), word == "01a", "{word}");
        }
    }
}
