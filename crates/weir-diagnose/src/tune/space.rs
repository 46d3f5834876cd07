//! The settings that a search may choose from.
//!
//! In: texts such as `1..512*2`, `0..100+10`, `64,4k,1m`, `ring,udp`, with `@VALUE` behind them where the search
//! does not begin with the first. Out: a [`TuneDimension`] each. Not here: where the values go.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A point of the space: the number of the value in each dimension.
pub type TunePoint = Vec<usize>;

/// The most values of a dimension.
const MOST_VALUES: usize = 4096;

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneSpace {
    /// One each.
    pub dimensions: Vec<TuneDimension>,
}

/// A setting and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuneDimension {
    /// Name of the dimension.
    pub name: String,
    /// Its values, as they are written into words.
    pub values: Vec<String>,
    /// Neighbours are alike: the values are numbers that only rise or only fall.
    pub is_ordered: bool,
    /// Start of the search.
    pub start: usize,
    /// The value that it has while settings without an order are compared for the first time, so that they
    /// are not judged by a poor start of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_at: Option<String>,
    /// It also moves by steps together with all others of this kind: one of them alone gains nothing where
    /// each hands over what the one before it gathers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_joint: bool,
}

/// Values that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}={text}: {message}")]
pub struct SpaceError {
    /// The setting.
    pub name: String,
    /// The text given.
    pub text: String,
    /// The error in it.
    pub message: String,
}

impl TuneSpace {
    /// Start of the search.
    pub fn start(&self) -> TunePoint {
        self.dimensions.iter().map(|d| d.start).collect()
    }

    /// The values of a point, by name.
    pub fn values<'a>(&'a self, point: &[usize]) -> Vec<(&'a str, &'a str)> {
        let both = self.dimensions.iter().zip(point);
        let value = |(d, at): (&'a TuneDimension, &usize)| {
            Some((d.name.as_str(), d.values.get(*at)?.as_str()))
        };
        both.filter_map(value).collect()
    }

    /// Number of points, up to the largest number.
    pub fn points(&self) -> usize {
        let sizes = self.dimensions.iter().map(|d| d.values.len());
        sizes.fold(1, usize::saturating_mul)
    }
}

impl TuneDimension {
    /// Reads the values of a setting.
    ///
    /// # Errors
    /// They cannot be understood, are fewer than two, or two are equal.
    pub fn read(name: &str, text: &str) -> Result<Self, SpaceError> {
        let wrong = |message: &str| SpaceError {
            name: name.to_owned(),
            text: text.to_owned(),
            message: message.to_owned(),
        };
        let (list, start) = match text.rsplit_once('@') {
            Some((list, start)) => (list, Some(start)),
            None => (text, None),
        };
        let values: Vec<String> = match list.split_once("..") {
            Some((first, rest)) => range(first, rest).map_err(wrong)?,
            None => list.split(',').map(|v| v.trim().to_owned()).collect(),
        };
        if values.len() < 2 || values.iter().any(String::is_empty) {
            return Err(wrong("two values or more, as 1..512*2, 0..8+1 or a,b,c"));
        }
        let mut sorted = values.clone();
        sorted.sort();
        sorted.dedup();
        if sorted.len() < values.len() {
            return Err(wrong("a value stands there twice"));
        }
        let find = |wanted: &str| values.iter().position(|value| value == wanted);
        let start = match start {
            Some(start) => {
                find(start).ok_or_else(|| wrong("@ is followed by one of the values"))?
            }
            None => 0,
        };
        Ok(Self {
            name: name.to_owned(),
            is_ordered: is_ordered(&values),
            values,
            start,
            compared_at: None,
            is_joint: false,
        })
    }

    /// The number of the value at which settings without an order are compared, where it has one.
    pub(super) fn comparing(&self) -> Option<usize> {
        let wanted = self.compared_at.as_ref()?;
        self.values.iter().position(|value| value == wanted)
    }

    /// Lets the search begin with this value, which becomes one of the dimension's where it is none.
    pub fn begin_with(&mut self, value: &str) {
        let known = self.values.iter().position(|known| known == value);
        self.start = known.unwrap_or_else(|| {
            let of_value = number(value).filter(|_| self.is_ordered);
            let at = of_value.and_then(|of_value| {
                let rises = number(self.values.first()?)? < number(self.values.last()?)?;
                let is_behind =
                    |known: &String| number(known).is_some_and(|known| (known > of_value) == rises);
                self.values.iter().position(is_behind)
            });
            let at = at.unwrap_or(self.values.len());
            self.values.insert(at, value.to_owned());
            at
        });
        self.is_ordered = is_ordered(&self.values);
    }
}

fn is_ordered(values: &[String]) -> bool {
    let numbers: Option<Vec<f64>> = values.iter().map(|value| number(value)).collect();
    numbers.is_some_and(|numbers| {
        numbers.len() > 2
            && (numbers.windows(2).all(|pair| pair[0] < pair[1])
                || numbers.windows(2).all(|pair| pair[0] > pair[1]))
    })
}

