//! The words as the program that the door stands for reads them: options may be cut short, the last
//! of several holds, a value may be a negative number.
//!
//! In: the words. Out: the same with whole names, for the parser of weir's doors. Names of weir's own
//! are written out: what is short for one of the other program's stays so.

use super::flags::{FLAGS, REFERENCE};
use super::settings::SETTINGS;
use crate::flags::Flag;
use crate::refusal::Refusal;

/// Words with whole names.
///
/// # Errors
/// A name that is short for several.
pub(super) fn whole(words: &[String]) -> Result<Vec<String>, Refusal> {
    let mut out: Vec<String> = Vec::with_capacity(words.len());
    let mut awaits_value = false;
    for word in words {
        if awaits_value {
            awaits_value = false;
            match out.last_mut() {
                // A word of its own would be taken for an option.
                Some(option) if is_negative(word) => push!(option, "={word}"),
                _ => out.push(word.clone()),
            }
            continue;
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        let Some(short) = name.strip_prefix("--").filter(|name| !name.is_empty()) else {
            awaits_value = is_letter_with_value(word);
            out.push(word.clone());
            continue;
        };
        let name = whole_name(short)?;
        awaits_value = value.is_none() && find(name).is_some_and(|flag| flag.value.is_some());
        out.push(match value {
            Some(value) => format!("--{name}={value}"),
            None => format!("--{name}"),
        });
    }
    Ok(out)
}

fn is_negative(word: &str) -> bool {
    let digits = word.strip_prefix('-');
    digits.is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
}

/// A letter whose value is the next word.
fn is_letter_with_value(word: &str) -> bool {
    let mut letters = word.chars();
    let (Some('-'), Some(letter), None) = (letters.next(), letters.next(), letters.next()) else {
        return false;
    };
    let named = FLAGS.iter().find(|flag| flag.letter == Some(letter));
    named.is_some_and(|flag| flag.value.is_some())
}

fn find(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// The name that is meant; one that is none stays as it is.
fn whole_name(short: &str) -> Result<&str, Refusal> {
    if let Some(setting) = SETTINGS.iter().find(|setting| setting.short == short) {
        return Ok(setting.flag);
    }
    if find(short).is_some() || short == "help" {
        return Ok(short);
    }
    let names = FLAGS[..REFERENCE].iter().map(|flag| flag.name);
    let shorts = SETTINGS.iter().map(|setting| setting.short);
    let names = names.chain(shorts).chain(["help"]);
    let meant: Vec<&'static str> = names.filter(|name| name.starts_with(short)).collect();
    match meant.as_slice() {
        [] => Ok(short),
        [one] => Ok(*one),
        several => {
            let list: Vec<String> = several.iter().map(|name| format!("--{name}")).collect();
            Err(Refusal::usage(format!(
                "`--{short}` is short for several options: {}\n  help: write one of them out",
                list.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        whole(&words)
            .map(|words| words.join(" "))
            .map_err(|refusal| refusal.message)
    }

    #[test]
    fn names_may_be_cut_short_where_one_option_begins_so() {
        for (given, meant) in [
            ("--num 2", "--num-threads 2"),
            ("--read-m=50", "--read-mix-percent=50"),
            ("--bs 4096", "--block-size 4096"),
            ("--or=1", "--offset-random=1"),
            ("--he", "--help"),
            ("--engine uring", "--engine uring"),
            ("-t 4", "-t 4"),
            (
                "--burst-d 1 --burst-f 0",
                "--burst-delay 1 --burst-finish 0",
            ),
            ("--sw 3", "--sw 3"),
        ] {
            assert_eq!(read(given).as_deref(), Ok(meant), "{given}");
        }
    }

    #[test]
    fn what_several_options_begin_with_is_refused_with_all_of_them() {
        for (given, named) in [
            ("--offset 1", "--offset-low, "),
            ("--o 3", "--output-csv"),
            ("--burst 1", "--burst-delay"),
        ] {
            let message = read(given).unwrap_err();
            assert!(message.contains(named), "{message}");
        }
    }

    #[test]
    fn a_value_may_be_negative_or_look_like_an_option() {
        assert_eq!(
            read("--offset-stride -4096 --os -512").as_deref(),
            Ok("--offset-stride=-4096 --offset-stride=-512")
        );
        assert_eq!(read("--label --num").as_deref(), Ok("--label --num"));
        assert_eq!(read("-L x --num 3").as_deref(), Ok("-L x --num-threads 3"));
    }
}
