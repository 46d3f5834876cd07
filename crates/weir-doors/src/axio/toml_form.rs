//! Configurations as TOML: the same keys, and a table `[[workload]]` for each workload.
//!
//! In: the text of a file, or a configuration. Out: a configuration with the line and column of each value, or
//! everything that is wrong; a text in either form. Comments do not go from one form into the other. Not
//! here: what keys mean.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};
use weir_schema::{MOST_PATH_THREADS, PathStage};

use super::config::{AxioConfig, ConfigPlace, PHASES, Unknown, WorkloadLine, repeated_id};
use super::keys::{KEYS, Key};

/// A form of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigForm {
    /// `key : value` lines.
    Axio,
    /// TOML.
    Toml,
}

/// Keys of a workload, all of which it has.
const FIELDS: [&str; 5] = ["id", "phases", "remote", "apps", "dispatchers"];

/// Whether a file is TOML: by its name, or by its first line that says something.
pub(super) fn is_toml(file: &str, text: &str) -> bool {
    let ends = |end: &str| file.to_ascii_lowercase().ends_with(end);
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    let is_assigned = |line: &str| {
        let key = line.split(['=', ':']).next().unwrap_or_default();
        line.starts_with("[[") || line[key.len()..].starts_with('=')
    };
    ends(".toml") || first.is_some_and(is_assigned)
}

/// Reads TOML: what could be read, and everything that is wrong.
pub(super) fn read(file: &str, text: &str, unknown: Unknown) -> (AxioConfig, Vec<String>) {
    let mut reader = TomlReader {
        file,
        text,
        unknown,
        config: AxioConfig::default(),
        wrong: Vec::new(),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let place = reader.place(error.span().map_or(0, |span| span.start));
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        reader.wrong.push((place, message));
    }
    reader.table(table.get_ref());
    let mut wrong = reader.wrong;
    wrong.sort_by_key(|(place, _)| (place.line, place.column));
    let wrong = wrong.iter().map(|(place, why)| format!("{place}: {why}"));
    (reader.config, wrong.collect())
}

struct TomlReader<'a> {
    file: &'a str,
    text: &'a str,
    unknown: Unknown,
    config: AxioConfig,
    wrong: Vec<(ConfigPlace, String)>,
}

