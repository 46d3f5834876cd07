//! Values of the peer's options: numbers with a suffix, times, masks of cores, addresses, transports.
//!
//! In: the text of a value. Out: the value, or what the text should have been. Not here: values that several
//! peers share (`crate::takes`).

use std::collections::BTreeSet;

use weir_units::{Nanos, parse};

use crate::takes::Takes;

/// The most CPUs that a mask can name.
const MOST_CPUS: usize = 4096;
/// The greatest alignment of a buffer.
const WIDEST: u64 = 1 << 31;

/// A number with k, m or g.
pub(super) const CAPACITY: Takes = Takes::Grammar(|text| capacity(text).map(drop));
/// A time above 0.
pub(super) const DURATION: Takes = Takes::Grammar(|text| {
    let is_long = duration(text).is_ok_and(|time| time > Nanos(0));
    let words = "it takes a time above 0 in seconds, as 60, 90s, 5m or 1h";
    is_long.then_some(()).ok_or_else(|| words.to_owned())
});
/// A time.
pub(super) const WARM_UP: Takes = Takes::Grammar(|text| duration(text).map(drop));
/// A power of two.
pub(super) const ALIGNMENT: Takes = Takes::Grammar(|text| {
    let is_fit = |n: &u64| n.is_power_of_two() && (64..=WIDEST).contains(n);
    let fit = capacity(text).ok().filter(is_fit);
    let words = "it takes a power of two from 64 bytes to 2 GiB, as 4k";
    fit.map(drop).ok_or_else(|| words.to_owned())
});
/// A size of parts of a buffer.
pub(super) const UNIT: Takes = Takes::Grammar(|text| {
    let fit = capacity(text).ok().filter(|n| *n > 0 && n % 4 == 0);
    let words = "it takes a multiple of 4 bytes, as 4k";
    fit.map(drop).ok_or_else(|| words.to_owned())
});
/// One queue pair.
pub(super) const ONE_QUEUE: Takes = Takes::Grammar(|text| {
    let words = "it takes 1: each worker has one queue, and the kernel chooses the drive's by its CPU; for \
                 more queues take more cores (`-c`)";
    (text == "1").then_some(()).ok_or_else(|| words.to_owned())
});
/// No queue pair.
pub(super) const NO_QUEUE: Takes = Takes::Grammar(|text| {
    let words =
        "it takes 0: the kernel's driver makes the drive's queues, and no idle ones can be added";
    (text == "0").then_some(()).ok_or_else(|| words.to_owned())
});
/// An exponent of Zipf's law.
pub(super) const ZIPF: Takes = Takes::Grammar(|text| {
    #[expect(clippy::float_cmp, reason = "the formula divides by 1 - theta")]
    let is_fit = |n: &f64| (0.0..=100.0).contains(n) && *n != 1.0;
    let fit = text.parse::<f64>().ok().filter(is_fit);
    let words = "it takes a number from 0 to 100 other than 1; 0 is an even spread";
    fit.map(drop).ok_or_else(|| words.to_owned())
});
/// Engines.
pub(super) const ENGINES: Takes = Takes::Grammar(|text| engines(text).map(drop));
/// I/Os, or percent of a namespace.
pub(super) const COUNT: Takes = Takes::Grammar(|text| Count::read(text).map(drop));
/// CPUs.
pub(super) const CORES: Takes = Takes::Grammar(|text| cores(text).map(drop));
/// Address of a PCI function.
pub(super) const ADDRESS: Takes = Takes::Grammar(|text| address(text).map(drop));
/// Transport of a controller.
pub(super) const TRANSPORT: Takes = Takes::Grammar(|text| Transport::read(text).map(drop));

/// Engines by the words of this door, with their names in the house.
const NAMES: [(&str, &str); 6] = [
    ("auto", "io_uring"),
    ("uring", "io_uring"),
    ("uring-cmd", "io_uring_cmd"),
    ("libaio", "libaio"),
    ("psync", "psync"),
    // It takes the drive from the others, and so comes after them.
    ("vfio", "vfio"),
];

/// The engines of a list, each once.
pub(super) fn engines(text: &str) -> Result<Vec<&'static str>, String> {
    let words: Vec<&str> = text.split(',').collect();
    if let Some(word) = words
        .iter()
        .find(|word| NAMES.iter().all(|(name, _)| name != *word))
    {
        let names = NAMES.map(|(name, _)| name).join(", ");
        return Err(format!("there is no engine `{word}`: there are {names}"));
    }
    let mut all: Vec<&'static str> = Vec::new();
    for (_, engine) in NAMES.iter().filter(|(name, _)| words.contains(name)) {
        if !all.contains(engine) {
            all.push(engine);
        }
    }
    Ok(all)
}

