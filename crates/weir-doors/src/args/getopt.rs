//! Arguments in the manner of peers: `-x V`, `-xV`, `--long V`, `--long=V`, names cut short.
//!
//! In: arguments, the flags of a door and of the house, the settings of a manner. Out: [`Given`], in
//! which every value is inside the range and among the choices of its flag. Not here: what a value asks
//! for.

use std::slice::Iter;

use super::{DoorCall, house_flags, house_spelling};
use crate::door::{Getopt, Measures};
use crate::flags::{Flag, Standing, nearest};
use crate::given::{Given, GivenFlags};
use crate::house::{HOUSE_FLAGS, joined};
use crate::refusal::Refusal;

/// A flag that was named, and whether it is one of the house.
type Named = (&'static Flag, bool);

/// Reader of one call's arguments.
struct Reader<'a> {
    call: &'a DoorCall,
    manner: &'a Getopt,
    /// Refusals are of the peer's form.
    is_peer: bool,
    /// Values are those that the peer takes.
    takes_peers: bool,
    house: Vec<(&'static Flag, String)>,
    given: Given,
}

/// Reads the arguments of a call.
///
/// # Errors
/// Unknown or unclear names, missing or superfluous values, values out of range, stray arguments.
pub(super) fn read(
    call: &DoorCall,
    measures: &Measures,
    manner: &Getopt,
    is_again: bool,
) -> Result<Given, Refusal> {
    let mut reader = Reader {
        call,
        manner,
        is_peer: call.calls_peer(),
        takes_peers: call.calls_peer() || is_again,
        house: house_flags(call.door, measures).collect(),
        given: Given {
            door: call.door,
            link: call.link.map(|link| link.name),
            is_again: false,
            args: call.args.clone(),
            own: GivenFlags::new(call.door.flags),
            house: GivenFlags::new(HOUSE_FLAGS),
            options: Vec::new(),
            operands: Vec::new(),
        },
    };
    let args = joined(&call.args);
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            rest.by_ref().try_for_each(|word| reader.operand(word))?;
        } else if let Some(long) = word.strip_prefix("--") {
            reader.long(word, long, &mut rest)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            reader.letters(word, letters, &mut rest)?;
        } else {
            reader.operand(word)?;
        }
    }
    Ok(reader.given)
}