impl TomlReader<'_> {
    /// Where a byte of the text is.
    fn place(&self, at: usize) -> ConfigPlace {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        ConfigPlace {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }

    fn wrong(&mut self, at: usize, why: impl Into<String>) {
        let place = self.place(at);
        self.wrong.push((place, why.into()));
    }

    /// Keys in the order of the text, so that of two the second is wrong.
    fn table(&mut self, table: &DeTable<'_>) {
        let mut all: Vec<_> = table.iter().collect();
        all.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in all {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            if name == "workload" {
                self.workloads(at, value);
                continue;
            }
            match scalar(value.get_ref()) {
                Ok(_) if is_odd_truth(name, value.get_ref()) => {
                    let why = format!("{name}: expected a number or a text, not true or false");
                    self.wrong(value.span().start, why);
                }
                Ok(text) => {
                    let place = self.place(at);
                    let added = self
                        .config
                        .add_value(name, text.trim(), &place, self.unknown);
                    if let Err(why) = added {
                        self.wrong.push((place, why));
                    }
                }
                Err(why) => self.wrong(value.span().start, format!("{name}: {why}")),
            }
        }
    }

    fn workloads(&mut self, at: usize, value: &Spanned<DeValue<'_>>) {
        let Some(all) = value.get_ref().as_array() else {
            return self.wrong(at, "workload: expected tables (valid: [[workload]])");
        };
        for one in all {
            let Some(table) = one.get_ref().as_table() else {
                self.wrong(
                    one.span().start,
                    "workload: expected a table with id, phases",
                );
                continue;
            };
            self.workload(one.span().start, table);
        }
    }

    fn workload(&mut self, at: usize, table: &DeTable<'_>) {
        let before = self.wrong.len();
        for (key, _) in table {
            let name = key.get_ref().as_ref();
            if !FIELDS.contains(&name) {
                let all = FIELDS.join(", ");
                let why = format!("workload: it has no `{name}` (valid: {all})");
                self.wrong(key.span().start, why);
            }
        }
        let mut line = WorkloadLine {
            place: self.place(at),
            ..WorkloadLine::default()
        };
        let mut has_id = false;
        for name in FIELDS {
            let found = table.iter().find(|(key, _)| key.get_ref() == name);
            let Some((_, value)) = found else {
                self.wrong(at, format!("workload: `{name}` is missing"));
                continue;
            };
            match self.field(&mut line, name, value.get_ref()) {
                Ok(()) => has_id |= name == "id",
                Err(all) => {
                    for why in all {
                        self.wrong(value.span().start, format!("workload: {name}: {why}"));
                    }
                }
            }
        }
        if let Some(why) = has_id
            .then(|| self.config.repeated(line.id, &line.place))
            .flatten()
        {
            self.wrong(at, why);
        }
        if self.wrong.len() == before {
            self.config.add_workload(line);
        }
    }

    fn field(
        &mut self,
        line: &mut WorkloadLine,
        name: &str,
        value: &DeValue<'_>,
    ) -> Result<(), Vec<String>> {
        let alone = |why| vec![why];
        if name == "id" {
            line.id = thread(value).map_err(alone)?;
            return Ok(());
        }
        let all = array(value).map_err(alone)?;
        match name {
            "remote" => line.remote = threads(all).map_err(alone)?,
            "phases" => line.stages = self.phases(all, &line.place)?,
            "apps" => line.apps = groups(all).map_err(alone)?,
            _ => line.dispatchers = groups(all).map_err(alone)?,
        }
        Ok(())
    }

    fn phases(
        &mut self,
        all: &DeArray<'_>,
        place: &ConfigPlace,
    ) -> Result<Vec<PathStage>, Vec<String>> {
        let (mut stages, mut wrong) = (Vec::new(), Vec::new());
        for one in all {
            let word = one.get_ref().as_str();
            let word = word.ok_or_else(|| "expected names of phases".to_owned());
            match word.and_then(|word| self.config.phase(word.trim(), place)) {
                Ok(stage) => stages.push(stage),
                Err(why) => wrong.push(why),
            }
        }
        if wrong.is_empty() {
            Ok(stages)
        } else {
            Err(wrong)
        }
    }
}

fn array<'v, 'i>(value: &'v DeValue<'i>) -> Result<&'v DeArray<'i>, String> {
    let array = value.as_array().filter(|all| !all.is_empty());
    array.ok_or_else(|| "expected a list, as [0, 1]".to_owned())
}

fn thread(value: &DeValue<'_>) -> Result<u8, String> {
    let number = value
        .as_integer()
        .and_then(|number| number.as_str().parse().ok());
    let number = number.filter(|id| *id < MOST_PATH_THREADS);
    number.ok_or_else(|| "expected numbers from 0 to 15".to_owned())
}

fn threads(all: &DeArray<'_>) -> Result<Vec<u8>, String> {
    let all: Vec<u8> = all
        .iter()
        .map(|one| thread(one.get_ref()))
        .collect::<Result<_, _>>()?;
    match repeated_id(&all) {
        Some(id) => Err(format!("{id} is there twice")),
        None => Ok(all),
    }
}

/// Lists, or numbers, which are lists of one.
fn groups(all: &DeArray<'_>) -> Result<Vec<Vec<u8>>, String> {
    let group = |one: &Spanned<DeValue<'_>>| match one.get_ref().as_array() {
        Some(list) if !list.is_empty() => threads(list),
        Some(_) => Err("a group is empty".to_owned()),
        None => Ok(vec![thread(one.get_ref())?]),
    };
    all.iter().map(group).collect()
}

/// Whether a key that is no switch has true or false.
fn is_odd_truth(name: &str, value: &DeValue<'_>) -> bool {
    let is_number = |key: &Key| key.name == name && key.takes() != "0 or 1";
    matches!(value, DeValue::Boolean(_)) && KEYS.iter().any(is_number)
}

/// A value as the other form has it.
fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    let text = match value {
        DeValue::String(text) => text.as_ref().to_owned(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(is_on) => u8::from(*is_on).to_string(),
        _ => return Err("expected a number, true, false or a text".to_owned()),
    };
    // What the other form could not say.
    if text.contains(char::is_control) || super::config::without_comment(&text) != text.trim() {
        return Err("a text has no `#` after a blank and no control characters".to_owned());
    }
    Ok(text)
}

