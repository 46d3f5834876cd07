//! The part of a target that a worker uses.
//!
//! In: the plan's region and what is known of the target. Out: first byte and length, or why
//! there is none. Pure arithmetic. Not here: how the target's length was found.

use weir_schema::{Part, Region, Size};
use weir_units::Bytes;

use crate::source::Extent;

/// The size of a character device, which has none of its own.
const ENDLESS: u64 = 1 << 40;
/// The region of a file that is written until there is no more room.
const UNTIL_FULL: u64 = 1 << 60;
/// No file is longer: the system counts offsets with a sign.
const LONGEST_FILE: u64 = i64::MAX as u64;

/// Kind and size of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// A regular file of this length; 0 if it is empty or missing.
    File { length: u64, grows: bool },
    /// A block device.
    Device { size: u64 },
    /// A character device.
    Endless,
    /// The engine moves no data.
    Nothing,
}

/// The region of one target that a worker asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionRequest<'a> {
    /// The plan's words.
    pub(crate) region: &'a Region,
    /// Size of each file, drawn if the plan gives a range.
    pub(crate) file_size: Option<u64>,
    /// Targets of the clone.
    pub(crate) files: u64,
    /// Number of the clone.
    pub(crate) clone: u64,
    /// The smallest block.
    pub(crate) block: u64,
    /// A full file system ends the job.
    pub(crate) until_full: bool,
    /// The region begins at the end of a file.
    pub(crate) append: bool,
    /// Something else ends the job: no size is needed where nothing is moved.
    pub(crate) timed: bool,
}

/// Reason that there is no region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misplaced {
    #[error("it has no size of its own, so the size of the region or of the file has to be given")]
    NoSize,
    #[error("the region begins at offset {start}, but the target ends at {end}")]
    BehindTheEnd { start: u64, end: u64 },
    #[error("the region [{start}, {end}) is longer than the device, which has {size} bytes")]
    BeyondDevice { start: u64, end: u64, size: u64 },
    #[error(
        "the region of {length} bytes from offset {start} is smaller than a block of {block} bytes"
    )]
    TooSmall { start: u64, length: u64, block: u64 },
    #[error("offset and size are too large to add up")]
    TooLarge,
    #[error("the region ends at byte {end}, and no file is longer than 2^63 - 1 bytes")]
    BeyondFiles { end: u64 },
}

impl Misplaced {
    /// The stable word for the cause.
    pub(crate) const fn cause(&self) -> &'static str {
        match self {
            Self::NoSize => "no_size",
            Self::BehindTheEnd { .. } => "bad_offset",
            Self::TooSmall { .. } => "too_small",
            Self::BeyondDevice { .. } | Self::BeyondFiles { .. } | Self::TooLarge => "plan",
        }
    }
}

fn share(percent: f64, of: u64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a size; saturates"
    )]
    let part = (percent / 100.0 * of as f64) as u64;
    part.min(of)
}

/// The region of a worker on a target.
pub(crate) fn place(request: &RegionRequest<'_>, ground: Ground) -> Result<Extent, Misplaced> {
    let region = request.region;
    let asked = match region.size {
        // A size is shared by the files, unless each has a size of its own.
        Some(Size::Bytes(Bytes(size))) if request.file_size.is_none() => {
            Some(size / request.files.max(1))
        }
        Some(Size::Bytes(Bytes(size))) => Some(size),
        _ => None,
    };
    let whole = whole(request, ground, asked);
    let start = match ground {
        Ground::File { length, .. } if request.append => length,
        _ => start(request, whole.or(asked).unwrap_or(0))?,
    };
    let length = match (asked, region.size) {
        (Some(length), _) => length,
        (None, Some(Size::Percent(percent))) => share(percent, whole.ok_or(Misplaced::NoSize)?),
        (None, _) => {
            let end = whole.ok_or(Misplaced::NoSize)?;
            end.checked_sub(start)
                .ok_or(Misplaced::BehindTheEnd { start, end })?
        }
    };
    let end = start.checked_add(length).ok_or(Misplaced::TooLarge)?;
    let limit = limit(request, ground);
    if let Ground::Device { size } = ground
        && asked.is_some()
        && end > size
        && limit >= size
    {
        return Err(Misplaced::BeyondDevice { start, end, size });
    }
    if start >= limit {
        return Err(Misplaced::BehindTheEnd { start, end: limit });
    }
    let end = end.min(limit);
    if matches!(ground, Ground::File { .. }) && end > LONGEST_FILE {
        return Err(Misplaced::BeyondFiles { end });
    }
    let length = end - start;
    if length < request.block.max(1) {
        return Err(Misplaced::TooSmall {
            start,
            length,
            block: request.block,
        });
    }
    Ok(Extent { start, length })
}

