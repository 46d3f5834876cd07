//! Weighted lists: `bssplit`, and the zones of a zoned random distribution.
//!
//! Both are entries `what/percent` (zones: `percent/length`) separated by `:`, in up to three
//! lists separated by `,`; entries without percent share what is left of 100.

use weir_schema::{HotZone, PerKind, Size, SplitEntry};
use weir_units::{Bytes, Percent};

use super::list::{per_kind, split};
use super::number::{NumberScale, number};
use crate::diagnostic::Fault;

/// Most entries of one list.
const MAX_ENTRIES: usize = 64;

/// Fills in the missing shares so that all add up to 100.
fn shares(given: &[Option<u8>], text: &str) -> Result<Vec<u8>, Fault> {
    let sum: u32 = given.iter().flatten().map(|p| u32::from(*p)).sum();
    let blanks = given.iter().filter(|p| p.is_none()).count();
    let fault = |message: String| {
        Err(Fault::range(message.clone())
            .peer(format!("fio: {message}"))
            .piece(text))
    };
    if sum > 100 {
        return fault("bssplit percentages add to more than 100%".to_owned());
    }
    if blanks == 0 && sum != 100 {
        return fault(format!("bssplit percentages add to {sum}%"));
    }
    let left = usize::try_from(100 - sum).unwrap_or(0);
    let mut nth = 0;
    let fill = |share: &Option<u8>| {
        share.unwrap_or_else(|| {
            // The first blanks take what does not divide evenly.
            nth += 1;
            u8::try_from(left / blanks + usize::from(nth <= left % blanks)).unwrap_or(100)
        })
    };
    Ok(given.iter().map(fill).collect())
}

fn percent(text: &str) -> Result<Option<u8>, Fault> {
    let text = text.trim().trim_end_matches('%');
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .ok()
        .filter(|p| *p <= 100)
        .map(Some)
        .ok_or_else(|| {
            Fault::range(format!("`{text}` is no percentage"))
                .label("expected 0–100")
                .piece(text)
        })
}

fn entries(text: &str) -> Result<Vec<(&str, &str)>, Fault> {
    let parts = split(text, &[':']);
    if parts.len() > MAX_ENTRIES {
        return Err(Fault::range(format!("more than {MAX_ENTRIES} entries")).piece(text));
    }
    Ok(parts
        .into_iter()
        .map(|p| p.split_once('/').unwrap_or((p, "")))
        .collect())
}

/// `size/percent:size/percent[,write list[,trim list]]`
pub(crate) fn block_sizes(
    text: &str,
    scale: NumberScale,
    max: u64,
) -> Result<PerKind<Vec<SplitEntry>>, Fault> {
    let list = |text: &str| {
        let entries = entries(text)?;
        let given: Vec<_> = entries
            .iter()
            .map(|(_, p)| percent(p))
            .collect::<Result<_, _>>()?;
        let shares = shares(&given, text)?;
        let mut list = Vec::new();
        for ((size, _), percent) in entries.into_iter().zip(shares) {
            let bytes = number(size.trim(), scale)?;
            if bytes == 0 || bytes > max {
                return Err(Fault::range(format!("a block of {bytes} bytes"))
                    .label(format!("expected 1–{max}"))
                    .piece(size));
            }
            list.push(SplitEntry {
                bytes: Bytes(bytes),
                percent,
            });
        }
        Ok(list)
    };
    let given = split(text, &[',']).into_iter().map(list);
    per_kind(&given.collect::<Result<Vec<_>, _>>()?, text)
}

/// `access%/length:…` with lengths in percent of the region, or in bytes.
pub(crate) fn zones(
    text: &str,
    scale: NumberScale,
    absolute: bool,
) -> Result<PerKind<Vec<HotZone>>, Fault> {
    let list = |text: &str| {
        let mut zones = Vec::new();
        // One that has no length, as the last one may, has what is left.
        let mut lengths = 0_u8;
        for (access, length) in entries(text)? {
            let access = percent(access)?.ok_or_else(|| {
                Fault::value("a zone without its share of the accesses").piece(text)
            })?;
            let length = if absolute {
                Size::Bytes(Bytes(number(length.trim(), scale)?))
            } else {
                let given = percent(length)?.unwrap_or(100_u8.saturating_sub(lengths));
                lengths = lengths.saturating_add(given);
                Size::Percent(f64::from(given))
            };
            zones.push(HotZone {
                access_percent: Percent(f64::from(access)),
                length,
            });
        }
        let got: f64 = zones.iter().map(|z| z.access_percent.0).sum();
        if (got - 100.0).abs() > 0.5 {
            let message = "access percentage don't add up to 100 for zoned random distribution";
            return Err(
                Fault::range(format!("the zones' accesses add up to {got}%"))
                    .label("expected 100%")
                    .peer(format!("fio: {message} (got={got})"))
                    .piece(text),
            );
        }
        Ok(zones)
    };
    let given = split(text, &[',']).into_iter().map(list);
    per_kind(&given.collect::<Result<Vec<_>, _>>()?, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: NumberScale = NumberScale::Count { kb_base: 1024 };

    fn shares_of(text: &str) -> Result<Vec<(u64, u8)>, String> {
        block_sizes(text, K, 1 << 30)
            .map(|p| p.read.iter().map(|e| (e.bytes.0, e.percent)).collect())
            .map_err(|f| f.message)
    }

    #[test]
    fn blank_percentages_share_the_rest() {
        assert_eq!(shares_of("4k/60:64k/"), Ok(vec![(4096, 60), (65536, 40)]));
        assert_eq!(
            shares_of("1k:2k:3k"),
            Ok(vec![(1024, 34), (2048, 33), (3072, 33)])
        );
    }

    #[test]
    fn wrong_sums_are_refused() {
        assert_eq!(
            shares_of("4k/60:8k/50:1k"),
            Err("bssplit percentages add to more than 100%".into())
        );
        assert_eq!(
            shares_of("4k/50:8k/40"),
            Err("bssplit percentages add to 90%".into())
        );
        assert!(shares_of("4k/x").is_err());
        assert!(shares_of("0/100").is_err());
        assert!(shares_of(&vec!["1k"; 65].join(":")).is_err());
    }

    #[test]
    fn a_missing_write_list_copies_the_reads() {
        let split = block_sizes("4k,8k/50:16k/50", K, 1 << 30).unwrap();
        assert_eq!(
            (split.read.len(), split.write.len(), split.trim.len()),
            (1, 2, 2)
        );
    }

    #[test]
    fn zones_must_add_up() {
        assert!(zones("60/10:30/20:8/30:2/40", K, false).is_ok());
        assert!(zones("60/1g:40/2g", K, true).is_ok());
        let rest = zones("50/5:30/15:20/", K, false).unwrap();
        assert_eq!(rest.read[2].length, Size::Percent(80.0));
        let fault = zones("60/10:30/20", K, false).unwrap_err();
        assert!(fault.peer[0].ends_with("(got=90)"), "{fault:?}");
    }
}