/// Units of sizes, by their letter.
const UNITS: [(char, u64); 3] = [('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30)];

/// A number, with `k`, `m` or `g` behind it.
fn number(text: &str) -> Option<f64> {
    let (digits, unit) = with_unit(text);
    let number: f64 = digits.parse().ok()?;
    number.is_finite().then_some(number * unit as f64)
}

fn with_unit(text: &str) -> (&str, u64) {
    let find = |(letter, unit): &(char, u64)| {
        let digits = text.strip_suffix([*letter, letter.to_ascii_uppercase()])?;
        Some((digits, *unit))
    };
    UNITS.iter().find_map(find).unwrap_or((text, 1))
}

fn whole(text: &str) -> Option<u64> {
    let (digits, unit) = with_unit(text);
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The values of `FIRST..LAST*FACTOR` and `FIRST..LAST+STEP`.
fn range(first: &str, rest: &str) -> Result<Vec<String>, &'static str> {
    const FORM: &str = "a range is FIRST..LAST*FACTOR or FIRST..LAST+STEP, in whole numbers";
    let (last, factor, step) = match (rest.split_once('*'), rest.split_once('+')) {
        (Some((last, factor)), None) => (last, whole(factor).ok_or(FORM)?, 0),
        (None, Some((last, step))) => (last, 1, whole(step).ok_or(FORM)?),
        (None, None) => (rest, 1, 1),
        _ => return Err(FORM),
    };
    let (mut next, last) = (whole(first).ok_or(FORM)?, whole(last).ok_or(FORM)?);
    if factor == 0 || factor == 1 && step == 0 || factor > 1 && next == 0 {
        return Err("the range does not rise");
    }
    if next > last {
        return Err("the range does not rise");
    }
    let has_units = [first, rest]
        .iter()
        .any(|text| text.contains(char::is_alphabetic));
    let mut values = Vec::new();
    while next <= last {
        if values.len() == MOST_VALUES {
            return Err("a setting has at most 4096 values");
        }
        values.push(shown(next, has_units));
        let Some(following) = next.checked_mul(factor).and_then(|n| n.checked_add(step)) else {
            break;
        };
        next = following;
    }
    Ok(values)
}

/// A number with the largest unit that leaves it whole, where the range has units.
fn shown(number: u64, has_units: bool) -> String {
    let fits = |(_, unit): &&(char, u64)| number > 0 && number.is_multiple_of(*unit);
    match UNITS.iter().rev().find(fits).filter(|_| has_units) {
        Some((letter, unit)) => format!("{}{letter}", number / unit),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (String, bool, usize) {
        let read = TuneDimension::read("n", text).unwrap();
        (read.values.join(" "), read.is_ordered, read.start)
    }

    #[test]
    fn ranges_multiply_or_add_and_lists_are_as_written() {
        assert_eq!(of("1..20*2@4"), ("1 2 4 8 16".to_owned(), true, 2));
        assert_eq!(of("4k..2m*8"), ("4k 32k 256k 2m".to_owned(), true, 0));
        assert_eq!(of("0..9+3"), ("0 3 6 9".to_owned(), true, 0));
        assert_eq!(of("3..5"), ("3 4 5".to_owned(), true, 0));
        assert_eq!(of("64, 8,1@8"), ("64 8 1".to_owned(), true, 1));
        assert_eq!(of("ring,udp"), ("ring udp".to_owned(), false, 0));
        assert_eq!(of("1,9,4"), ("1 9 4".to_owned(), false, 0));
    }

    #[test]
    fn values_that_say_nothing_are_refused() {
        for (text, says) in [
            ("1", "two values"),
            ("1,,2", "two values"),
            ("5..5*2", "two values"),
            ("a,b,a", "twice"),
            ("1..8*1", "does not rise"),
            ("64..8*2", "does not rise"),
            ("0..8*2", "does not rise"),
            ("1..8+0", "does not rise"),
            ("1..x*2", "a range is"),
            ("1..8*2+1", "a range is"),
            ("1..9999999", "at most 4096"),
            ("1,2@3", "one of the values"),
        ] {
            let error = TuneDimension::read("n", text).unwrap_err();
            assert!(error.message.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn the_value_that_holds_is_where_the_search_begins() {
        let mut batch = TuneDimension::read("n", "1..64*2").unwrap();
        batch.begin_with("8");
        assert_eq!((batch.start, batch.values.len()), (3, 7));
        batch.begin_with("20");
        assert_eq!(
            (batch.start, batch.values.join(" ").as_str()),
            (5, "1 2 4 8 16 20 32 64")
        );
        batch.begin_with("100");
        assert_eq!((batch.start, batch.is_ordered), (8, true));
        batch.begin_with("auto");
        assert_eq!((batch.start, batch.is_ordered), (9, false));
    }
}
