//! Budgets: how many lines of code a door, a family and the whole may have.
//!
//! In: `budgets.toml`, the lines of each file of the product. Out: a table of parts beside their
//! goals and ceilings, and the parts above them. A part above its goal has a ceiling for the time
//! being: its size when that was set, rounded up. The limit of a part is its ceiling, else its goal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

const FILE: &str = "budgets.toml";
const DOORS: &str = "crates/weir-doors/src/";
const PROGRAM: &str = "crates/weir/src/";
/// A ceiling that is this far above its part is to be lowered.
const SLACK: usize = 100;

/// Lines by path.
pub(super) type Files = BTreeMap<String, usize>;

/// Limits of one part, in lines of code.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Budget {
    goal: Option<usize>,
    ceiling: Option<usize>,
}

impl Budget {
    fn limit(self) -> Option<usize> {
        self.ceiling.or(self.goal)
    }

    fn parse(name: &str, value: &Value) -> Result<Self> {
        let table = value
            .as_table()
            .with_context(|| format!("{FILE}: `{name}` is no table of `goal` and `ceiling`"))?;
        let mut budget = Self::default();
        for (key, value) in table {
            let lines = value
                .as_integer()
                .and_then(|lines| usize::try_from(lines).ok())
                .with_context(|| format!("{FILE}: `{name}.{key}` is no number of lines"))?;
            match key.as_str() {
                "goal" => budget.goal = Some(lines),
                "ceiling" => budget.ceiling = Some(lines),
                _ => bail!("{FILE}: `{name}` has no `{key}`"),
            }
        }
        if budget.limit().is_none() || budget.goal >= budget.ceiling.or(Some(usize::MAX)) {
            bail!("{FILE}: `{name}` needs a goal, or a ceiling above it");
        }
        Ok(budget)
    }
}

/// All budgets.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    /// A door that has no line of its own.
    new_door: Budget,
    doors: BTreeMap<String, Budget>,
    /// Names of crates, joined by ` + `.
    crates: BTreeMap<String, Budget>,
    all: Budget,
}

/// A part of the product, with its size and its budget.
struct Measured {
    name: String,
    lines: usize,
    budget: Budget,
}

impl Budgets {
    pub(super) fn read() -> Result<Self> {
        Self::parse(&std::fs::read_to_string(FILE).context(FILE)?)
    }

    fn parse(text: &str) -> Result<Self> {
        let table: Table = toml::from_str(text).context(FILE)?;
        let one = |name: &str| {
            let value = table
                .get(name)
                .with_context(|| format!("{FILE}: no `{name}`"))?;
            Budget::parse(name, value)
        };
        let several = |name: &str| -> Result<BTreeMap<String, Budget>> {
            let parts = table.get(name).and_then(Value::as_table);
            let parts = parts.with_context(|| format!("{FILE}: no table `{name}`"))?;
            let named =
                |(name, value): (&String, &Value)| Ok((name.clone(), Budget::parse(name, value)?));
            parts.iter().map(named).collect()
        };
        Ok(Self {
            new_door: one("new-door")?,
            doors: several("doors")?,
            crates: several("crates")?,
            all: one("all")?,
        })
    }

    /// All parts beside their budgets.
    pub(super) fn table(&self, files: &Files) -> String {
        let mut text = String::from("  lines     goal  ceiling\n");
        let cell = |lines: Option<usize>| lines.map_or("–".to_owned(), |lines| lines.to_string());
        for part in self.measured(files) {
            let Budget { goal, ceiling } = part.budget;
            let (goal, ceiling) = (cell(goal), cell(ceiling));
            let _ = write!(
                text,
                "{:7}  {goal:>7}  {ceiling:>7}  {}",
                part.lines, part.name
            );
            if let Some(hint) = part.hint() {
                let _ = write!(text, ": {hint}");
            }
            text.push('\n');
        }
        text
    }

    /// A line for each part above its budget.
    pub(super) fn exceeded(&self, files: &Files) -> Vec<String> {
        self.measured(files)
            .iter()
            .filter_map(Measured::excess)
            .collect()
    }

    fn measured(&self, files: &Files) -> Vec<Measured> {
        let door = |name: &str| Measured {
            name: format!("door {name}"),
            lines: lines_of_door(name, files),
            budget: self.doors.get(name).copied().unwrap_or(self.new_door),
        };
        let crates = |(names, budget): (&String, &Budget)| Measured {
            name: names.clone(),
            lines: names
                .split(" + ")
                .map(|name| lines_below(&format!("crates/{name}/"), files))
                .sum(),
            budget: *budget,
        };
        let all = Measured {
            name: "all".to_owned(),
            lines: files.values().sum(),
            budget: self.all,
        };
        let mut doors = doors(files);
        doors.extend(self.doors.keys().map(String::as_str));
        let doors = doors.into_iter().map(door);
        doors
            .chain(self.crates.iter().map(crates))
            .chain([all])
            .collect()
    }
}

impl Measured {
    fn excess(&self) -> Option<String> {
        let limit = self.budget.limit().filter(|limit| self.lines > *limit)?;
        let (name, lines) = (&self.name, self.lines);
        Some(format!(
            "{name}: {lines} lines of code, {limit} are the limit of {FILE}"
        ))
    }

