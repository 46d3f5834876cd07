//! Sets of CPU or node numbers in the kernel's notation, such as `0-3,8`.
//!
//! In: text from `/sys` or from a user. Out: sorted numbers, and the same text again. Not here:
//! pinning to them ([`crate::pin`]).

use crate::error::SysError;
use std::fmt;
use std::str::FromStr;

/// One above the largest number a list may hold; Linux knows at most 8,192 CPUs.
const LIMIT: u32 = 65_536;

/// A sorted set of CPU (or NUMA node) numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuList(Vec<u32>);

impl CpuList {
    /// The numbers, ascending, each once.
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// Number of CPUs or nodes in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the number is in the set.
    pub fn contains(&self, number: u32) -> bool {
        self.0.binary_search(&number).is_ok()
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }
}

impl FromStr for CpuList {
    type Err = SysError;

    /// Reads comma-separated numbers and ranges; empty text is the empty set, as in the kernel.
    fn from_str(text: &str) -> Result<Self, SysError> {
        let fail = |why: String| SysError::CpuList {
            text: text.to_owned(),
            why,
        };
        let number = |word: &str| {
            let word = word.trim();
            let number: u32 = word
                .parse()
                .map_err(|_| fail(format!("`{word}` is no number")))?;
            if number < LIMIT {
                Ok(number)
            } else {
                Err(fail(format!("{number} is above {}", LIMIT - 1)))
            }
        };
        let mut numbers = Vec::new();
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if last < first {
                return Err(fail(format!("the range {first}-{last} runs backwards")));
            }
            numbers.extend(first..=last);
            if numbers.len() > LIMIT as usize {
                return Err(fail(format!("it has more than {LIMIT} numbers")));
            }
        }
        Ok(numbers.into_iter().collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (index, run) in runs.enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_kernels_notation_is_read() {
        let list: CpuList = "0-3,8, 10-11\n".parse().unwrap();
        assert_eq!(list.as_slice(), [0, 1, 2, 3, 8, 10, 11]);
        assert!(list.contains(8) && !list.contains(9));
        assert_eq!(list.to_string(), "0-3,8,10-11");
        assert!("\n".parse::<CpuList>().unwrap().is_empty());
    }

    #[test]
    fn a_bad_list_says_what_is_wrong() {
        let message = |text: &str| text.parse::<CpuList>().unwrap_err().to_string();
        assert!(message("0,x").contains("`x` is no number"));
        assert!(message("3-1").contains("runs backwards"));
        assert!(message("0-4000000000").contains("above 65535"));
        assert!(message("0-").contains("`` is no number"));
        assert!(message("1,,2").contains("`` is no number"));
    }

    proptest! {
        #[test]
        fn printing_and_parsing_give_the_same_set(numbers in proptest::collection::vec(0u32..300, 0..80)) {
            let list: CpuList = numbers.into_iter().collect();
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }
    }
}