impl Reader<'_> {
    /// `--name`, `--name=value`.
    fn long(&mut self, word: &str, long: &str, rest: &mut Iter<'_, String>) -> Result<(), Refusal> {
        let (name, inline) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let named = self.named(word, name)?;
        let flag = named.0;
        let value = match (flag.value, inline) {
            (None, Some(value)) => {
                return Err(self.refuse(&self.superfluous(flag, value), None));
            }
            (_, Some("")) if flag.optional && !self.takes_peers => {
                return Err(self.refuse(&self.missing(flag), None));
            }
            (_, Some(value)) => value.to_owned(),
            (Some(_), None) if !flag.optional => self.next(flag, rest)?,
            (_, None) => String::new(),
        };
        self.take(named, &value)
    }

    /// Letters after one dash; the value of one is the rest of the argument, or the next one.
    fn letters(
        &mut self,
        word: &str,
        letters: &str,
        rest: &mut Iter<'_, String>,
    ) -> Result<(), Refusal> {
        for (at, letter) in letters.char_indices() {
            let is_it = |f: &&Flag| f.letter == Some(letter) || f.name == letter.to_string();
            let flag = self.call.door.flags.iter().find(is_it);
            let unknown = || {
                let shown = if self.manner.letters_stand_together {
                    format!("-{letter}")
                } else {
                    word.to_owned()
                };
                self.unknown(&shown, word.trim_start_matches('-'))
            };
            let flag = flag.ok_or_else(unknown)?;
            let behind = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            let value = match (flag.value, behind) {
                (None, "") => return self.take((flag, false), ""),
                (None, _) if self.manner.letters_stand_together => {
                    self.take((flag, false), "")?;
                    continue;
                }
                (None, behind) => {
                    return Err(self.refuse(&self.superfluous(flag, behind), None));
                }
                // Nothing but what is joined to the letter is its value.
                (Some(_), "") if flag.optional => String::new(),
                (Some(_), "") => self.next(flag, rest)?,
                (Some(_), behind) => behind.to_owned(),
            };
            return self.take((flag, false), &value);
        }
        Ok(())
    }

    /// The value that follows a flag.
    fn next(&self, flag: &Flag, rest: &mut Iter<'_, String>) -> Result<String, Refusal> {
        let is_value = |word: &&String| self.manner.takes_any_value || !looks_like_a_flag(word);
        let next = rest.as_slice().first().filter(is_value);
        rest.next();
        let missing = || self.refuse(&self.missing(flag), None);
        next.cloned().ok_or_else(missing)
    }

    /// The flag of a name, which may be abbreviated where the table allows it.
    fn named(&self, word: &str, name: &str) -> Result<Named, Refusal> {
        let flags = self.call.door.flags;
        let name = (self.manner.alias)(name).unwrap_or(name);
        let own = flags.iter().find(|f| f.name == name && name.len() > 1);
        let house = || self.house.iter().find(|(_, known)| known == name);
        let exact = own.map(|flag| (flag, false));
        if let Some(exact) = exact.or_else(|| house().map(|(flag, _)| (*flag, true))) {
            return Ok(exact);
        }
        let shown = word.split_once('=').map_or(word, |(name, _)| name);
        if name.is_empty() {
            return Err(self.unknown("--", name));
        }
        let meant = |flag: &&Flag| (self.manner.abbreviates)(flag) && flag.name.starts_with(name);
        let meant: Vec<&'static Flag> = flags.iter().filter(meant).collect();
        match meant.as_slice() {
            [] => Err(self.unknown(shown, name)),
            [one] => Ok((one, false)),
            several => {
                let names: Vec<String> = several.iter().map(|flag| flag.spelling()).collect();
                let list = names.join(", ");
                Err(self.refuse(&self.unclear(name, &list), None))
            }
        }
    }

    fn take(&mut self, (flag, is_of_house): Named, value: &str) -> Result<(), Refusal> {
        if let Standing::Refused(why) = flag.standing {
            return Err(self.refuse(&self.not_here(flag, value, why), None));
        }
        let name = if is_of_house {
            house_spelling(self.call.door, flag)
        } else {
            flag.spelling()
        };
        let wrong = if self.takes_peers {
            self.wrong_value(flag, &name, value)
        } else {
            flag.wrong_value(&name, value)
        };
        if let Some(why) = wrong {
            return Err((self.manner.refuse)(&why));
        }
        let values = if is_of_house {
            &mut self.given.house
        } else {
            &mut self.given.own
        };
        values.add(flag, value);
        Ok(())
    }

    fn operand(&mut self, word: &str) -> Result<(), Refusal> {
        match (self.manner.operand)(word, &self.given) {
            Ok(()) => {
                self.given.operands.push(word.to_owned());
                Ok(())
            }
            Err(why) => Err((self.manner.refuse)(&why)),
        }
    }

    fn unknown(&self, word: &str, name: &str) -> Refusal {
        let works = |flag: &&Flag| matches!(flag.standing, Standing::Works);
        let own = self.call.door.flags.iter().filter(works);
        let names = own.map(|flag| flag.name);
        let near = nearest(
            name,
            names.chain(self.house.iter().map(|(_, name)| name.as_str())),
        );
        let verb = self.call.door.verb;
        let list = || format!("`weir {verb} --help` lists the options");
        let near = near.map(|near| format!("did you mean `{}`?", Flag::spelling_of(near)));
        let help = near.or_else(|| self.is_peer.then(list));
        self.refuse(&format!("no option `{word}`"), help)
    }

    fn refuse(&self, why: &str, help: Option<String>) -> Refusal {
        (self.manner.refuse)(&self.with_help(why, help))
    }

    fn with_help(&self, why: &str, help: Option<String>) -> String {
        let between = if self.is_one_line() {
            "; "
        } else {
            "\n  help: "
        };
        let help = help.map_or_else(String::new, |help| format!("{between}{help}"));
        format!("{why}{help}")
    }

    fn is_one_line(&self) -> bool {
        self.is_peer && self.manner.is_one_line
    }
}

/// A dash that begins no number.
fn looks_like_a_flag(word: &str) -> bool {
    let behind = word.strip_prefix('-').and_then(|rest| rest.chars().next());
    behind.is_some_and(|c| !c.is_ascii_digit())
}

/// Sentences of refusals.
impl Reader<'_> {
    fn superfluous(&self, flag: &Flag, value: &str) -> String {
        let name = flag.spelling();
        if self.is_one_line() {
            format!("{name}={value}: {name} takes no value")
        } else {
            format!("{name} takes no value, `{value}` was given")
        }
    }

    fn missing(&self, flag: &Flag) -> String {
        let (name, what) = (flag.spelling(), flag.value.unwrap_or_default());
        if self.is_one_line() {
            format!("--{}: it needs {what} after it", flag.name)
        } else {
            format!("{name} needs {what} after it")
        }
    }

    fn unclear(&self, name: &str, list: &str) -> String {
        if self.is_one_line() {
            format!("--{name}: it is short for several options: {list}")
        } else {
            format!(
                "`--{name}` is short for several options: {list}\n  help: write one of them out"
            )
        }
    }

    fn not_here(&self, flag: &Flag, value: &str, why: &str) -> String {
        let gap = if value.is_empty() { "" } else { " " };
        if self.is_one_line() {
            format!("--{}{gap}{value}: {why}", flag.name)
        } else {
            format!("{} is not available: {why}", flag.spelling())
        }
    }

    /// Message about a value that the peer does not take.
    fn wrong_value(&self, flag: &Flag, name: &str, value: &str) -> Option<String> {
        let is_one_line = self.manner.is_one_line;
        if value.is_empty() && !flag.optional && !is_one_line && !flag.takes_empty {
            return flag.wrong_value(name, value);
        }
        let (why, near) = flag.check(value).err()?;
        let why = (self.manner.wrong_value)(flag, value, why)?;
        let gap = if value.is_empty() { "" } else { " " };
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        Some(self.with_help(&format!("{name}{gap}{value}: {why}"), hint))
    }
}