/// A configuration as text.
pub(super) fn write(config: &AxioConfig, form: ConfigForm) -> String {
    let mut out = String::new();
    for (key, value) in &config.values {
        match form {
            ConfigForm::Axio => push!(out, "{key} : {}\n", value.text),
            ConfigForm::Toml => push!(out, "{key} = {}\n", toml_value(&value.text)),
        }
    }
    for workload in &config.workloads {
        out += &match form {
            ConfigForm::Axio => axio_workload(workload),
            ConfigForm::Toml => toml_workload(workload),
        };
    }
    out
}

/// A number as it is, anything else in quotes.
fn toml_value(text: &str) -> String {
    let is_whole = text
        .parse::<i64>()
        .is_ok_and(|number| number.to_string() == text);
    let is_plain = text.split_once('.').is_some_and(|(whole, rest)| {
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        is_digits(whole) && is_digits(rest) && (whole == "0" || !whole.starts_with('0'))
    });
    if is_whole || is_plain {
        return text.to_owned();
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

fn phase_names(workload: &WorkloadLine) -> impl Iterator<Item = &'static str> {
    let name = |stage: &PathStage| PHASES.iter().find(|(_, known)| known == stage);
    workload
        .stages
        .iter()
        .filter_map(name)
        .map(|(name, _)| *name)
}

fn joined(all: &[u8], between: &str) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(between)
}

fn axio_workload(workload: &WorkloadLine) -> String {
    let groups = |all: &[Vec<u8>]| {
        let all: Vec<String> = all.iter().map(|group| joined(group, ",")).collect();
        all.join("|")
    };
    format!(
        "workload : {} : {} : {} : {} : {}\n",
        workload.id,
        phase_names(workload).collect::<Vec<_>>().join(","),
        joined(&workload.remote, ","),
        groups(&workload.apps),
        groups(&workload.dispatchers)
    )
}

