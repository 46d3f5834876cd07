//! The words of the command line, before they mean anything: `-x V`, `-xV`, `--long V`,
//! `--long=V`.
//!
//! In: words, the table of flags. Out: [`GivenFlags`], where every value is inside the range and among
//! the choices that its flag states. Not here: what a value asks for.

use super::flags::FLAGS;
use crate::flags::{Flag, Standing, find, nearest};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// A refusal in the peer's words for parameters that cannot be read.
pub(super) fn refuse(what: &str) -> Refusal {
    Refusal::usage(format!("Input parameters could not be parsed! {what}"))
}

/// Takes the words apart.
///
/// # Errors
/// Unknown flags, missing or superfluous values, values out of range, stray words.
pub(super) fn parse(words: &[String]) -> Result<GivenFlags, Refusal> {
    let mut given = GivenFlags::new(FLAGS);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let (flag, inline) = flag_of(word)?;
        let value = match (flag.value, inline) {
            (None, None) => String::new(),
            (None, Some(value)) => {
                let name = flag.spelling();
                return Err(refuse(&format!(
                    "{name} takes no value, `{value}` was given"
                )));
            }
            (Some(_), Some(value)) => value.to_owned(),
            (Some(name), None) => {
                let next = rest.as_slice().first().filter(|w| is_value(w));
                rest.next();
                next.cloned()
                    .ok_or_else(|| refuse(&format!("{} needs {name} after it", flag.spelling())))?
            }
        };
        check(flag, &value)?;
        given.add(flag, &value);
    }
    Ok(given)
}

/// What follows a flag is its value unless it looks like another flag.
fn is_value(word: &str) -> bool {
    let number = word.strip_prefix('-').map(|w| w.chars().next());
    match number {
        None | Some(None) => true,
        Some(Some(c)) => c.is_ascii_digit(),
    }
}

/// The flag of a word, and the value that stands in it.
fn flag_of(word: &str) -> Result<(&'static Flag, Option<&str>), Refusal> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long
            .split_once('=')
            .map_or((long, None), |(name, value)| (name, Some(value)));
        if name.starts_with("accl-") {
            return Err(Refusal::usage(format!(
                "--{name}: comm-type ACCL is not available in this build"
            )));
        }
        let flag = find(FLAGS, name).filter(|f| f.name.len() > 1);
        return flag.map(|f| (f, value)).ok_or_else(|| unknown(word, name));
    }
    let mut letters = word.chars();
    let (dash, letter) = (letters.next(), letters.next());
    let (Some('-'), Some(letter)) = (dash, letter) else {
        let message = format!("stray word `{word}`: every option begins with a dash");
        return Err(refuse(&message));
    };
    let is_it = |f: &&Flag| f.letter == Some(letter) || f.name == letter.to_string();
    let flag = FLAGS
        .iter()
        .find(is_it)
        .ok_or_else(|| unknown(word, word))?;
    let value = letters.as_str();
    Ok((flag, (!value.is_empty()).then_some(value)))
}

fn unknown(word: &str, name: &str) -> Refusal {
    let known = FLAGS.iter().filter(|f| f.standing == Standing::Works);
    let hint = nearest(name.trim_start_matches('-'), known.map(|f| f.name))
        .and_then(|near| find(FLAGS, near))
        .map_or_else(
            || "`weir beff --help` lists the options".to_owned(),
            |near| format!("did you mean `{}`?", near.spelling()),
        );
    refuse(&format!("no option `{word}`\n  help: {hint}"))
}

fn check(flag: &Flag, value: &str) -> Result<(), Refusal> {
    let name = flag.spelling();
    if let Standing::Refused(why) = flag.standing {
        return Err(Refusal::usage(format!("{name} is not available: {why}")));
    }
    // The peer's own default of the name of a platform is the empty one.
    if let Some(what) = flag.value.filter(|_| value.is_empty())
        && flag.name != "platform_str"
    {
        return Err(refuse(&format!("{name} needs {what}, which is empty")));
    }
    if !flag.choices.is_empty() && !flag.choices.contains(&value) {
        let near = nearest(value, flag.choices.iter().copied());
        let hint = near.map_or_else(String::new, |n| format!("\n  help: did you mean `{n}`?"));
        let list = flag.choices.join(", ");
        return Err(refuse(&format!(
            "{name} {value}: it takes one of {list}{hint}"
        )));
    }
    if let Some((min, max)) = flag.range {
        let number = value.parse::<i64>().ok();
        if !number.is_some_and(|n| (min..=max).contains(&n)) {
            let what = if number.is_some_and(|n| n < min) {
                format!("{name} must be >= {min} (a whole number from {min} to {max})")
            } else {
                format!("it takes a whole number from {min} to {max}")
            };
            return Err(refuse(&format!("{name} {value}: {what}")));
        }
    }
    Ok(())
}
