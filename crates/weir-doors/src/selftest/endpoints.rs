//! The words for endpoints, `RANKS:TAGS` (spec: RPC self-test, 3.1).
//!
//! In: the value of an option. Out: an [`EndpointSet`], or what is wrong and at which character. The
//! list that a set stands for is made by the set (`weir-schema`). Not here: which option it is.

use weir_schema::{EndpointSet, Members};

use super::grammar::Wrong;

/// Characters that one side may have.
const LONGEST_SIDE: usize = 65_536;
/// The largest rank and tag; the number above means none.
const LARGEST: u64 = u32::MAX as u64 - 1;

/// Reads `RANKS:TAGS`.
///
/// # Errors
/// Anything else, with its place.
pub(super) fn endpoint_set(text: &str) -> Result<EndpointSet, Wrong> {
    const FORM: &str = "endpoint must contain non-empty rank:tag";
    let (ranks, rest) = text.split_once(':').ok_or_else(|| Wrong::whole(FORM))?;
    // Several colons are as one.
    let tags = rest.trim_start_matches(':');
    if ranks.is_empty() || tags.is_empty() {
        return Err(Wrong::whole(FORM));
    }
    let at = text.len() - tags.len();
    if let Some(colon) = tags.find(':') {
        let why = "there is a third part, and an endpoint has two: rank:tag";
        return Err(Wrong::at(at + colon, why));
    }
    Ok(EndpointSet {
        ranks: members(ranks, "rank").map_err(|wrong| wrong.behind(0))?,
        tags: members(tags, "tag").map_err(|wrong| wrong.behind(at))?,
    })
}

/// One side: numbers, ranges, `all`, and with `!` before them what is left out.
fn members(text: &str, what: &str) -> Result<Members, Wrong> {
    if text.len() > LONGEST_SIDE {
        return Err(Wrong::whole(format!(
            "endpoint {what} has more than {LONGEST_SIDE} characters"
        )));
    }
    let mut members = Members::default();
    let mut at = 0;
    for item in text.split(',') {
        let start = at;
        at += item.len() + 1;
        if item.is_empty() {
            continue;
        }
        let (own, is_out) = match item.strip_prefix('!') {
            Some(own) => (own, true),
            None => (item, false),
        };
        let own_at = start + usize::from(is_out);
        if own == "all" && !is_out {
            members.all = true;
            continue;
        }
        let is_known = |c: char| c.is_ascii_digit() || c == '-';
        if let Some(odd) = own.find(|c| !is_known(c)) {
            let why = format!("endpoint {what} contains invalid characters");
            return Err(Wrong::at(own_at + odd, why));
        }
        let range = range(own).map_err(|wrong| wrong.behind(own_at))?;
        if is_out {
            members.except.push(range);
        } else {
            members.ranges.push(range);
        }
    }
    if !members.all && members.ranges.is_empty() {
        let mut why = format!("endpoint {what} names none");
        if !members.except.is_empty() {
            why += "; `!` leaves out of others, as in all,!2";
        }
        return Err(Wrong::whole(why));
    }
    Ok(members)
}

/// `N` or `N-M`, in either order.
fn range(text: &str) -> Result<(u32, u32), Wrong> {
    let Some((first, last)) = text.split_once('-') else {
        let number = number(text)?;
        return Ok((number, number));
    };
    let behind = first.len() + 1;
    if last.contains('-') {
        return Err(Wrong::at(behind, "a range has two ends"));
    }
    let first = number(first)?;
    let last = number(last).map_err(|wrong| wrong.behind(behind))?;
    Ok((first.min(last), first.max(last)))
}

fn number(digits: &str) -> Result<u32, Wrong> {
    if digits.is_empty() {
        return Err(Wrong::at(0, "a range needs a number at either end"));
    }
    let number = digits.parse::<u64>().ok().filter(|n| *n <= LARGEST);
    let number = number.and_then(|n| u32::try_from(n).ok());
    number.ok_or_else(|| Wrong::at(0, format!("a number goes up to {LARGEST}")))
}