/// A decimal number, which one of k, m and g behind it multiplies by a power of 1024. The peer ignores what
/// follows the letter, as in `4KiB`.
pub(super) fn capacity(text: &str) -> Result<u64, String> {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let (number, unit) = text.split_at(text.len() - digits.len());
    let shift = match unit.bytes().next().map(|unit| unit.to_ascii_lowercase()) {
        None => 0,
        Some(b'k') => 10,
        Some(b'm') => 20,
        Some(b'g') => 30,
        Some(_) => 64,
    };
    let factor = 1_u64.checked_shl(shift);
    let number = number.parse::<u64>().ok().zip(factor);
    let value = number.and_then(|(number, factor)| number.checked_mul(factor));
    let value = value.filter(|value| i64::try_from(*value).is_ok());
    value.ok_or_else(|| "it takes a whole number, also with k, m or g, as 4096 or 4k".to_owned())
}

/// A time: seconds, or with s, m or h.
pub(super) fn duration(text: &str) -> Result<Nanos, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        _ => (text, 1),
    };
    let one = parse::pause(digits).ok().filter(|_| !digits.ends_with('s'));
    let all = one.and_then(|one| one.0.checked_mul(factor));
    let words = "it takes a time in seconds, as 5, 90s, 5m or 1h";
    all.map(Nanos).ok_or_else(|| words.to_owned())
}

/// Operations of `-d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// So many.
    Operations(u64),
    /// As many as this share of the namespace has.
    Percent(u64),
}

impl Count {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let number = |digits: &str| parse::whole(digits, (1_u64, 1 << 48)).ok();
        let count = match text.strip_suffix('%') {
            Some(digits) => number(digits).map(Self::Percent),
            None => number(text).map(Self::Operations),
        };
        count.ok_or_else(|| {
            "it takes a number of I/Os, or percent of the namespace, as 1000 or 50%".to_owned()
        })
    }

    /// Operations of this size on a namespace with so many places for them.
    pub(super) fn of(self, places: u64) -> u64 {
        match self {
            Self::Operations(count) => count,
            Self::Percent(percent) => {
                let count = u128::from(places) * u128::from(percent) / 100;
                u64::try_from(count).unwrap_or(u64::MAX)
            }
        }
    }
}

/// CPUs of `-c`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cores {
    /// A CPU for each target, near to it.
    Auto,
    /// These, in ascending order.
    Named(Vec<u32>),
}

/// A mask in base 16, a list in brackets or with a comma or dash, or `auto`.
pub(super) fn cores(text: &str) -> Result<Cores, String> {
    let wrong = || "it takes a mask as 0xff, a list as [0,2,4-7], or auto".to_owned();
    if text == "auto" {
        return Ok(Cores::Auto);
    }
    let list = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let list = list.or_else(|| text.contains([',', '-']).then_some(text));
    let named: BTreeSet<u32> = match list {
        Some(list) => parse::cpus(list)
            .map_err(|_| wrong())?
            .into_iter()
            .collect(),
        None => of_mask(text).ok_or_else(wrong)?,
    };
    if named.is_empty() || named.len() > MOST_CPUS {
        return Err(wrong());
    }
    Ok(Cores::Named(named.into_iter().collect()))
}

fn of_mask(text: &str) -> Option<BTreeSet<u32>> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = digits.unwrap_or(text);
    if digits.len() > MOST_CPUS / 4 {
        return None;
    }
    let mut cpus = BTreeSet::new();
    for (place, digit) in (0_u32..).zip(digits.chars().rev()) {
        let bits = digit.to_digit(16)?;
        let set = (0..4).filter(|bit| bits >> bit & 1 == 1);
        cpus.extend(set.map(|bit| 4 * place + bit));
    }
    Some(cpus)
}

/// Address of a PCI function in the kernel's form, `0000:01:00.0`; the domain may be left out.
pub(super) fn address(text: &str) -> Result<String, String> {
    let wrong = || "it takes a PCI address, as 0000:01:00.0".to_owned();
    let parts: Vec<&str> = text.split([':', '.']).collect();
    let [domain, bus, device, function] = match parts[..] {
        [domain, bus, device, function] => [domain, bus, device, function],
        [bus, device, function] => ["0", bus, device, function],
        _ => return Err(wrong()),
    };
    let number = |text: &str, most: u32| {
        let is_plain = text.chars().all(|c| c.is_ascii_hexdigit());
        let number = u32::from_str_radix(text, 16).ok().filter(|_| is_plain);
        number.filter(|n| *n <= most).ok_or_else(wrong)
    };
    let [domain, bus] = [number(domain, u32::MAX)?, number(bus, 0xff)?];
    let [device, function] = [number(device, 0x1f)?, number(function, 7)?];
    Ok(format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"))
}

/// True if a drive of this address is behind Intel's VMD: the kernel gives these domains of their own.
pub(super) fn is_behind_vmd(address: &str) -> bool {
    let domain = address.split(':').next().unwrap_or_default();
    u32::from_str_radix(domain, 16).is_ok_and(|domain| domain >= 0x1_0000)
}

/// Controller that `-r` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Transport {
    /// PCI address; any where it is absent.
    pub(super) address: Option<String>,
    /// Namespace; all where it is absent.
    pub(super) namespace: Option<u32>,
}

