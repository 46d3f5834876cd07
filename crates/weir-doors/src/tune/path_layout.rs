//! Layouts of a packet path: which of its workspaces are applications and which dispatchers.
//!
//! In: a configuration. Out: the layouts that its own workspaces allow, each with the lines that make it.
//! Not here: which layout is better.

use std::collections::{BTreeMap, BTreeSet};

use weir_diagnose::ConfigText;

const WORKLOAD: &str = "workload";

/// A layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLayout {
    /// Name: `given`, `combined`, `split-1`, `combined-of-2`.
    pub name: String,
    /// Values of the workload lines, in order.
    workloads: Vec<String>,
    applications: usize,
    dispatchers: usize,
}

impl PathLayout {
    /// True if the workload lines of both are the same apart from spaces.
    pub(super) fn is_laid_out_as(&self, other: &Self) -> bool {
        let plain = |lines: &[String]| -> Vec<String> {
            let plain = lines.iter().map(|line| line.split_whitespace().collect());
            plain.collect()
        };
        plain(&self.workloads) == plain(&other.workloads)
    }

    /// Gives a configuration this layout.
    ///
    /// # Errors
    /// The configuration has a key twice.
    pub fn apply(&self, config: &mut ConfigText) -> Result<(), String> {
        if self.name == GIVEN {
            return Ok(());
        }
        config.set_all(WORKLOAD, &self.workloads);
        for (key, count) in [
            ("kAppCoreNum", self.applications),
            ("kDispQueueNum", self.dispatchers),
        ] {
            let count = count.to_string();
            if !config.set(key, &count).map_err(|why| why.to_string())? {
                config.add(key, &count);
            }
        }
        Ok(())
    }
}

/// The name of the layout that the configuration has.
const GIVEN: &str = "given";

/// A line of a workload.
struct WorkloadParts {
    /// Id and phases.
    head: String,
    remote: String,
    workspaces: Vec<u32>,
}

/// The layouts of a configuration, that which it has first. The other side of a loopback is laid out alike.
///
/// # Errors
/// Workloads that cannot be read or that share a workspace: the reason.
pub(super) fn layouts(config: &ConfigText, is_loopback: bool) -> Result<Vec<PathLayout>, String> {
    let lines = config.all(WORKLOAD);
    let given: Vec<WorkloadParts> = lines
        .iter()
        .map(|line| parts(line))
        .collect::<Option<_>>()
        .ok_or("a workload line cannot be read")?;
    let mut seen = BTreeSet::new();
    let all = given.iter().flat_map(|one| &one.workspaces);
    if !all.clone().all(|workspace| seen.insert(*workspace)) {
        return Err("workloads share a workspace, which other layouts cannot".to_owned());
    }
    if given.is_empty() {
        return Err("it has no workload".to_owned());
    }
    let mut layouts = vec![PathLayout {
        name: GIVEN.to_owned(),
        workloads: lines.iter().map(|line| (*line).to_owned()).collect(),
        applications: 0,
        dispatchers: 0,
    }];
    let is_one = |one: &WorkloadParts| one.workspaces.len() == 1;
    let mut used = given;
    layouts.extend(layouts_of(&used, false, is_loopback));
    while !used.iter().all(is_one) {
        used = used.iter().map(WorkloadParts::first_half).collect();
        layouts.extend(layouts_of(&used, true, is_loopback));
    }
    Ok(layouts)
}

/// The layouts in which all workspaces of these workloads work: combined, then split.
fn layouts_of(used: &[WorkloadParts], is_part: bool, is_loopback: bool) -> Vec<PathLayout> {
    let workspaces: usize = used.iter().map(|one| one.workspaces.len()).sum();
    let smallest = used.iter().map(|one| one.workspaces.len()).min();
    let splits = 1..=smallest.unwrap_or(0) / 2;
    let of = |split: Option<usize>| {
        let laid: Vec<(String, usize, usize)> = used
            .iter()
            .map(|one| one.laid_out(split, is_loopback))
            .collect();
        let name = split.map_or_else(
            || "combined".to_owned(),
            |dispatchers| format!("split-{dispatchers}"),
        );
        PathLayout {
            name: if is_part {
                format!("{name}-of-{workspaces}")
            } else {
                name
            },
            applications: laid.iter().map(|(_, apps, _)| apps).sum(),
            dispatchers: laid.iter().map(|(_, _, dispatchers)| dispatchers).sum(),
            workloads: laid.into_iter().map(|(line, _, _)| line).collect(),
        }
    };
    std::iter::once(None)
        .chain(splits.map(Some))
        .map(of)
        .collect()
}

/// The workspaces of each workload that can be read, by its id.
pub(super) fn workspaces_of(config: &ConfigText) -> BTreeMap<u32, Vec<u32>> {
    let lines = config.all(WORKLOAD).into_iter();
    let known = lines.filter_map(|line| {
        let parts = parts(line)?;
        let id = parts.head.split(':').next()?.trim().parse().ok()?;
        Some((id, parts.workspaces))
    });
    known.collect()
}

impl WorkloadParts {
    /// The workload with the first half of its workspaces.
    fn first_half(&self) -> Self {
        let used = self.workspaces.len().div_ceil(2);
        Self {
            head: self.head.clone(),
            remote: self.remote.clone(),
            workspaces: self.workspaces[..used].to_vec(),
        }
    }

