//! fio's command line: flags of the door, options of jobs and files, in any order.
//!
//! In: the arguments after the program's name. Out: [`Given`], in which every value can be used, up to
//! the first flag that is answered instead of a run; the page of `--help`. As with `getopt_long_only`, one dash does for two,
//! `--option value` does for `--option=value` where a value is required, and all options count as
//! standing before the files. Not here: what job options mean (`weir-jobfile`).

use weir_jobfile::{CommandWord, ValueKind, find_option, option_records};

use super::flags::{FLAGS, OWN};
use super::options::peers_words;
use super::{DOOR, MEASURES, help, refuse, request};
use crate::args::{Arguments, DoorCall, house_flags, house_spelling};
use crate::flags::{Flag, Standing, find, nearest};
use crate::given::{Given, GivenFlags};
use crate::house::{HOUSE_FLAGS, joined};
use crate::refusal::Refusal;

/// Reads the arguments of a call.
///
/// # Errors
/// Arguments that are not understood, or ask for what is not there.
pub(super) fn read(call: &DoorCall) -> Result<Arguments, Refusal> {
    let args = joined(&call.args);
    let mut reader = Reader {
        args: &args,
        // The program's name, and the verb.
        before: if call.link.is_some() { 1 } else { 2 },
        only_files: false,
        given: Given {
            door: call.door,
            link: call.link.map(|link| link.name),
            args: call.args.clone(),
            own: GivenFlags::new(FLAGS),
            house: GivenFlags::new(HOUSE_FLAGS),
            operands: Vec::new(),
            options: Vec::new(),
            is_again: false,
        },
    };
    let mut index = 0;
    while let Some(text) = args.get(index) {
        index += match option_of(text) {
            _ if reader.only_files => reader.file(text),
            None if text == "--" => reader.end_of_options(),
            None => reader.file(text),
            Some((name, value)) => reader.option(index, name, value)?,
        };
        match reader.given.own.iter().last() {
            Some((flag, _)) if flag.name == "help" => return Ok(Arguments::Print(help::page())),
            Some(last) if request::is_answered(last) => break,
            _ => {}
        }
    }
    let house = &reader.given.house;
    house.check(|flag| house_spelling(&DOOR, flag))?;
    Ok(Arguments::Given(Box::new(reader.given)))
}

/// Name and value of an option; `-` alone is the file standard input.
fn option_of(text: &str) -> Option<(&str, Option<&str>)> {
    let body = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    if body.is_empty() {
        return None;
    }
    Some(
        body.split_once('=')
            .map_or((body, None), |(name, value)| (name, Some(value))),
    )
}

/// The name that is meant, which need not be written to its end where no other begins alike.
/// Names of weir's own are written out: what is short for one of fio's stays so.
///
/// # Errors
/// Several names begin so: all of them.
fn whole_name(name: &str) -> Result<&str, Vec<&'static str>> {
    if find(FLAGS, name).is_some() || find_option(name).is_some() {
        return Ok(name);
    }
    let of_letter = |flag: &&Flag| flag.letter.is_some_and(|letter| name == letter.to_string());
    if let Some(flag) = FLAGS.iter().find(of_letter) {
        return Ok(flag.name);
    }
    let flags = FLAGS.iter().filter(|flag| flag.category != OWN);
    let flags = flags.map(|flag| (flag.name, flag.name));
    let options = option_records().flat_map(|record| {
        let names = std::iter::once(record.name).chain(record.aliases.iter().copied());
        names.map(|known| (record.name, known))
    });
    let known = flags.chain(options);
    let meant: Vec<_> = known.filter(|(_, k)| k.starts_with(name)).collect();
    match meant.first() {
        None => Ok(name),
        Some((first, known)) if meant.iter().all(|(one, _)| one == first) => Ok(known),
        Some(_) => Err(meant.into_iter().map(|(_, known)| known).collect()),
    }
}

struct Reader<'a> {
    args: &'a [String],
    /// Arguments of the command line before these.
    before: usize,
    only_files: bool,
    given: Given,
}

