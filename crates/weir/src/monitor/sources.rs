//! Source of each quantity in a report: the first of its sources that exists, or the reason why none does.
//!
//! In: what was counted, which other sources there are. Out: a line for each quantity.

use std::collections::BTreeMap;

use weir_diagnose::HostFigure;

use super::events::CountedEvents;

/// Sources beside the counters of the cores.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct OtherSources {
    /// The clock is the processor's own counter.
    pub(super) has_tsc: bool,
    /// Units that count what memory controllers move.
    pub(super) memory_unit: Option<&'static str>,
    /// Units count what devices move.
    pub(super) has_io_units: bool,
    /// The drivers of interfaces count pauses.
    pub(super) has_pauses: bool,
    /// The drivers of interfaces count drops.
    pub(super) has_driver_drops: bool,
    /// The processor counts bytes of memory nodes.
    pub(super) has_node_bytes: bool,
    /// The processor counts how much of a cache is in use.
    pub(super) has_cache_bytes: bool,
    /// pcm-memory has a record.
    pub(super) has_pcm_memory: bool,
    /// pcm-pcie has a record.
    pub(super) has_pcm_pcie: bool,
}

/// The source of each quantity, by its name.
pub(super) fn sources(
    counted: &CountedEvents,
    other: OtherSources,
) -> BTreeMap<&'static str, String> {
    let cycles = [
        (has(&counted.events, "cycles"), "perf cycles"),
        (other.has_tsc, "tsc, no instructions"),
    ];
    let no_cycles = why_not(&counted.events, "cycles");
    let llc = [
        (has(&counted.events, "LLC-loads"), "perf LLC-*"),
        (
            has(&counted.events, "cache-references"),
            "perf cache-references, cache-misses",
        ),
        (other.has_cache_bytes, "resctrl llc_occupancy, no rate"),
    ];
    let units = other.memory_unit.map(|unit| format!("perf {unit}"));
    let memory = [
        (units.is_some(), units.as_deref().unwrap_or_default()),
        (other.has_node_bytes, "resctrl mbm_total_bytes"),
        (other.has_pcm_memory, "pcm-memory"),
    ];
    let pcie = [
        (
            other.has_io_units && other.has_pcm_pcie,
            "perf uncore_iio_free_running, miss rates pcm-pcie",
        ),
        (
            other.has_io_units,
            "perf uncore_iio_free_running, no miss rate",
        ),
        (other.has_pcm_pcie, "pcm-pcie"),
    ];
    let drops = [
        (other.has_driver_drops, "/proc/net/dev, drivers (ethtool)"),
        (true, "/proc/net/dev"),
    ];
    let pauses = [(other.has_pauses, "drivers (ethtool)")];
    let no_memory = "unavailable (no counting unit of a memory controller can be read, no resctrl monitoring in /sys/fs/resctrl)";
    let no_pauses = "unavailable (no driver of an interface counts them)";
    let no_pcie = "bytes of interfaces in /proc/net/dev, no miss rate";
    let migrations = match counted.migrations.value {
        Some(_) => "perf cpu-migrations".to_owned(),
        None => format!("unavailable ({})", counted.migrations.reason()),
    };
    let mut sources = BTreeMap::from([
        ("cycles", first(&cycles, &no_cycles)),
        ("llc", first(&llc, &why_not(&counted.events, "LLC-loads"))),
        ("memory", first(&memory, no_memory)),
        ("pcie", first(&pcie, no_pcie)),
        ("cpu", "/proc/stat, schedstat".to_owned()),
        ("drops", first(&drops, "")),
        ("pauses", first(&pauses, no_pauses)),
        ("migrations", migrations),
    ]);
    for (event, share) in &counted.scaled {
        sources.insert(event, scaled_note(event, *share));
    }
    sources
}

/// Note on an event that shared its counter with others.
pub(super) fn scaled_note(event: &str, share: f64) -> String {
    let percent = share * 100.0;
    format!("{event} was counted during {percent:.0} % of the time and scaled")
}

fn first(all: &[(bool, &str)], none: &str) -> String {
    let found = all.iter().find(|(is_there, _)| *is_there);
    found.map_or(none, |(_, source)| source).to_owned()
}

fn has(events: &[HostFigure], event: &str) -> bool {
    let mut known = events.iter();
    known.any(|figure| figure.name == event && figure.reading.value.is_some())
}

fn why_not(events: &[HostFigure], event: &str) -> String {
    let known = events.iter().find(|figure| figure.name == event);
    let reason = known.map_or("not counted", |figure| figure.reading.reason());
    format!("unavailable ({reason})")
}

#[cfg(test)]
mod tests {
    use weir_diagnose::Reading;

    use super::*;

    #[test]
    fn the_first_source_that_there_is_is_named() {
        let figure = |name: &str, is_there: bool| {
            let missing = || Reading::missing("ENOENT");
            let known = is_there.then(|| Reading::known(1.0));
            HostFigure::new(name, known.unwrap_or_else(missing))
        };
        let of = |loads: bool, references: bool, other: OtherSources| {
            let counted = CountedEvents {
                events: vec![
                    figure("cycles", loads),
                    figure("LLC-loads", loads),
                    figure("cache-references", references),
                ],
                migrations: Reading::missing("EACCES"),
                scaled: vec![("LLC-loads", 0.5)],
            };
            sources(&counted, other)
        };
        let none = OtherSources::default();
        assert_eq!(of(true, true, none)["llc"], "perf LLC-*");
        let both = "perf cache-references, cache-misses";
        assert_eq!(of(false, true, none)["llc"], both);
        let all = OtherSources {
            has_tsc: true,
            has_node_bytes: true,
            has_cache_bytes: true,
            has_pcm_memory: true,
            has_pcm_pcie: true,
            ..none
        };
        let some = of(false, false, all);
        assert_eq!(some["llc"], "resctrl llc_occupancy, no rate");
        assert_eq!(some["memory"], "resctrl mbm_total_bytes");
        assert_eq!(some["cycles"], "tsc, no instructions");
        assert_eq!(some["pcie"], "pcm-pcie");
        assert_eq!(some["drops"], "/proc/net/dev");
        assert!(some["pauses"].starts_with("unavailable ("), "{some:?}");
        let units = OtherSources {
            memory_unit: Some("uncore_imc"),
            has_io_units: true,
            has_pauses: true,
            has_driver_drops: true,
            ..all
        };
        let first = of(false, false, units);
        assert_eq!(first["memory"], "perf uncore_imc");
        let both = "perf uncore_iio_free_running, miss rates pcm-pcie";
        assert_eq!(first["pcie"], both);
        assert_eq!(first["drops"], "/proc/net/dev, drivers (ethtool)");
        assert_eq!(first["pauses"], "drivers (ethtool)");
        let missing = of(false, false, none);
        assert_eq!(missing["llc"], "unavailable (ENOENT)");
        assert_eq!(missing["migrations"], "unavailable (EACCES)");
        let scaled = "LLC-loads was counted during 50 % of the time and scaled";
        assert_eq!(missing["LLC-loads"], scaled);
    }
}
