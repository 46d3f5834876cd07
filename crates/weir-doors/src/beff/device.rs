//! Which device a rank uses, where a transport has devices.
//!
//! In: what was asked for, how many devices there are. Out: an index. Spec: effective
//! bandwidth, 3.

use super::words::refuse;
use crate::refusal::Refusal;

/// The name of the platform of made-up devices.
const MADE_UP: &str = "fake";

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// The same for all ranks; by rank where absent.
    pub(super) index: Option<usize>,
    /// Index of the platform.
    pub(super) platform: usize,
    /// Exact name of the platform.
    pub(super) platform_name: Option<String>,
}

impl Wish {
    /// The device of each rank, by its number on its node, among made-up devices of one platform.
    ///
    /// # Errors
    /// An index or name that there is not.
    pub(super) fn among(&self, devices: usize, ranks: u32) -> Result<Vec<u32>, Refusal> {
        if let Some(name) = self.platform_name.as_ref().filter(|n| *n != MADE_UP) {
            return Err(refuse(&format!(
                "Invalid platform string specified: {name}"
            )));
        }
        if self.platform > 0 && self.platform_name.is_none() {
            let index = self.platform;
            return Err(refuse(&format!(
                "Invalid platform index specified: {index}/0"
            )));
        }
        if let Some(index) = self.index.filter(|i| *i >= devices) {
            let last = devices.saturating_sub(1);
            return Err(refuse(&format!(
                "Invalid device index specified: {index}/{last}"
            )));
        }
        let of_rank = |rank: u32| self.index.unwrap_or(rank as usize % devices.max(1));
        Ok((0..ranks)
            .map(|r| u32::try_from(of_rank(r)).unwrap_or(u32::MAX))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(index: usize) -> Wish {
        Wish {
            index: Some(index),
            ..Wish::default()
        }
    }

    #[test]
    fn ranks_go_round_the_devices_unless_one_is_named() {
        let auto = Wish::default();
        assert_eq!(auto.among(2, 3).unwrap(), [0, 1, 0]);
        assert_eq!(auto.among(2, 2).unwrap(), [0, 1]);
        assert_eq!(index(1).among(2, 3).unwrap(), [1, 1, 1]);
    }

    #[test]
    fn a_device_or_platform_that_there_is_not_is_refused() {
        let wrong = index(5).among(2, 1).unwrap_err();
        assert!(
            wrong
                .message
                .contains("Invalid device index specified: 5/1")
        );
        let platform = Wish {
            platform_name: Some("X".to_owned()),
            ..Wish::default()
        };
        let wrong = platform.among(2, 1).unwrap_err();
        assert!(
            wrong
                .message
                .contains("Invalid platform string specified: X")
        );
        let second = Wish {
            platform: 1,
            ..Wish::default()
        };
        assert!(second.among(2, 1).is_err());
    }
}
