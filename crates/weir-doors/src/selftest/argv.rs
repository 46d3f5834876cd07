//! The words of the command line, by the rules of `getopt_long`: names of the older program may be cut
//! short where that is clear, letters stand together.
//!
//! In: words. Out: [`GivenFlags`], and what is left. Not here: what a value asks for.

use std::path::Path;

use super::flags::{FLAGS, REFERENCE};
use crate::flags::{Flag, Standing, find, nearest};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// What the words are.
#[derive(Debug)]
pub(super) struct Taken {
    /// The options.
    pub(super) given: GivenFlags,
    /// For standard error: words that do nothing.
    pub(super) notes: Vec<String>,
}

/// Takes the words apart.
///
/// # Errors
/// Unknown or unclear names, missing or superfluous values, values out of range.
pub(super) fn parse(words: &[String]) -> Result<Taken, Refusal> {
    let mut taken = Taken {
        given: GivenFlags::new(FLAGS),
        notes: Vec::new(),
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            if let Some(stray) = rest.next() {
                return Err(taken.stray(stray));
            }
        } else if let Some(long) = word.strip_prefix("--") {
            let (name, inline) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let flag = named(name)?;
            let value = match (flag.value, inline) {
                (None, Some(value)) => return Err(superfluous(flag, value)),
                (_, Some(value)) => value.to_owned(),
                (Some(what), None) if !flag.optional => next(&mut rest, flag, what)?,
                (_, None) => String::new(),
            };
            taken.take(flag, &value)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            taken.letters(letters, &mut rest)?;
        } else {
            return Err(taken.stray(word));
        }
    }
    Ok(taken)
}

/// What follows is the value, whatever it looks like.
fn next(
    rest: &mut std::slice::Iter<'_, String>,
    flag: &Flag,
    what: &str,
) -> Result<String, Refusal> {
    let missing = || refuse(flag, "", &format!("it needs {what} after it"));
    rest.next().cloned().ok_or_else(missing)
}

fn superfluous(flag: &Flag, value: &str) -> Refusal {
    let name = flag.spelling();
    Refusal::usage(format!("{name}={value}: {name} takes no value"))
}

/// An option whose value cannot be used, in one line.
pub(super) fn refuse(flag: &Flag, value: &str, why: &str) -> Refusal {
    refuse_named(flag.name, value, why)
}

/// The same by the option's name.
pub(super) fn refuse_named(name: &str, value: &str, why: &str) -> Refusal {
    // One line, whatever stands in the value.
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let value: String = value.chars().map(clean).take(120).collect();
    let why: String = why.chars().map(clean).collect();
    let gap = if value.is_empty() { "" } else { " " };
    Refusal::usage(format!("--{name}{gap}{value}: {why}"))
}

/// The option of a name, which may be cut short where it is one of the older program's.
fn named(name: &str) -> Result<&'static Flag, Refusal> {
    if let Some(flag) = find(FLAGS, name) {
        return Ok(flag);
    }
    // Older versions' own names are none that others could be short for.
    let is_reference =
        |flag: &&Flag| flag.category == REFERENCE && !["singleton", "nopmix"].contains(&flag.name);
    let whole = || FLAGS.iter().filter(is_reference);
    let meant: Vec<&Flag> = whole().filter(|flag| flag.name.starts_with(name)).collect();
    match meant.as_slice() {
        [one] if !name.is_empty() => Ok(*one),
        _ if name.is_empty() => Err(unknown("--", name)),
        [] | [_] => Err(unknown(&format!("--{name}"), name)),
        several => {
            let names: Vec<String> = several.iter().map(|flag| flag.spelling()).collect();
            Err(Refusal::usage(format!(
                "--{name}: it is short for several options: {}",
                names.join(", ")
            )))
        }
    }
}

fn unknown(word: &str, name: &str) -> Refusal {
    let known = FLAGS
        .iter()
        .filter(|flag| !matches!(flag.standing, Standing::Refused(_)));
    let hint = nearest(name, known.map(|flag| flag.name)).map_or_else(
        || "`weir selftest --help` lists the options".to_owned(),
        |near| format!("did you mean `--{near}`?"),
    );
    Refusal::usage(format!("no option `{word}`; {hint}"))
}

impl Taken {
    /// Letters after one dash; the value of one is the rest of the word, or the next one.
    fn letters(
        &mut self,
        letters: &str,
        rest: &mut std::slice::Iter<'_, String>,
    ) -> Result<(), Refusal> {
        for (at, letter) in letters.char_indices() {
            let flag = FLAGS.iter().find(|flag| flag.letter == Some(letter));
            let flag = flag.ok_or_else(|| unknown(&format!("-{letter}"), ""))?;
            let Some(what) = flag.value else {
                self.take(flag, "")?;
                continue;
            };
            let behind = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            if behind.is_empty() {
                let value = next(rest, flag, what)?;
                return self.take(flag, &value);
            }
            return self.take(flag, behind);
        }
        Ok(())
    }