    /// The next change to the budget of a part that has shrunk.
    fn hint(&self) -> Option<String> {
        let ceiling = self.budget.ceiling?;
        if self.budget.goal.is_some_and(|goal| self.lines <= goal) {
            return Some("its ceiling can go".to_owned());
        }
        let lower = self.lines.next_multiple_of(SLACK);
        (lower < ceiling).then(|| format!("its ceiling can be {lower}"))
    }
}

/// Names of the doors: each folder of `weir-doors`, and each file of it with a namesake in `weir`.
fn doors(files: &Files) -> BTreeSet<&str> {
    let inside = files.keys().filter_map(|path| path.strip_prefix(DOORS));
    let named = inside.filter_map(|inside| match inside.split_once('/') {
        Some((folder, _)) => Some(folder),
        None => inside
            .strip_suffix(".rs")
            .filter(|name| lines_of_module(PROGRAM, name, files) > 0),
    });
    named.collect()
}

/// The lines of a door in the two crates that have a part of it.
fn lines_of_door(name: &str, files: &Files) -> usize {
    lines_of_module(DOORS, name, files) + lines_of_module(PROGRAM, name, files)
}

/// The lines of `name.rs` and of the folder `name`.
fn lines_of_module(folder: &str, name: &str, files: &Files) -> usize {
    let file = files.get(&format!("{folder}{name}.rs")).copied();
    file.unwrap_or(0) + lines_below(&format!("{folder}{name}/"), files)
}

fn lines_below(folder: &str, files: &Files) -> usize {
    let below = files.iter().filter(|(path, _)| path.starts_with(folder));
    below.map(|(_, lines)| lines).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "new-door = { goal = 2500 }\n\
                        all = { goal = 9000, ceiling = 9500 }\n\
                        [doors]\nfio = { goal = 4500, ceiling = 4900 }\n\
                        [crates]\n\"weir + weir-doors\" = { goal = 8000 }\n\"weir-net\" = { ceiling = 700 }\n";

    fn files(list: &[(&str, usize)]) -> Files {
        let files = list
            .iter()
            .map(|(path, lines)| (format!("crates/{path}"), *lines));
        files.collect()
    }

    #[test]
    fn a_door_is_its_modules_in_both_crates() {
        let files = files(&[
            ("weir-doors/src/fio/mod.rs", 1),
            ("weir-doors/src/fio/output/json.rs", 2),
            ("weir/src/fio.rs", 4),
            ("weir/src/fio/idle.rs", 8),
            ("weir/src/fiord.rs", 100),
            ("weir-doors/src/topo.rs", 16),
            ("weir/src/topo/mod.rs", 32),
            ("weir-doors/src/flags.rs", 100),
        ]);
        assert_eq!(doors(&files), BTreeSet::from(["fio", "topo"]));
        assert_eq!(lines_of_door("fio", &files), 15);
        assert_eq!(lines_of_door("topo", &files), 48);
    }

    #[test]
    fn a_part_above_its_ceiling_or_else_its_goal_is_named() {
        let budgets = Budgets::parse(TEXT).unwrap();
        let exceeded = |list: &[(&str, usize)]| budgets.exceeded(&files(list));
        assert_eq!(exceeded(&[("weir-doors/src/fio/mod.rs", 4900)]), [""; 0]);
        assert_eq!(
            exceeded(&[("weir-doors/src/fio/mod.rs", 4901)]),
            ["door fio: 4901 lines of code, 4900 are the limit of budgets.toml"]
        );
        let new = exceeded(&[
            ("weir-doors/src/ior/mod.rs", 2501),
            ("weir/src/main.rs", 5500),
        ]);
        assert_eq!(new.len(), 2, "{new:?}");
        assert!(new[0].starts_with("door ior: 2501 lines"), "{new:?}");
        assert!(
            new[1].starts_with("weir + weir-doors: 8001 lines"),
            "{new:?}"
        );
        let rest = exceeded(&[("weir-net/src/lib.rs", 701), ("weir-run/src/lib.rs", 8800)]);
        assert_eq!(rest.len(), 2, "{rest:?}");
        assert!(rest[1].starts_with("all: 9501 lines"), "{rest:?}");
    }

    #[test]
    fn the_table_shows_goal_and_ceiling_and_which_ceiling_can_go_down() {
        let budgets = Budgets::parse(TEXT).unwrap();
        let line = |lines| {
            let table = budgets.table(&files(&[("weir-doors/src/fio/mod.rs", lines)]));
            table.lines().nth(1).unwrap().to_owned()
        };
        assert_eq!(line(4850), "   4850     4500     4900  door fio");
        assert_eq!(
            line(4799),
            "   4799     4500     4900  door fio: its ceiling can be 4800"
        );
        assert_eq!(
            line(4500),
            "   4500     4500     4900  door fio: its ceiling can go"
        );
    }

    #[test]
    fn a_budget_without_a_limit_or_with_another_key_is_refused() {
        for (from, to) in [
            ("goal = 2500", ""),
            ("goal = 2500", "goals = 2500"),
            ("goal = 2500", "goal = -1"),
            ("ceiling = 4900", "ceiling = 4500"),
        ] {
            let error = Budgets::parse(&TEXT.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains("budgets.toml: `"), "{error}");
        }
    }

    #[test]
    fn the_budgets_of_the_tree_can_be_read() {
        Budgets::parse(include_str!("../../../budgets.toml")).unwrap();
    }
}
