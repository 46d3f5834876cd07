//! I/O priorities of single operations: a share of them gets one.
//!
//! In: an engine's settings, and each operation. Out: the number that goes along with it, 0 for
//! the thread's own. Not here: the priority of the whole thread ([`crate::place`]).

use weir_run::generate::Streams;
use weir_run::generate::rng::Rng;
use weir_schema::EngineChoice;
use weir_schema::catalogue::{SettingInfo, SettingKind};
use weir_sys::priority::io_priority;

use super::dma_emu::bytes;
use crate::op::{BlockOp, Verb};

/// Class of operations whose class is not told: real time.
const REAL_TIME: u8 = 1;

pub(super) const PERCENT: SettingInfo = text(
    "priority_percent",
    "0",
    "share of operations with a priority: of all, or read,write",
    |text| pair(text, 0, 100).map(|_| ()),
);
pub(super) const CLASS: SettingInfo = text(
    "priority_class",
    "1",
    "their class, 1 to 3: of all, or read,write",
    |text| pair(text, 1, 3).map(|_| ()),
);
pub(super) const LEVEL: SettingInfo = text(
    "priority_level",
    "0",
    "their level, 0 to 7: of all, or read,write",
    |text| pair(text, 0, 7).map(|_| ()),
);
pub(super) const BY_SIZE: SettingInfo = text(
    "priority_by_size",
    "",
    "shares by block size: size/percent or size/percent/class/level, separated by `:`",
    |text| split(text, [0; 2]).map(|_| ()),
);

const fn text(
    name: &'static str,
    default: &'static str,
    help: &'static str,
    check: fn(&str) -> Result<(), String>,
) -> SettingInfo {
    SettingInfo {
        name,
        value: SettingKind::Checked(check),
        default,
        help,
    }
}

/// A share of the operations of one kind, and their priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    /// Operations of this length only.
    length: Option<u64>,
    percent: u8,
    priority: u16,
}

/// The shares of reads and of writes.
type Shares = [Vec<Share>; 2];

/// Priorities of a worker's operations.
#[derive(Debug)]
pub struct Priorities {
    shares: Shares,
    rng: Rng,
}

impl Priorities {
    /// By the settings of an engine; none where no operation gets one.
    ///
    /// # Errors
    /// The error in them, in words.
    pub(crate) fn of(choice: &EngineChoice, streams: Streams) -> Result<Option<Self>, String> {
        let shares = shares(choice)?;
        let is_idle = shares.iter().all(Vec::is_empty);
        Ok((!is_idle).then(|| Self {
            shares,
            rng: streams.priorities(),
        }))
    }

    /// True if the settings ask for any priority.
    pub(crate) fn are_asked_for(choice: &EngineChoice) -> bool {
        shares(choice).is_ok_and(|shares| !shares.iter().all(Vec::is_empty))
    }

    /// The priority of the next operation; 0: that of the thread.
    pub(crate) fn next(&mut self, op: &BlockOp) -> u16 {
        let shares = match op.verb {
            Verb::Read => &self.shares[0],
            Verb::Write => &self.shares[1],
            _ => return 0,
        };
        if shares.is_empty() {
            return 0;
        }
        let mut at = self.rng.below(100);
        for share in shares {
            if share.length.is_some_and(|l| l != u64::from(op.length)) {
                continue;
            }
            let percent = u64::from(share.percent);
            if at < percent {
                return share.priority;
            }
            at -= percent;
        }
        0
    }
}

fn shares(choice: &EngineChoice) -> Result<Shares, String> {
    let text = |info: &SettingInfo| choice.text(info.name);
    let class = pair(text(&CLASS).unwrap_or("1"), REAL_TIME, 3)?;
    let level = pair(text(&LEVEL).unwrap_or("0"), 0, 7)?;
    let priorities = [0, 1].map(|kind| io_priority(class[kind], level[kind]));
    let percents = pair(text(&PERCENT).unwrap_or("0"), 0, 100)?;
    let sizes = text(&BY_SIZE).unwrap_or_default();
    if sizes.is_empty() {
        return Ok([0, 1].map(|kind| {
            let share = Share {
                length: None,
                percent: percents[kind],
                priority: priorities[kind],
            };
            Some(share).filter(|s| s.percent > 0).into_iter().collect()
        }));
    }
    if percents != [0; 2] {
        return Err("priorities are given by a share or by block size, not by both".to_owned());
    }
    split(sizes, priorities)
}

/// One number for both kinds, or one for reads and one for writes.
fn pair(text: &str, min: u8, max: u8) -> Result<[u8; 2], String> {
    let wrong = || format!("`{text}` is not `number` or `read,write` from {min} to {max}");
    let number = |text: &str| {
        let number = text.trim().parse().ok();
        number.filter(|n| (min..=max).contains(n)).ok_or_else(wrong)
    };
    let (read, write) = text.split_once(',').unwrap_or((text, text));
    Ok([number(read)?, number(write)?])
}