    fn take(&mut self, flag: &'static Flag, value: &str) -> Result<(), Refusal> {
        match flag.standing {
            Standing::Refused(why) => return Err(refuse(flag, value, why)),
            Standing::WithoutEffect(why) if ["singleton", "nopmix"].contains(&flag.name) => {
                self.note(format!("--{}: {why}", flag.name));
            }
            Standing::WithoutEffect(_) | Standing::Works => {}
        }
        if !flag.choices.is_empty() && !flag.choices.contains(&value) {
            let near = nearest(value, flag.choices.iter().copied());
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let why = format!("it takes one of {}{near}", flag.choices.join(", "));
            return Err(refuse(flag, value, &why));
        }
        self.given.add(flag, value);
        Ok(())
    }

    /// A word that is no option, nor the value of one.
    fn stray(&self, word: &str) -> Refusal {
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        let word: String = word.chars().map(clean).take(120).collect();
        let is_size = word.starts_with(|c: char| c.is_ascii_digit() || "(eibEIB".contains(c))
            && word.contains(|c: char| c.is_ascii_digit() || c == '(');
        let is_plan = Path::new(&word)
            .extension()
            .is_some_and(|end| end == "json");
        let help = if is_plan {
            format!("`weir run {word}` runs a stored plan, `weir show {word}` prints a result")
        } else if is_size && self.given.has("message-sizes") {
            "message sizes are one word, in quotes: -s \"(0 0) (b1m 0)\"".to_owned()
        } else {
            "`weir selftest --help` lists the options".to_owned()
        };
        Refusal::usage(format!("`{word}` is no option; {help}"))
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    fn of(words: &[&str]) -> GivenFlags {
        parse(&list(words)).unwrap().given
    }

    #[test]
    fn names_may_be_cut_short_and_letters_stand_together() {
        for words in [
            &["--endpoint", "0:2", "-u", "--repetitions", "5"] as &[&str],
            &["-ue0:2", "--rep=5"],
            &["-ue", "0:2", "-r5", "--"],
            &["--end=0:2", "--use", "--repetitions-per-size=5"],
        ] {
            let given = of(words);
            assert_eq!(given.text("endpoint"), Some("0:2"), "{words:?}");
            assert_eq!(given.text("repetitions-per-size"), Some("5"), "{words:?}");
            assert!(given.has("use-daos-agent-env"), "{words:?}");
        }
        assert!(of(&["-un"]).has("no-sync"));
        assert_eq!(
            of(&["--message-size", "(0 0)"]).text("message-sizes"),
            Some("(0 0)")
        );
        assert_eq!(of(&["--p", "/d"]).text("path"), Some("/d"));
        assert_eq!(of(&["--a", "3"]).text("align"), Some("3"));
        assert_eq!(of(&["--loopback"]).text("loopback"), Some(""));
        // What follows a name is its value.
        assert_eq!(of(&["-g", "-u"]).text("group-name"), Some("-u"));
    }

    #[test]
    fn what_is_unclear_or_unknown_is_refused_in_one_line() {
        for (words, says) in [
            (
                &["--m", "1"] as &[&str],
                "--message-sizes, --master-endpoint, --max-inflight-rpcs",
            ),
            (&["--bogus"], "no option `--bogus`"),
            (&["--endpoints", "1"], "did you mean `--endpoint`?"),
            (&["--verif", "full"], "did you mean `--verify`?"),
            (&["-z"], "no option `-z`"),
            (&["-e"], "--endpoint: it needs RANKS:TAGS after it"),
            (&["--Mbits=3"], "takes no value"),
            (&["--spread", "lest"], "did you mean `least`?"),
            (
                &["--net-test"],
                "--net-test: this build does not have that form",
            ),
            (&["--=3"], "no option `--`"),
            (
                &["-s", "0", "0", "b1m", "0"],
                "`0` is no option; message sizes are one word, in quotes: -s \"(0 0) (b1m 0)\"",
            ),
            (
                &["-s", "0", "--", "(b1m"],
                "`(b1m` is no option; message sizes are one word",
            ),
            (
                &["p.json"],
                "`p.json` is no option; `weir run p.json` runs a stored plan",
            ),
            (
                &["x", "-u"],
                "`x` is no option; `weir selftest --help` lists",
            ),
            (&["-"], "`-` is no option"),
        ] {
            let refusal = parse(&list(words)).unwrap_err();
            assert_eq!(refusal.code, 2);
            assert!(refusal.message.contains(says), "{refusal}");
            assert_eq!(refusal.message.matches('\n').count(), 1, "{refusal}");
        }
    }

    #[test]
    fn options_of_older_versions_are_noted_and_do_nothing() {
        let taken = parse(&list(&["-t", "-n", "--nopmix", "--singleton"])).unwrap();
        assert_eq!(
            taken.notes,
            [
                "--singleton: ignored, has no meaning",
                "--nopmix: ignored, has no meaning"
            ]
        );
    }
}
