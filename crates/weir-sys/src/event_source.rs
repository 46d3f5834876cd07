//! Counting units outside the cores, as the kernel describes them: memory controllers, units of devices.
//!
//! In: `/sys/bus/event_source/devices`. Out: each unit's events by name, with what `perf_event_open` wants to know
//! and the unit of a count. Not here: opening them, which units matter.

use crate::cpulist::CpuList;
use crate::tree::Tree;

const FOLDER: &str = "sys/bus/event_source/devices";
/// Words in which a unit's settings are.
const CONFIGS: [&str; 3] = ["config", "config1", "config2"];

/// A counting unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSource {
    /// As the kernel calls it: `uncore_imc_0`.
    pub name: String,
    /// Number by which perf knows it.
    pub kind: u32,
    /// A CPU of each socket that has one.
    pub cpus: Vec<u32>,
}

/// An event of a unit.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceEvent {
    /// Settings of the unit that count it.
    pub config: [u64; 3],
    /// Value of one count, in `unit`.
    pub scale: f64,
    /// Unit of the value: `MiB`; nothing where the kernel does not say.
    pub unit: String,
}

/// The units whose name begins so, by name.
pub fn event_sources(tree: &Tree, prefix: &str) -> Vec<EventSource> {
    let mut names = tree.names(FOLDER);
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    let of = |name: String| {
        let cpus = tree.word(format!("{FOLDER}/{name}/cpumask"))?;
        let cpus = cpus.parse::<CpuList>().ok()?;
        Some(EventSource {
            kind: tree.number(format!("{FOLDER}/{name}/type"))?,
            cpus: cpus.as_slice().to_vec(),
            name,
        })
    };
    names.into_iter().filter_map(of).collect()
}

impl EventSource {
    /// Names of its events.
    pub fn events(&self, tree: &Tree) -> Vec<String> {
        let mut names = tree.names(format!("{FOLDER}/{}/events", self.name));
        names.retain(|name| !name.contains('.'));
        names.sort();
        names
    }

    /// An event of this name; nothing where the unit has none or its description is not understood.
    pub fn event(&self, tree: &Tree, name: &str) -> Option<SourceEvent> {
        let file = format!("{FOLDER}/{}/events/{name}", self.name);
        let terms = tree.word(&file)?;
        let scale = tree.number(format!("{file}.scale"));
        Some(SourceEvent {
            config: self.config(tree, &terms)?,
            scale: scale.unwrap_or(1.0),
            unit: tree.word(format!("{file}.unit")).unwrap_or_default(),
        })
    }

    /// The settings that `event=0x04,umask=0x03` stands for.
    pub fn config(&self, tree: &Tree, terms: &str) -> Option<[u64; 3]> {
        let mut config = [0; 3];
        for term in terms.split(',') {
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            let value = number(value)?;
            let format = tree.word(format!("{FOLDER}/{}/format/{}", self.name, name.trim()))?;
            let (word, bits) = format.split_once(':')?;
            let at = CONFIGS.iter().position(|known| *known == word)?;
            config[at] |= spread(value, bits)?;
        }
        Some(config)
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A value in these bits, its lowest ones in the first: `0-7,21`. Nothing where it does not fit.
fn spread(mut value: u64, bits: &str) -> Option<u64> {
    let mut all = 0;
    for range in bits.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last > 63 || first > last {
            return None;
        }
        for bit in first..=last {
            all |= (value & 1) << bit;
            value >>= 1;
        }
    }
    (value == 0).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    #[test]
    fn events_are_what_the_kernel_describes() {
        let unit = |path: &str| format!("{FOLDER}/uncore_imc_0/{path}");
        let made = FakeTree::new();
        for (path, text) in [
            ("type", "17\n"),
            ("cpumask", "0,28\n"),
            ("format/event", "config:0-7\n"),
            ("format/umask", "config:8-15,32\n"),
            ("format/edge", "config1:18\n"),
            ("events/cas_count_read", "event=0x04,umask=0x103\n"),
            ("events/cas_count_read.scale", "6.103515625e-5\n"),
            ("events/cas_count_read.unit", "MiB\n"),
            ("events/clockticks", "event=0x00,edge\n"),
            ("events/odd", "event=0x1ff\n"),
            ("events/strange", "no_such=1\n"),
        ] {
            made.write(&unit(path), text);
        }
        let tree = made.tree();
        assert_eq!(event_sources(&tree, "uncore_iio"), []);
        let found = event_sources(&tree, "uncore_imc");
        let [imc] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((imc.kind, &imc.cpus[..]), (17, &[0, 28][..]));
        let names = ["cas_count_read", "clockticks", "odd", "strange"];
        assert_eq!(imc.events(&tree), names);
        let read = imc.event(&tree, "cas_count_read").unwrap();
        assert_eq!(read.config, [0x1_0000_0304, 0, 0]);
        assert_eq!((read.scale, read.unit.as_str()), (6.103_515_625e-5, "MiB"));
        let ticks = imc.event(&tree, "clockticks").unwrap();
        assert_eq!((ticks.config, ticks.scale), ([0, 1 << 18, 0], 1.0));
        // More than fits into eight bits, and a term that the unit does not have.
        assert_eq!(imc.event(&tree, "odd"), None);
        assert_eq!(imc.event(&tree, "strange"), None);
    }
}