/// A region in which the blocks of every kind have room.
pub(crate) fn roomy(region: Extent, block: u64) -> Result<Extent, Misplaced> {
    let (start, length) = (region.start, region.length);
    if length < block {
        return Err(Misplaced::TooSmall {
            start,
            length,
            block,
        });
    }
    Ok(region)
}

/// One of equal parts of a region, each a whole number of blocks; the last has what remains.
pub(crate) fn part_of(region: Extent, part: Part, block: u64) -> Result<Extent, Misplaced> {
    let block = block.max(1);
    let (number, of) = (u64::from(part.number), u64::from(part.of.max(1)));
    let length = region.length / of / block * block;
    if length == 0 {
        return Err(Misplaced::TooSmall {
            start: region.start,
            length: region.length / of,
            block,
        });
    }
    let before = length * number;
    Ok(Extent {
        start: region.start + before,
        length: if number + 1 == of {
            region.length - before
        } else {
            length
        },
    })
}

/// The size of the whole target, as far as it has one.
fn whole(request: &RegionRequest<'_>, ground: Ground, asked: Option<u64>) -> Option<u64> {
    match (ground, request.file_size) {
        (Ground::Device { size }, Some(given)) => Some(size.min(given)),
        (Ground::Device { size }, None) => Some(size),
        (_, Some(given)) => Some(given),
        (Ground::File { .. }, None) if request.until_full => Some(UNTIL_FULL),
        (Ground::File { length, .. }, None) => Some(length).filter(|&length| length > 0),
        // Only a share makes sense of a device that never ends.
        (Ground::Endless, None) => {
            let is_share = matches!(request.region.size, Some(Size::Percent(_)));
            (asked.is_some() || is_share).then_some(ENDLESS)
        }
        (Ground::Nothing, None) => (asked.is_some() || request.timed).then_some(ENDLESS),
    }
}

/// End of the target for this job.
fn limit(request: &RegionRequest<'_>, ground: Ground) -> u64 {
    let given = request.file_size.unwrap_or(u64::MAX);
    match ground {
        Ground::File { grows: true, .. } | Ground::File { length: 0, .. } | Ground::Nothing => {
            given
        }
        Ground::File {
            length,
            grows: false,
        } => length.min(given),
        Ground::Device { size } => size.min(given),
        Ground::Endless if request.file_size.is_none() => ENDLESS,
        Ground::Endless => given,
    }
}

