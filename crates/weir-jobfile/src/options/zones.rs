//! Options about zones of the region.

use super::needs;
use super::record::{Applied, Category, Env, OptionRecord, option, refused};
use crate::diagnostic::Fault;
use crate::draft::Draft;

const NO_DEVICE_ZONES: &str =
    "zoned devices are not built in; zonemode=strided walks over zones of any target";

const fn device(name: &'static str, short: &'static str) -> OptionRecord {
    refused(name, short, NO_DEVICE_ZONES)
        .of(Category::Pattern)
        .neutral(&["0"])
}

fn mode(draft: &mut Draft, word: &str, _: Option<&str>, _: &Env<'_>) -> Applied {
    if word == "zbd" {
        return Err(
            Fault::new("job.unsupported", "`zonemode=zbd` is not supported")
                .label("modes of zoned devices")
                .help(NO_DEVICE_ZONES),
        );
    }
    draft.zones.on = word == "strided";
    Ok(())
}

pub(super) static RECORDS: &[OptionRecord] = &[
    option("zonemode", "How the region is divided into zones")
        .of(Category::Pattern)
        .default("none")
        .long("`strided`: zonesize bytes are moved in a zone of zonerange bytes, then zoneskip bytes are passed over; around at the end of the file.")
        .checked_words(
            &[
                ("none", "no zoning"),
                ("strided", "strided mode - random I/O is restricted to a single zone"),
                ("zbd", "zoned block device mode - random I/O selects one of multiple zones randomly"),
            ],
            mode,
        ),
    option("zonesize", "Bytes moved in a zone before the next one")
        .of(Category::Pattern)
        .default("0")
        .integer(0, u64::MAX, |d, n| d.zones.bytes = n),
    option("zonerange", "Length of a zone")
        .needs(needs::ZONES)
        .of(Category::Pattern)
        .default("0")
        .long("Default: zonesize.")
        .integer(0, u64::MAX, |d, n| d.zones.range = n),
    option("zoneskip", "Bytes between zones")
        .needs(needs::ZONES)
        .of(Category::Pattern)
        .default("0")
        .integer(0, u64::MAX, |d, n| d.zones.skip = n),
    device("zonecapacity", "Capacity of a zone"),
    device("read_beyond_wp", "Read beyond the write pointer"),
    device("max_open_zones", "Zones open at once"),
    device("job_max_open_zones", "Zones open at once in a job"),
    device("ignore_zone_limits", "Ignore the device's limits"),
    device("zone_reset_threshold", "When zones are reset"),
    device("zone_reset_frequency", "How often zones are reset"),
];
