//! Devices of `null_blk`, made one by one through configfs so that each has its own settings.
//!
//! In: `null`, `slow`, `zoned`. Out: lines of setup. What `null_blk` takes when it is loaded alone
//! (`no_sched`) holds for all of them. Not here: what a setting means (the kernel's documentation).

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::{DeviceKind, Spec, Wiring};

pub(super) const NULL: DeviceKind = DeviceKind {
    name: "null",
    form: "null[:queue_mode=2,poll_queues=1,...]",
    what: "null_blk: completes at once and stores nothing; any of its parameters",
    wire: |wiring, spec| {
        let number = wiring.next("null");
        add(wiring, spec, &format!("nullb{number}"), settings(spec)?)
    },
};

pub(super) const SLOW: DeviceKind = DeviceKind {
    name: "slow",
    form: "slow[:lat=1ms,...]",
    what: "null_blk whose operations take that long",
    wire: |wiring, spec| {
        let latency = spec.value("lat").unwrap_or("1ms");
        let nanos = nanos(latency)
            .with_context(|| format!("device `{spec}`: lat={latency} is no time such as 1ms"))?;
        let mut settings = settings(spec)?;
        settings.push(("irqmode".to_owned(), "2".to_owned()));
        settings.push(("completion_nsec".to_owned(), nanos.to_string()));
        let number = wiring.next("null");
        add(wiring, spec, &format!("nullb{number}"), settings)
    },
};

pub(super) const ZONED: DeviceKind = DeviceKind {
    name: "zoned",
    form: "zoned[:256M,zone_size=16,...]",
    what: "null_blk with zones in memory",
    wire: |wiring, spec| {
        let mut settings = settings(spec)?;
        let mut default = |name: &str, value: String| {
            if settings.iter().all(|(known, _)| known != name) {
                settings.push((name.to_owned(), value));
            }
        };
        default("memory_backed", "1".to_owned());
        default("zone_size", "16".to_owned());
        default("size", "256".to_owned());
        settings.push(("zoned".to_owned(), "1".to_owned()));
        let number = wiring.next("zoned");
        add(wiring, spec, &format!("z{number}"), settings)
    },
};

/// Taken when the module is loaded, and not through configfs by every kernel.
const OF_THE_MODULE: &[&str] = &["no_sched", "shared_tags"];

/// Settings as configfs names them; sizes there are in MiB.
fn settings(spec: &Spec) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (name, value) in &spec.settings {
        let value = value.clone().unwrap_or_else(|| "1".to_owned());
        let pair = match name.as_str() {
            "lat" if spec.kind == "slow" => continue,
            "gb" => {
                let gib: u64 = value
                    .parse()
                    .with_context(|| format!("device `{spec}`: gb={value} is no number"))?;
                ("size".to_owned(), gib.saturating_mul(1024).to_string())
            }
            "bs" => ("blocksize".to_owned(), value),
            "size" => ("size".to_owned(), (spec.size(0)? >> 20).to_string()),
            word if word.starts_with(|c: char| c.is_ascii_digit()) => {
                ("size".to_owned(), (spec.size(0)? >> 20).to_string())
            }
            name => (name.to_owned(), value),
        };
        found.push(pair);
    }
    Ok(found)
}

fn add(
    wiring: &mut Wiring,
    spec: &Spec,
    name: &str,
    settings: Vec<(String, String)>,
) -> Result<()> {
    wiring.module("null_blk");
    wiring.parameter(spec, "null_blk", "nr_devices", "0")?;
    let mut line = format!("lab_null {name}");
    for (setting, value) in settings {
        if OF_THE_MODULE.contains(&setting.as_str()) {
            wiring.parameter(spec, "null_blk", &setting, &value)?;
        } else {
            let _ = write!(line, " {setting}={value}");
        }
    }
    wiring.setup.push(line);
    wiring.node(format!("echo /dev/{name}"));
    Ok(())
}

fn nanos(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn line(spec: &str) -> String {
        let wiring = Wiring::of(&[spec.to_owned()], Path::new("/run")).unwrap();
        wiring.setup.concat()
    }

    #[test]
    fn parameters_of_the_module_become_those_of_configfs() {
        assert_eq!(
            line("null:gb=2,bs=4096,queue_mode=2,no_sched=1"),
            "lab_null nullb0 size=2048 blocksize=4096 queue_mode=2"
        );
        assert_eq!(
            line("slow:lat=20us"),
            "lab_null nullb0 irqmode=2 completion_nsec=20000"
        );
        assert_eq!(
            line("zoned:512M,zone_size=8"),
            "lab_null z0 size=512 zone_size=8 memory_backed=1 zoned=1"
        );
    }
}