/// Shares by size for both kinds, or those of reads, a comma, and those of writes.
fn split(text: &str, priorities: [u16; 2]) -> Result<Shares, String> {
    let (read, write) = text.split_once(',').unwrap_or((text, text));
    Ok([list(read, priorities[0])?, list(write, priorities[1])?])
}

fn list(text: &str, priority: u16) -> Result<Vec<Share>, String> {
    let parts = text.split(':').filter(|part| !part.is_empty());
    let shares: Vec<Share> = parts
        .map(|part| share(part, priority))
        .collect::<Result<_, _>>()?;
    for one in &shares {
        let same = shares.iter().filter(|s| s.length == one.length);
        if same.map(|s| u32::from(s.percent)).sum::<u32>() > 100 {
            return Err(format!("`{text}`: more than 100% of one size"));
        }
    }
    Ok(shares)
}

fn share(text: &str, priority: u16) -> Result<Share, String> {
    let wrong = || format!("`{text}` is not size/percent or size/percent/class/level");
    let parts: Vec<&str> = text.split('/').collect();
    let within = |text: &str, min: u8, max: u8| {
        let number: Option<u8> = text.parse().ok();
        number.filter(|n| (min..=max).contains(n)).ok_or_else(wrong)
    };
    let (percent, priority) = match parts[1..] {
        [] | [""] => (0, priority),
        [percent] => (within(percent, 0, 100)?, priority),
        [percent, class, level] => (
            within(percent, 0, 100)?,
            io_priority(within(class, REAL_TIME, 3)?, within(level, 0, 7)?),
        ),
        _ => return Err(wrong()),
    };
    Ok(Share {
        length: Some(bytes(parts[0]).ok_or_else(wrong)?),
        percent,
        priority,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_schema::Setting;

    fn shares_of(settings: &[(&'static str, &str)]) -> Result<Shares, String> {
        let text = |(key, value): &(&'static str, &str)| (*key, Setting::Text((*value).to_owned()));
        let settings: Vec<_> = settings.iter().map(text).collect();
        shares(&EngineChoice::with("test", &settings))
    }

    /// Number of operations, of 10,000, with each priority.
    fn counts(shares: &Shares, verb: Verb, length: u32) -> Vec<(u16, u32)> {
        let mut priorities = Priorities {
            shares: shares.clone(),
            rng: Streams::new(1, 0).priorities(),
        };
        let op = BlockOp {
            offset: 0,
            buffer: crate::op::Buffer(std::ptr::null_mut()),
            length,
            target: 0,
            range: 0,
            range_flags: 0,
            verb,
            priority: 0,
        };
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..10_000 {
            *counts.entry(priorities.next(&op)).or_default() += 1;
        }
        counts.into_iter().collect()
    }

    #[test]
    fn a_share_of_reads_and_of_writes_gets_its_priority() {
        let shares = shares_of(&[
            ("priority_percent", "30,70"),
            ("priority_class", "2,3"),
            ("priority_level", "3,4"),
        ]);
        let shares = shares.unwrap();
        for (verb, priority, share) in [(Verb::Read, 0x4003, 3000), (Verb::Write, 0x6004, 7000)] {
            let counts = counts(&shares, verb, 4096);
            assert_eq!(counts.len(), 2);
            assert_eq!(counts[1].0, priority);
            assert!(counts[1].1.abs_diff(share) < 200, "{counts:?}");
        }
        assert_eq!(counts(&shares, Verb::Sync, 0), [(0, 10_000)]);
    }

    #[test]
    fn shares_by_size_count_for_blocks_of_that_size_alone() {
        let shares = shares_of(&[("priority_by_size", "4k/20/2/3:4k/50:8k/100,4k/")]).unwrap();
        let found = counts(&shares, Verb::Read, 4096);
        let names: Vec<u16> = found.iter().map(|c| c.0).collect();
        assert_eq!(names, [0, 0x2000, 0x4003]);
        assert!(found[1].1.abs_diff(5000) < 200 && found[2].1.abs_diff(2000) < 200);
        assert_eq!(counts(&shares, Verb::Read, 8192), [(0x2000, 10_000)]);
        assert_eq!(counts(&shares, Verb::Read, 512), [(0, 10_000)]);
        assert_eq!(counts(&shares, Verb::Write, 4096), [(0, 10_000)]);
    }

    #[test]
    fn without_settings_no_operation_has_a_priority() {
        assert_eq!(shares_of(&[]).unwrap(), [vec![], vec![]]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in ["101", "-1", "x", "1,2,3", ""] {
            assert!(pair(text, 0, 100).is_err(), "{text}");
        }
        for text in ["4k/50/2", "4k/50/4/1", "4k/60:4k/60", "4k/50/2/3/4", "x/50"] {
            assert!(split(text, [0; 2]).is_err(), "{text}");
        }
        let both = [("priority_percent", "5"), ("priority_by_size", "4k/5")];
        assert!(shares_of(&both).unwrap_err().contains("not by both"));
    }
}