/// The words of a side again: ranges the right way round, nothing empty.
pub(super) fn normalised(members: &Members) -> String {
    let word = |(first, last): &(u32, u32)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    let all = members.all.then(|| "all".to_owned()).into_iter();
    let ranges = members.ranges.iter().map(word);
    let except = members
        .except
        .iter()
        .map(|range| format!("!{}", word(range)));
    all.chain(ranges)
        .chain(except)
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_schema::expand_endpoints;

    use super::*;

    fn list(text: &str) -> String {
        let set = endpoint_set(text).unwrap();
        let all = expand_endpoints(&[set], &[]).unwrap();
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        all.join(" ")
    }

    #[test]
    fn what_the_reference_reads_is_read_alike() {
        for (text, expanded) in [
            ("1-3,2:0-1", "1:0 1:1 2:0 2:1 3:0 3:1 2:0 2:1"),
            ("5-3:0", "3:0 4:0 5:0"),
            ("1,,2:0", "1:0 2:0"),
            ("0::2", "0:2"),
            ("0-4,!1,!3-9:7", "0:7 2:7"),
        ] {
            assert_eq!(list(text), expanded, "{text}");
        }
        let set = endpoint_set("5-1,,2:all,!0").unwrap();
        assert_eq!(normalised(&set.ranks), "1-5,2");
        assert_eq!(normalised(&set.tags), "all,!0");
    }

    #[test]
    fn what_the_reference_takes_for_something_else_is_refused_with_its_place() {
        for (text, why, at) in [
            ("0", "non-empty rank:tag", None),
            (":2", "non-empty rank:tag", None),
            ("0:", "non-empty rank:tag", None),
            ("", "non-empty rank:tag", None),
            ("a:0", "endpoint rank contains invalid characters", Some(0)),
            (
                "0:1, 2",
                "endpoint tag contains invalid characters",
                Some(4),
            ),
            ("1-:0", "a number at either end", Some(2)),
            ("-1:0", "a number at either end", Some(0)),
            ("1-2-3:0", "two ends", Some(2)),
            ("0:2:5", "a third part", Some(3)),
            (",:0", "endpoint rank names none", None),
            ("4294967295:0", "up to 4294967294", Some(0)),
            ("0-4294967295:0", "up to 4294967294", Some(2)),
            ("99999999999999999999:0", "up to 4294967294", Some(0)),
            ("!all:0", "invalid characters", Some(1)),
        ] {
            let wrong = endpoint_set(text).unwrap_err();
            assert!(wrong.why.contains(why), "{text}: {wrong:?}");
            assert_eq!(wrong.at, at, "{text}: {wrong:?}");
        }
        let long = format!("{}:0", "1,".repeat(32_769));
        assert!(endpoint_set(&long).is_err());
    }

    fn items() -> impl Strategy<Value = Vec<(u32, Option<u32>)>> {
        prop::collection::vec((0_u32..40, prop::option::of(0_u32..40)), 1..8)
    }

    fn words(items: &[(u32, Option<u32>)]) -> String {
        let word = |(first, last): &(u32, Option<u32>)| match last {
            Some(last) => format!("{first}-{last}"),
            None => first.to_string(),
        };
        items.iter().map(word).collect::<Vec<_>>().join(",")
    }

    fn naive(items: &[(u32, Option<u32>)]) -> Vec<u32> {
        let mut all = Vec::new();
        for (first, last) in items {
            let last = last.unwrap_or(*first);
            all.extend(*first.min(&last)..=*first.max(&last));
        }
        all
    }

    proptest! {
        #[test]
        fn a_list_is_that_of_two_loops(ranks in items(), tags in items()) {
            let set = endpoint_set(&format!("{}:{}", words(&ranks), words(&tags))).unwrap();
            let mut expected = Vec::new();
            for rank in naive(&ranks) {
                expected.extend(naive(&tags).into_iter().map(|tag| (rank, tag)));
            }
            let all = expand_endpoints(std::slice::from_ref(&set), &[]).unwrap();
            let all: Vec<(u32, u32)> = all.iter().map(|one| (one.rank, one.tag)).collect();
            prop_assert_eq!(all, expected);
            // What is printed of it means the same.
            let again = format!("{}:{}", normalised(&set.ranks), normalised(&set.tags));
            prop_assert_eq!(endpoint_set(&again).unwrap(), set);
        }

        #[test]
        fn no_words_are_too_odd(text in "[0-9,:!al-]{0,30}") {
            if let Ok(set) = endpoint_set(&text) {
                let _ = expand_endpoints(&[set], &[]);
            }
        }
    }
}
