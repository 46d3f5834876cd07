//! The command string of `-R`: words of a letter for a test and of parameters behind semicolons.
//!
//! In: the text, keys and values of the run. Out: tests in their order, with what is skipped between them.
//! Spec: object store performance, 2.4. Not here: what is printed about a test (`output`).

use weir_schema::{ObjectAction, ObjectLayout, ObjectTest, ObjectValue};
use weir_units::Bytes;

use super::flags::number;

/// Part of a command string.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A test that runs.
    Test(ObjectTest),
    /// A letter that no test has; its word is skipped.
    Unknown(char),
    /// A test that does nothing and succeeds.
    Idle(ObjectTest),
    /// A test that fails, since keys and values lack this.
    Lacking(ObjectTest, &'static str),
}

/// Tests that a program has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tests {
    /// Their letters.
    pub(super) letters: &'static str,
    /// Whatever is written is kept, so that it can be compared and listed.
    pub(super) are_kept: bool,
}

impl Tests {
    /// Those of a store in this process.
    pub(super) const EMBEDDED: Self = Self {
        letters: "UFVPIQADG",
        are_kept: true,
    };
    /// Those of one over a network.
    pub(super) const REACHED: Self = Self {
        letters: "UFVO",
        are_kept: true,
    };

    /// The reason for which a test has nothing to do; none where it has.
    pub(super) fn idle(self, action: ObjectAction, layout: &ObjectLayout) -> Option<&'static str> {
        let is_overwritten = layout.value == ObjectValue::Single && layout.strides > 1;
        match action {
            ObjectAction::Verify if !self.are_kept => {
                Some("V is skipped: with -T echo nothing is stored that could be compared")
            }
            ObjectAction::Verify if is_overwritten => Some(
                "V is skipped: single values that are written more than once (-n) cannot be verified",
            ),
            ObjectAction::ListObjects if !self.are_kept => {
                Some("O is skipped: with -T echo there are no objects")
            }
            _ => None,
        }
    }
}

/// A command string that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandError {
    /// All of the string after the letter of the wrong test.
    pub(super) after: String,
    /// The reason.
    pub(super) why: String,
}

/// Name of a test in the peer's text.
pub(super) fn name(action: ObjectAction) -> &'static str {
    match action {
        ObjectAction::Update => "UPDATE",
        ObjectAction::Fetch => "FETCH",
        ObjectAction::Verify => "VERIFY",
        ObjectAction::Punch { .. } => "PUNCH",
        ObjectAction::Iterate { .. } => "ITERATE",
        ObjectAction::Query => "QUERY",
        ObjectAction::Aggregate { .. } => "AGGREGATE",
        ObjectAction::Discard { .. } => "DISCARD",
        ObjectAction::Collect { .. } => "GARBAGE COLLECTION",
        ObjectAction::ListObjects => "OIT",
        // No letter asks for one.
        ObjectAction::Mix(_) => "MIX",
    }
}

/// The steps of a command string, of whose tests there are these.
///
/// # Errors
/// A parameter that lacks its number, has none, or asks for more than there is.
pub(super) fn parse(
    text: &str,
    tests: Tests,
    layout: &ObjectLayout,
) -> Result<Vec<Step>, CommandError> {
    let mut steps = Vec::new();
    let mut rest = text.trim_start().chars();
    while let Some(code) = rest.next() {
        let after = rest.as_str();
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        let (word, more) = after.split_at(end);
        rest = more.trim_start().chars();
        let Some(action) = action(code).filter(|_| tests.letters.contains(code)) else {
            steps.push(Step::Unknown(code));
            continue;
        };
        let test = parameters(word, action, layout).map_err(|why| CommandError {
            after: after.to_owned(),
            why,
        })?;
        steps.push(match (tests.idle(action, layout), action.lacks(layout)) {
            (Some(_), _) => Step::Idle(test),
            (None, Some(why)) => Step::Lacking(test, why),
            (None, None) => Step::Test(test),
        });
    }
    Ok(steps)
}