fn start(request: &RegionRequest<'_>, whole: u64) -> Result<u64, Misplaced> {
    let region = request.region;
    let first = match region.offset {
        None => 0,
        Some(Size::Bytes(offset)) => offset.0,
        Some(Size::Percent(percent)) => {
            let align = region
                .offset_align_bytes
                .map_or(request.block, |align| align.0)
                .max(1);
            share(percent, whole) / align * align
        }
    };
    let step = match region.offset_step {
        None => 0,
        Some(Size::Bytes(step)) => step.0,
        Some(Size::Percent(percent)) => share(percent, whole),
    };
    let moved = step.checked_mul(request.clone).ok_or(Misplaced::TooLarge)?;
    first.checked_add(moved).ok_or(Misplaced::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[expect(clippy::unnecessary_wraps, reason = "as the plan's fields take it")]
    fn bytes(n: u64) -> Option<Size> {
        Some(Size::Bytes(Bytes(n)))
    }

    fn request(region: &Region) -> RegionRequest<'_> {
        let file_size = region.file_size_bytes.map(|(low, _)| low.0);
        RegionRequest {
            region,
            file_size,
            files: 1,
            clone: 0,
            block: 4096,
            until_full: false,
            append: false,
            timed: false,
        }
    }

    fn placed(region: &Region, ground: Ground) -> Result<(u64, u64), Misplaced> {
        place(&request(region), ground).map(|e| (e.start, e.length))
    }

    const READ: fn(u64) -> Ground = |length| Ground::File {
        length,
        grows: false,
    };
    const WRITE: fn(u64) -> Ground = |length| Ground::File {
        length,
        grows: true,
    };

    #[test]
    fn parts_lie_side_by_side_and_make_up_the_whole() {
        let whole = Extent {
            start: MIB,
            length: 10 * 4096 + 100,
        };
        let part = |number| part_of(whole, Part { number, of: 3 }, 4096).unwrap();
        let mut at = whole.start;
        for number in 0..3 {
            assert_eq!(part(number).start, at);
            at += part(number).length;
        }
        assert_eq!(at, whole.start + whole.length);
        assert_eq!(part(0).length, 3 * 4096);
        let eleven = Part { number: 0, of: 11 };
        assert!(part_of(whole, eleven, 4096).is_err());
    }

    #[test]
    fn without_a_size_the_rest_of_the_target_is_used() {
        let region = Region {
            offset: bytes(MIB),
            ..Region::default()
        };
        assert_eq!(placed(&region, READ(4 * MIB)), Ok((MIB, 3 * MIB)));
        assert_eq!(
            placed(&region, Ground::Device { size: 4 * MIB }),
            Ok((MIB, 3 * MIB))
        );
    }

    #[test]
    fn a_missing_file_without_size_needs_one() {
        let region = Region::default();
        assert_eq!(placed(&region, WRITE(0)), Err(Misplaced::NoSize));
        assert_eq!(placed(&region, Ground::Endless), Err(Misplaced::NoSize));
        let half = Region {
            size: Some(Size::Percent(50.0)),
            ..Region::default()
        };
        assert_eq!(placed(&half, WRITE(0)), Err(Misplaced::NoSize));
    }

    #[test]
    fn a_file_size_limits_the_region() {
        let file_size_bytes = Some((Bytes(64 * MIB), Bytes(64 * MIB)));
        let offset = bytes(56 * MIB);
        let region = Region {
            size: bytes(16 * MIB),
            offset,
            file_size_bytes,
            ..Region::default()
        };
        assert_eq!(placed(&region, Ground::Endless), Ok((56 * MIB, 8 * MIB)));
        assert_eq!(placed(&region, WRITE(0)), Ok((56 * MIB, 8 * MIB)));
        let first = Region {
            offset: None,
            ..region
        };
        assert_eq!(placed(&first, Ground::Endless), Ok((0, 16 * MIB)));
    }

    #[test]
    fn a_character_device_without_file_size_ends_at_two_to_the_forty() {
        let region = Region {
            size: bytes(1 << 41),
            ..Region::default()
        };
        assert_eq!(placed(&region, Ground::Endless), Ok((0, 1 << 40)));
        let all = Region {
            size: Some(Size::Percent(100.0)),
            offset: bytes(MIB),
            ..Region::default()
        };
        assert_eq!(placed(&all, Ground::Endless), Ok((MIB, (1 << 40) - MIB)));
    }

    #[test]
    fn a_share_of_a_device_with_file_size_is_a_share_of_that() {
        let region = Region {
            size: Some(Size::Percent(100.0)),
            offset: bytes(48 * MIB),
            file_size_bytes: Some((Bytes(64 * MIB), Bytes(64 * MIB))),
            ..Region::default()
        };
        assert_eq!(placed(&region, Ground::Endless), Ok((48 * MIB, 16 * MIB)));
    }

    #[test]
    fn a_size_is_split_evenly_over_the_files() {
        let region = Region {
            size: bytes(8 * MIB),
            ..Region::default()
        };
        let request = RegionRequest {
            files: 4,
            ..request(&region)
        };
        assert_eq!(
            place(&request, WRITE(0)),
            Ok(Extent {
                start: 0,
                length: 2 * MIB
            })
        );
    }

    #[test]
    fn each_clone_begins_a_step_further() {
        let region = Region {
            size: bytes(MIB),
            offset_step: bytes(MIB),
            ..Region::default()
        };
        let request = RegionRequest {
            clone: 3,
            ..request(&region)
        };
        assert_eq!(
            place(&request, WRITE(0)),
            Ok(Extent {
                start: 3 * MIB,
                length: MIB
            })
        );
    }

    #[test]
    fn an_offset_in_percent_is_rounded_down() {
        let region = Region {
            offset: Some(Size::Percent(50.0)),
            ..Region::default()
        };
        assert_eq!(placed(&region, READ(10_000)), Ok((4096, 5904)));
        let aligned = Region {
            offset_align_bytes: Some(Bytes(MIB)),
            ..region
        };
        assert_eq!(placed(&aligned, READ(3 * MIB)), Ok((MIB, 2 * MIB)));
    }

    #[test]
    fn reads_never_reach_beyond_a_file() {
        let region = Region {
            size: bytes(28 * MIB),
            ..Region::default()
        };
        assert_eq!(placed(&region, READ(16 * MIB)), Ok((0, 16 * MIB)));
        assert_eq!(placed(&region, WRITE(16 * MIB)), Ok((0, 28 * MIB)));
    }

    #[test]
    fn an_offset_behind_the_end_is_refused_with_its_numbers() {
        let region = Region {
            offset: bytes(2 * MIB),
            size: bytes(MIB),
            ..Region::default()
        };
        let error = placed(&region, READ(MIB)).unwrap_err();
        assert_eq!(
            error,
            Misplaced::BehindTheEnd {
                start: 2 * MIB,
                end: MIB
            }
        );
        let rest = Region {
            size: None,
            ..region
        };
        assert!(
            placed(&rest, READ(MIB))
                .unwrap_err()
                .to_string()
                .contains("but the target ends")
        );
    }

    #[test]
    fn a_device_smaller_than_the_job_is_refused() {
        let region = Region {
            size: bytes(2 * MIB),
            ..Region::default()
        };
        let error = placed(&region, Ground::Device { size: MIB }).unwrap_err();
        assert_eq!(
            error,
            Misplaced::BeyondDevice {
                start: 0,
                end: 2 * MIB,
                size: MIB
            }
        );
    }

    #[test]
    fn a_region_smaller_than_a_block_is_refused() {
        let region = Region {
            size: bytes(4095),
            ..Region::default()
        };
        let error = placed(&region, WRITE(0)).unwrap_err().to_string();
        assert!(
            error.contains("4095 bytes from offset 0 is smaller than a block of 4096"),
            "{error}"
        );
    }

    #[test]
    fn an_appending_job_begins_at_the_end_of_the_file() {
        let region = Region {
            size: bytes(MIB),
            ..Region::default()
        };
        let appending = RegionRequest {
            append: true,
            ..request(&region)
        };
        let placed = place(&appending, WRITE(10_000)).map(|e| (e.start, e.length));
        assert_eq!(placed, Ok((10_000, MIB)));
        assert!(place(&appending, READ(10_000)).is_err());
    }

    #[test]
    fn sums_that_overflow_are_refused() {
        let region = Region {
            size: bytes(u64::MAX),
            offset: bytes(4096),
            ..Region::default()
        };
        assert_eq!(placed(&region, WRITE(0)), Err(Misplaced::TooLarge));
    }

    #[test]
    fn the_empty_engine_takes_any_size_and_none_if_time_ends_it() {
        let region = Region {
            size: bytes(1 << 50),
            ..Region::default()
        };
        assert_eq!(placed(&region, Ground::Nothing), Ok((0, 1 << 50)));
        let none = Region::default();
        assert_eq!(placed(&none, Ground::Nothing), Err(Misplaced::NoSize));
        let request = RegionRequest {
            timed: true,
            ..request(&none)
        };
        assert_eq!(
            place(&request, Ground::Nothing).map(|e| e.length),
            Ok(1 << 40)
        );
    }
}