impl Reader<'_> {
    fn file(&mut self, text: &str) -> usize {
        self.given.operands.push(text.to_owned());
        1
    }

    fn end_of_options(&mut self) -> usize {
        self.only_files = true;
        1
    }

    /// Takes an option and returns how many arguments it used.
    fn option(&mut self, index: usize, name: &str, value: Option<&str>) -> Result<usize, Refusal> {
        let mut house = house_flags(&DOOR, &MEASURES);
        if let Some((flag, known)) = house.find(|(_, known)| known == name) {
            let (value, used) = self.flag_value(flag, index, &known, value)?;
            self.given.house.add(flag, &value);
            return Ok(used);
        }
        let name = whole_name(name).map_err(|meant| unknown(name, &meant, self.args, index))?;
        if let Some(flag) = find(FLAGS, name) {
            let (value, used) = self.flag_value(flag, index, name, value)?;
            if flag.name == "section" && value == "global" {
                return Err(refuse("can't use global as only section"));
            }
            self.given.own.add(flag, &value);
            return Ok(used);
        }
        let Some(record) = find_option(name) else {
            return Err(unknown(name, &[], self.args, index));
        };
        let needs = record.value != ValueKind::Flag;
        let (value, used) = self.value(index, name, value, needs)?;
        self.given.options.push(CommandWord {
            key: name.to_owned(),
            value,
            argument: index + self.before,
            text: self.args[index..index + used].join(" "),
        });
        Ok(used)
    }

    /// The value of a flag, and the arguments that both are.
    fn flag_value(
        &self,
        flag: &Flag,
        index: usize,
        name: &str,
        inline: Option<&str>,
    ) -> Result<(String, usize), Refusal> {
        if let (None, Some(value)) = (flag.value, inline) {
            let why = format!("--{name} takes no value, `{value}` was given");
            let peer = format!("fio: option '--{name}' doesn't allow an argument");
            return Err(Refusal::usage(why).by_peer(peer));
        }
        let needs = flag.value.is_some() && !flag.optional;
        let (value, used) = self.value(index, name, inline, needs)?;
        let value = value.unwrap_or_default();
        if let Standing::Refused(why) = flag.standing {
            let peer = format!("fio: option '--{name}' is not supported\n{why}");
            let why = format!("--{name} is not available: {why}");
            return Err(Refusal::usage(why).by_peer(peer));
        }
        if flag.standing == Standing::Works
            && flag.check(&value).is_err()
            && let Some(why) = flag.wrong_value(&format!("--{name}"), &value)
        {
            let refusal = Refusal::usage(why);
            return Err(match peers_words(flag, &value) {
                Some(peer) => refusal.by_peer(peer),
                None => refusal,
            });
        }
        Ok((value, used))
    }

    /// The value in the argument itself or, where one is required, in the next one.
    fn value(
        &self,
        index: usize,
        name: &str,
        inline: Option<&str>,
        needed: bool,
    ) -> Result<(Option<String>, usize), Refusal> {
        if inline.is_some() || !needed {
            return Ok((inline.map(str::to_owned), 1));
        }
        let next = self.args.get(index + 1).map(|next| (Some(next.clone()), 2));
        next.ok_or_else(|| {
            let peer = format!("fio: option '--{name}' requires an argument");
            Refusal::usage(format!("--{name} needs a value after it")).by_peer(peer)
        })
    }
}

/// A name that is none, or short for several: fio and the getopt in it say so twice, with the whole word.
fn unknown(name: &str, meant: &[&str], words: &[String], index: usize) -> Refusal {
    let said = words.get(index).map_or(name, |w| w.trim_start_matches('-'));
    let known = FLAGS.iter().map(|f| f.name);
    let options =
        option_records().flat_map(|r| std::iter::once(r.name).chain(r.aliases.iter().copied()));
    let near = nearest(name, known.chain(options));
    let hint = near.map_or(String::new(), |near| format!("\nDid you mean {near}?"));
    let sentence = format!("fio: unrecognized option '--{said}'");
    if meant.is_empty() {
        let help = near.map_or(String::new(), |near| {
            format!("\n  help: did you mean `--{near}`?")
        });
        return Refusal::usage(format!("no option `--{name}`{help}"))
            .by_peer(format!("{sentence}\n{sentence}{hint}"));
    }
    let list = |quote: &str, between: &str| {
        let all: Vec<String> = meant
            .iter()
            .map(|m| format!("{quote}--{m}{quote}"))
            .collect();
        all.join(between)
    };
    Refusal::usage(format!(
        "`--{name}` is short for several options: {}",
        list("", ", ")
    ))
    .by_peer(format!(
        "fio: option '--{said}' is ambiguous; possibilities: {}\n{sentence}{hint}",
        list("'", " ")
    ))
}