/// The test of a letter.
fn action(code: char) -> Option<ObjectAction> {
    let (full_scan, merge) = (false, false);
    Some(match code {
        'U' => ObjectAction::Update,
        'F' => ObjectAction::Fetch,
        'V' => ObjectAction::Verify,
        'P' => ObjectAction::Punch { dkeys: false },
        'I' => ObjectAction::Iterate {
            visible: false,
            shallow: false,
            first: false,
        },
        'Q' => ObjectAction::Query,
        'A' => ObjectAction::Aggregate { full_scan, merge },
        'D' => ObjectAction::Discard { full_scan, merge },
        'G' => ObjectAction::Collect { full_scan, merge },
        'O' => ObjectAction::ListObjects,
        _ => return None,
    })
}

/// The test of a word. Behind a parameter everything up to the next semicolon is no part of it.
fn parameters(
    word: &str,
    action: ObjectAction,
    layout: &ObjectLayout,
) -> Result<ObjectTest, String> {
    let mut test = ObjectTest::new(action, layout);
    test.size = Bytes(0);
    for parameter in word.split(';') {
        let mut rest = parameter.chars();
        if let Some(letter) = rest.next() {
            set(&mut test, letter, rest.as_str(), layout)?;
        }
    }
    if let ObjectAction::Punch { dkeys } = test.action {
        let chosen = [
            ("o", test.offset.0 > 0),
            ("s", test.size.0 > 0),
            ("a", test.akeys.is_some()),
            ("n", test.strides.is_some()),
            ("D", test.dkeys.is_some() && !dkeys),
        ];
        if let Some((letter, _)) = chosen.into_iter().find(|(_, is)| *is) {
            return Err(format!(
                "P has no {letter}: it punches objects, of which O=N is a part, or with d dkeys (D=N)"
            ));
        }
    }
    let stride = layout.stride_bytes;
    if layout.value == ObjectValue::Single {
        test.offset = Bytes(0);
    }
    if test.size.0 == 0 {
        test.size = stride;
    }
    let end = test.offset.0.checked_add(test.size.0);
    if end.is_none_or(|end| end > stride.0) {
        return Err(format!(
            "offset + size crossed the stride boundary: {}/{}/{}",
            test.offset.0, test.size.0, stride.0
        ));
    }
    Ok(test)
}

/// Sets a parameter. A letter that the test does not have is ignored.
fn set(
    test: &mut ObjectTest,
    letter: char,
    rest: &str,
    layout: &ObjectLayout,
) -> Result<(), String> {
    let value = || {
        let number_of = |text| number(text).map_err(|why| format!("{letter}={text}: {why}"));
        let text = rest.strip_prefix('=');
        text.map_or_else(
            || Err(format!("`{letter}` needs = and a number")),
            number_of,
        )
    };
    let part = |all: u64, option: char| {
        let chosen = value()?;
        let is_plain = rest.ends_with(|c: char| c.is_ascii_digit());
        if !is_plain || chosen == 0 || chosen > all {
            return Err(format!(
                "{letter}{rest}: it takes a plain number from 1 to {all}, the number of -{option}"
            ));
        }
        Ok(Some(chosen))
    };
    match letter {
        'p' => test.print = true,
        'k' => test.keep_counter = true,
        'v' => test.verbose = true,
        'i' => test.iterations = value()?.max(1),
        _ => match &mut test.action {
            ObjectAction::Iterate {
                visible,
                shallow,
                first,
            } => match letter {
                'V' => *visible = true,
                's' => *shallow = true,
                'f' => *first = true,
                _ => {}
            },
            ObjectAction::Aggregate { full_scan, merge }
            | ObjectAction::Discard { full_scan, merge }
            | ObjectAction::Collect { full_scan, merge } => match letter {
                'f' => *full_scan = true,
                'm' => *merge = true,
                _ => {}
            },
            ObjectAction::Punch { dkeys } if letter == 'd' => *dkeys = true,
            ObjectAction::Query | ObjectAction::ListObjects | ObjectAction::Mix(_) => {}
            ObjectAction::Update
            | ObjectAction::Fetch
            | ObjectAction::Verify
            | ObjectAction::Punch { .. } => match letter {
                'o' => test.offset = Bytes(value()?),
                's' => test.size = Bytes(value()?),
                'O' => test.objects = part(layout.objects, 'o')?,
                'D' => test.dkeys = part(layout.dkeys, 'd')?,
                'a' => test.akeys = part(layout.akeys, 'a')?,
                'n' => test.strides = part(layout.strides, 'n')?,
                _ => {}
            },
        },
    }
    Ok(())
}
