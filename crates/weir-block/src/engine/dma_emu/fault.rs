//! Faults that an emulated channel shows, and how they are written down.
//!
//! In: `flip@2m,eio@3,stall@8m:5000`. Out: [`EmulatedFault`]s, and which of them an operation meets. Not
//! here: what a fault does to data (the engine).

use std::time::Duration;

use crate::op::BlockOp;

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultEffect {
    /// One bit of this byte of the card changes on its way.
    Flip(u64),
    /// The block holds its neighbour's data.
    Misplaced,
    /// Reported as done, and nothing moved.
    Stale,
    /// Half of the bytes move, and no more come after them.
    Short,
    /// EIO.
    Failed,
    /// The channel answers nothing for this long.
    Stall(Duration),
}

/// Place or operation at which a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// In the first operation that holds this byte of the card.
    Byte(u64),
    /// In this operation of the channel, counted from 1.
    Operation(u64),
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EmulatedFault {
    /// As it was written; the card knows it by this.
    pub(super) text: String,
    pub(super) wrong: FaultEffect,
    pub(super) at: At,
}

impl EmulatedFault {
    /// True if it strikes a numbered operation of each channel rather than a place of the card.
    pub(super) fn is_by_number(&self) -> bool {
        matches!(self.at, At::Operation(_))
    }

    /// True if the fault strikes this operation, the `number`th of its channel.
    pub(super) fn is_met(&self, op: &BlockOp, number: u64) -> bool {
        match self.at {
            At::Operation(n) => n == number,
            At::Byte(byte) => (op.offset..op.offset + u64::from(op.length)).contains(&byte),
        }
    }
}

const EXPECTED: &str = "expected flip@OFFSET, misplaced@OFFSET, stale@OFFSET, short@AT, eio@AT or \
                        stall@AT:MILLISECONDS, where AT is an offset with its unit (8m) or the \
                        number of an operation (3)";

/// Reads a list of faults separated by commas.
///
/// # Errors
/// The first that is none, and what was expected.
pub(crate) fn faults(list: &str) -> Result<Vec<EmulatedFault>, String> {
    list.split(',').map(|text| fault(text.trim())).collect()
}

fn fault(text: &str) -> Result<EmulatedFault, String> {
    let wrong = || format!("`{text}` is no fault: {EXPECTED}");
    let (word, rest) = text.split_once('@').ok_or_else(wrong)?;
    let (place, pause) = match rest.split_once(':') {
        Some((place, pause)) => (place, Some(pause)),
        None => (rest, None),
    };
    let has_unit = place.ends_with(|c: char| c.is_ascii_alphabetic());
    let byte = || bytes(place).ok_or_else(wrong);
    let at = || match byte()? {
        byte if has_unit => Ok(At::Byte(byte)),
        0 => Err(format!("`{text}`: operations are counted from 1")),
        nth => Ok(At::Operation(nth)),
    };
    let (wrong, at) = match (word, pause) {
        ("flip", None) => (FaultEffect::Flip(byte()?), At::Byte(byte()?)),
        ("misplaced", None) => (FaultEffect::Misplaced, At::Byte(byte()?)),
        ("stale", None) => (FaultEffect::Stale, At::Byte(byte()?)),
        ("short", None) => (FaultEffect::Short, at()?),
        ("eio", None) => (FaultEffect::Failed, at()?),
        ("stall", Some(pause)) => {
            let millis = pause.parse().map_err(|_| wrong())?;
            (FaultEffect::Stall(Duration::from_millis(millis)), at()?)
        }
        _ => return Err(wrong()),
    };
    Ok(EmulatedFault {
        text: text.to_owned(),
        wrong,
        at,
    })
}

/// A number of bytes, with k, m, g or t where it is long.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let units = ["k", "m", "g", "t"];
    let lower = text.to_ascii_lowercase();
    let unit = (1..).zip(units).find(|(_, unit)| lower.ends_with(unit));
    let (power, digits) = unit.map_or((0, lower.as_str()), |(power, _)| {
        (power, &lower[..lower.len() - 1])
    });
    digits.parse::<u64>().ok()?.checked_mul(1 << (10 * power))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> (FaultEffect, At) {
        let list = faults(text).unwrap();
        assert_eq!(list.len(), 1);
        (list[0].wrong, list[0].at)
    }

    #[test]
    fn a_place_is_an_offset_with_a_unit_or_the_number_of_an_operation() {
        const MIB: u64 = 1 << 20;
        assert_eq!(
            one("flip@2m"),
            (FaultEffect::Flip(2 * MIB), At::Byte(2 * MIB))
        );
        assert_eq!(one("stale@4096"), (FaultEffect::Stale, At::Byte(4096)));
        assert_eq!(one("eio@3"), (FaultEffect::Failed, At::Operation(3)));
        assert_eq!(one("short@1k"), (FaultEffect::Short, At::Byte(1024)));
        let five = FaultEffect::Stall(Duration::from_secs(5));
        assert_eq!(one("stall@8m:5000"), (five, At::Byte(8 * MIB)));
        assert_eq!(faults("flip@1m, eio@2").unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_fault_is_refused_with_what_was_expected() {
        for text in [
            "", "flip", "flop@1", "flip@", "flip@x", "eio@0", "stall@1", "stall@1:", "eio@1:2",
            "flip@1m,", "flip@-1",
        ] {
            let message = faults(text).unwrap_err();
            assert!(message.contains("expected") || text == "eio@0", "{message}");
        }
    }

    #[test]
    fn an_operation_meets_a_byte_that_it_holds() {
        let op = BlockOp {
            offset: 4096,
            length: 4096,
            ..BlockOp::default()
        };
        let met = |text: &str, number| faults(text).unwrap()[0].is_met(&op, number);
        assert!(met("flip@4096", 1) && met("flip@8191", 1));
        assert!(!met("flip@4095", 1) && !met("flip@8192", 1));
        assert!(met("eio@7", 7) && !met("eio@7", 8));
    }
}