    /// Workload line with this many workspaces that only dispatch, or with all doing both; and its numbers of
    /// applications and dispatchers.
    fn laid_out(&self, split: Option<usize>, is_loopback: bool) -> (String, usize, usize) {
        let all = &self.workspaces;
        let (apps, dispatchers) = match split {
            None => (&all[..], &all[..]),
            Some(last) => all.split_at(all.len() - last.min(all.len())),
        };
        let size = apps.len().div_ceil(dispatchers.len().max(1)).max(1);
        let groups: Vec<String> = apps.chunks(size).map(|group| joined(group, ",")).collect();
        // Fewer groups than dispatchers leave some without work.
        let used = &dispatchers[..groups.len().min(dispatchers.len())];
        let remote = if is_loopback {
            joined(used, ",")
        } else {
            self.remote.clone()
        };
        let line = format!(
            "{} : {remote} : {} : {}",
            self.head,
            groups.join("|"),
            joined(used, "|")
        );
        (line, apps.len(), used.len())
    }
}

fn joined(workspaces: &[u32], between: &str) -> String {
    let words: Vec<String> = workspaces.iter().map(u32::to_string).collect();
    words.join(between)
}

fn parts(line: &str) -> Option<WorkloadParts> {
    let all: Vec<&str> = line.split(':').map(str::trim).collect();
    let [id, phases, remote, groups, dispatchers] = all[..] else {
        return None;
    };
    let mut workspaces = BTreeSet::new();
    for word in groups.split(['|', ',']).chain(dispatchers.split('|')) {
        let word = word.trim();
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let (first, last) = (number(first)?, number(last)?);
        // Numbers of workspaces are below 16.
        if last > 255 || first > last {
            return None;
        }
        workspaces.extend(first..=last);
    }
    Some(WorkloadParts {
        head: format!("{id} : {phases}"),
        remote: remote.to_owned(),
        workspaces: workspaces.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "kAppCoreNum : 3\nkDispQueueNum : 1\n\
        workload : 0 : TxApplication,TxDispatcher : 9 : 0,1-2 : 3 # four\n";

    fn of(text: &str, is_loopback: bool) -> Vec<(String, String)> {
        let config = ConfigText::read(text).unwrap();
        let all = layouts(&config, is_loopback).unwrap().into_iter();
        let text = all.map(|layout| {
            let mut config = config.clone();
            layout.apply(&mut config).unwrap();
            (layout.name, config.text())
        });
        text.collect()
    }

    #[test]
    fn listed_workspaces_are_combined_or_split() {
        let all = of(TEXT, true);
        assert_eq!(all[0], ("given".to_owned(), TEXT.to_owned()));
        let line = |apps, queues, rest: &str| {
            format!(
                "kAppCoreNum : {apps}\nkDispQueueNum : {queues}\n\
                 workload : 0 : TxApplication,TxDispatcher : {rest} # four\n"
            )
        };
        let combined = line(4, 4, "0,1,2,3 : 0|1|2|3 : 0|1|2|3");
        assert_eq!(all[1], ("combined".to_owned(), combined));
        let one = line(3, 1, "3 : 0,1,2 : 3");
        assert_eq!(all[2], ("split-1".to_owned(), one));
        let two = line(2, 2, "2,3 : 0|1 : 2|3");
        assert_eq!(all[3], ("split-2".to_owned(), two));
        assert_eq!(all.len(), 7);
        let names: Vec<&str> = all[4..].iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["combined-of-2", "split-1-of-2", "combined-of-1"]);
        assert_eq!(all[5].1, line(1, 1, "1 : 0 : 1"));
        // The dispatchers of another machine stay what they are.
        assert!(of(TEXT, false)[1].1.contains(" : 9 : 0|1|2|3 : "));
    }

    #[test]
    fn each_workload_keeps_a_workspace() {
        let two = "workload : 0 : TxApplication : 9 : 0-2 : 0\n\
                   workload : 1 : TxApplication : 9 : 7 : 7\n";
        let all = of(two, false);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        // One of one cannot be split, and no third of three is left out before a half.
        assert_eq!(
            names,
            ["given", "combined", "combined-of-3", "combined-of-2"]
        );
        assert!(all[3].1.contains(": 9 : 0 : 0\n") && all[3].1.contains(": 9 : 7 : 7\n"));
    }

    #[test]
    fn workloads_that_share_a_workspace_have_no_other_layout() {
        let two = "workload : 0 : TxApplication : 0 : 0 : 1\n\
                   workload : 1 : TxApplication : 0 : 2 : 1\n";
        let of = |text: &str| layouts(&ConfigText::read(text).unwrap(), true);
        assert!(of(two).unwrap_err().contains("share a workspace"));
        assert!(of("a : 1\n").unwrap_err().contains("no workload"));
        let odd = "workload : 0 : TxApplication : 0 : 0-9999999 : 1\n";
        assert!(of(odd).unwrap_err().contains("cannot be read"));
        let alone = of("workload : 0 : TxApplication : 0 : 0 : 0\n").unwrap();
        assert_eq!(alone.len(), 2);
    }
}