impl Transport {
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for word in text.split_whitespace() {
            let pair = word.split_once([':', '=']);
            let (key, value) = pair.ok_or_else(|| format!("`{word}` is no key with a value"))?;
            match key.to_ascii_lowercase().as_str() {
                "trtype" if value.eq_ignore_ascii_case("pcie") => {}
                "trtype" => {
                    return Err(format!(
                        "{value}: drives on a network are reached by the kernel's driver: `nvme connect`, \
                         then name the device, as /dev/nvme1n1; trtype:PCIe is here"
                    ));
                }
                "traddr" => all.address = Some(address(value)?),
                "ns" => {
                    let number = parse::whole(value, (1, u32::MAX));
                    all.namespace = Some(number.map_err(|why| format!("ns:{value}: {why}"))?);
                }
                "adrfam" | "trsvcid" | "subnqn" | "hostnqn" | "hostaddr" => {
                    return Err(format!(
                        "{key} is of drives on a network, and trtype:PCIe has traddr and ns"
                    ));
                }
                _ => {
                    return Err(format!(
                        "there is no key `{key}`: it takes trtype, traddr and ns"
                    ));
                }
            }
        }
        Ok(all)
    }
}

/// CPUs as ranges: `0-3,6`.
pub(super) fn ranges(cpus: &[u32]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while let Some(first) = cpus.get(at) {
        let run = (*first..).zip(&cpus[at..]).take_while(|(n, cpu)| n == *cpu);
        let length = run.count();
        let gap = if out.is_empty() { "" } else { "," };
        push!(out, "{gap}{first}");
        if length > 1 {
            push!(out, "-{}", cpus[at + length - 1]);
        }
        at += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_letter_and_what_follows_it_is_ignored() {
        for (text, value) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4KiB", 4096),
            ("1M", 1 << 20),
            ("2g", 2 << 30),
            ("0", 0),
        ] {
            assert_eq!(capacity(text), Ok(value), "{text}");
        }
        for text in ["", "k", "-1", "4x", "1t", "1.5k", "99999999999g"] {
            assert!(capacity(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_seconds_unless_a_letter_says_otherwise() {
        for (text, seconds) in [("60", 60), ("60s", 60), ("2m", 120), ("1h", 3600), ("0", 0)] {
            assert_eq!(duration(text), Ok(Nanos::from_secs(seconds)), "{text}");
        }
        for text in ["", "-1", "1d", "s", "1ss", "99999999999h", "é"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cores_are_a_mask_or_a_list() {
        for (text, cpus) in [
            ("0xff", vec![0, 1, 2, 3, 4, 5, 6, 7]),
            ("5", vec![0, 2]),
            ("0x100000000", vec![32]),
            ("[0,2,4-5]", vec![0, 2, 4, 5]),
            ("3-1,0", vec![]),
            ("2,1,1", vec![1, 2]),
        ] {
            let named = cores(text).unwrap_or(Cores::Named(Vec::new()));
            assert_eq!(named, Cores::Named(cpus), "{text}");
        }
        for text in ["", "0", "0x", "xyz", "[0", "é"] {
            assert!(cores(text).is_err(), "{text}");
        }
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn addresses_have_the_kernels_form() {
        for (text, known) in [
            ("0000:01:00.0", "0000:01:00.0"),
            ("01:00.1", "0000:01:00.1"),
            ("10000:FF:1f.7", "10000:ff:1f.7"),
        ] {
            assert_eq!(address(text).as_deref(), Ok(known));
        }
        for text in ["", "nvme0", "0000:01:20.0", "0:1:2.9", "::.", "+1:00.0"] {
            assert!(address(text).is_err(), "{text}");
        }
        assert!(is_behind_vmd("10000:01:00.0") && !is_behind_vmd("0000:01:00.0"));
    }

    #[test]
    fn engines_are_a_list_in_which_each_stands_once() {
        assert_eq!(engines("vfio,uring,auto").unwrap(), ["io_uring", "vfio"]);
        assert!(engines("uring,spdk").unwrap_err().contains("`spdk`"));
        assert!(engines("").is_err());
    }

    #[test]
    fn transports_are_pcie() {
        let text = "trtype:PCIe traddr:0000:01:00.0 ns:2";
        let named = Transport::read(text).unwrap();
        assert_eq!(named.address.as_deref(), Some("0000:01:00.0"));
        assert_eq!(named.namespace, Some(2));
        for (text, why) in [
            ("trtype:TCP traddr:10.0.0.1", "nvme connect"),
            ("subnqn:x", "of drives on a network"),
            ("foo:1", "there is no key `foo`"),
            ("ns:0", "ns:0"),
            ("x", "no key with a value"),
        ] {
            assert!(Transport::read(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn percent_of_a_namespace_may_be_more_than_all_of_it() {
        assert_eq!(Count::read("50%").unwrap().of(16_384), 8192);
        assert_eq!(Count::read("250%").unwrap().of(10), 25);
        assert_eq!(Count::read("1000").unwrap().of(10), 1000);
        for text in ["0", "-1", "%", "1.5", "1k"] {
            assert!(Count::read(text).is_err(), "{text}");
        }
    }
}