fn toml_workload(workload: &WorkloadLine) -> String {
    let groups = |all: &[Vec<u8>], is_list: bool| {
        let of = |group: &Vec<u8>| match group.as_slice() {
            [one] if !is_list => one.to_string(),
            all => format!("[{}]", joined(all, ", ")),
        };
        all.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let phases: Vec<String> = phase_names(workload)
        .map(|name| format!("\"{name}\""))
        .collect();
    format!(
        "\n[[workload]]\nid = {}\nphases = [{}]\nremote = [{}]\napps = [{}]\ndispatchers = [{}]\n",
        workload.id,
        phases.join(", "),
        joined(&workload.remote, ", "),
        groups(&workload.apps, true),
        groups(&workload.dispatchers, false)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    const CONFIG: &str = "\
# as TOML
kAppCoreNum = 3
duration = 0.5
msg_handler = 'KV'
scan = true
backend = \"xdp:eth1,peer=eth2\"

[[workload]]
id = 1
phases = ['TxApplication', 'txdispatcher', 'RXDispatcher', 'RxApplication']
remote = [0, 2]
apps = [[0, 1], [5]]
dispatchers = [0, [2]]
";

    #[test]
    fn toml_says_the_same_as_lines() {
        let config = AxioConfig::read("c.toml", CONFIG).unwrap();
        let lines = "kAppCoreNum : 3\nduration : 0.5\nmsg_handler : KV\nscan : 1\n\
                     backend : xdp:eth1,peer=eth2\n\
                     workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0,2 : 0,1|5 : 0|2\n";
        let other = AxioConfig::read("c", lines).unwrap();
        assert_eq!(said(&config), said(&other));
        assert_eq!(config.place_of("duration"), "c.toml:3:1: duration");
        assert_eq!(config.notes.len(), 1, "{:?}", config.notes);
        // By what it holds, whatever it is called.
        let other = AxioConfig::read("c", CONFIG).unwrap();
        assert_eq!(said(&config), said(&other));
    }

    #[test]
    fn what_is_wrong_in_toml_is_said_at_once_with_line_and_column() {
        let text = "kAppCoreNumm = 3\nduration = [1]\nnuma = \"\"\n  pool = 'a # b'\nscan = 1\nscan = 0\n\
                    [[workload]]\nid = 16\nphases = ['RXNICC']\nremote = 0\napps = [[]]\nspeed = 1\n";
        let wrong = AxioConfig::read("c.toml", text).unwrap_err().join("\n");
        for line in [
            "c.toml:1:1: no key `kAppCoreNumm`; did you mean kAppCoreNum?",
            "c.toml:2:12: duration: expected a number",
            "c.toml:3:1: numa: a value is missing",
            "c.toml:4:10: pool: a text has no `#`",
            "c.toml:6:1: ",
            "c.toml:8:6: workload: id: expected numbers from 0 to 15",
            "c.toml:9:10: workload: phases: workload: no phase `RXNICC`",
            "c.toml:10:10: workload: remote: expected a list",
            "c.toml:11:8: workload: apps: a group is empty",
            "c.toml:12:1: workload: it has no `speed`",
            "workload: `dispatchers` is missing",
        ] {
            assert!(wrong.contains(line), "{line} not in\n{wrong}");
        }
        assert!(AxioConfig::read("c.toml", "workload = 1").is_err());
        assert!(AxioConfig::read("c.toml", "workload = [1]").is_err());
        let two = format!(
            "{CONFIG}[[workload]]\nid = 1\nphases = ['TxNIC']\nremote = [0]\napps = [[0]]\ndispatchers = [0]\n"
        );
        let wrong = AxioConfig::read("c.toml", &two).unwrap_err();
        assert_eq!(
            wrong,
            ["c.toml:14:1: workload: 1 is there already, in line 8"]
        );
    }

    #[test]
    fn a_number_that_a_list_of_a_workload_repeats_is_refused_with_its_place() {
        for (from, to, why) in [
            (
                "[0, 2]",
                "[2, 2]",
                "c.toml:11:10: workload: remote: 2 is there twice",
            ),
            (
                "[[0, 1], [5]]",
                "[[1, 1], [5]]",
                "c.toml:12:8: workload: apps: 1 is there twice",
            ),
            (
                "[0, [2]]",
                "[0, [2, 2]]",
                "c.toml:13:15: workload: dispatchers: 2 is there twice",
            ),
        ] {
            let text = CONFIG.replacen(from, to, 1);
            assert_eq!(AxioConfig::read("c.toml", &text).unwrap_err(), [why]);
        }
    }

    #[test]
    fn no_beginning_of_toml_is_more_than_refused() {
        for at in 0..CONFIG.len() {
            let _ = AxioConfig::read("c.toml", &CONFIG[..at]);
        }
    }

    /// All but places.
    fn said(config: &AxioConfig) -> String {
        write(config, ConfigForm::Axio)
    }

    fn value() -> impl Strategy<Value = String> {
        let word = "[!-\"$-~]{1,6}( [!-\"$-~]{1,6})?";
        prop_oneof![
            any::<i64>().prop_map(|n| n.to_string()),
            "0?[0-9]{1,3}\\.[0-9]{1,3}",
            word
        ]
    }

    fn workload() -> impl Strategy<Value = WorkloadLine> {
        let ids = || prop::sample::subsequence((0..16).collect::<Vec<u8>>(), 1..4).prop_shuffle();
        let stages = prop::sample::subsequence(PHASES.map(|(_, stage)| stage).to_vec(), 1..=6);
        (0..16_u8, stages, ids(), vec(ids(), 1..4), vec(ids(), 1..4)).prop_map(
            |(id, stages, remote, apps, dispatchers)| WorkloadLine {
                id,
                stages,
                remote,
                apps,
                dispatchers,
                ..WorkloadLine::default()
            },
        )
    }

    proptest! {
        #[test]
        fn what_goes_from_one_form_to_the_other_and_back_is_the_same(
            values in btree_map(0..KEYS.len(), value(), 0..8),
            workloads in vec(workload(), 0..3),
        ) {
            let mut config = AxioConfig::default();
            let place = ConfigPlace { file: "t".to_owned(), line: 0, column: 0 };
            for (at, text) in &values {
                // What is refused is not there to be written.
                let _ = config.add_value(KEYS[*at].name, text, &place, Unknown::Refused);
            }
            for one in workloads {
                config.add_workload(one);
            }
            let toml = write(&config, ConfigForm::Toml);
            let back = AxioConfig::read("t.toml", &toml).unwrap();
            prop_assert_eq!(said(&back), said(&config), "{}", toml);
            let lines = AxioConfig::read("t", &said(&config)).unwrap();
            prop_assert_eq!(write(&lines, ConfigForm::Toml), toml);
        }
    }
}
