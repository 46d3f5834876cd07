//! Warnings of a report and their places: each kind once, the gravest first, those that several
//! jobs share for all of them together.
//!
//! In: the warnings of a result. Out: lines below a job or at the foot. Not here: what they mean.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use weir_schema::{RunResult, Warning};

use super::Report;
use crate::color::{Text, Tone};
use crate::entry::ReportEntry;

/// Largest number of warnings printed in a place; the others are named.
const PRINTED: usize = 3;
/// Largest number of jobs named that share a warning.
const NAMED: usize = 3;

/// A warning as it is said.
struct PrintedWarning<'a> {
    warning: &'a Warning,
    /// Job that it concerns, where that does not follow from the place.
    of: Option<String>,
    /// Further ones of its kind.
    more: usize,
    /// Text behind the cause.
    besides: Option<String>,
}

impl<'a> PrintedWarning<'a> {
    fn new(warning: &'a Warning, of: Option<String>) -> Self {
        Self {
            warning,
            of,
            more: 0,
            besides: None,
        }
    }
}

/// The warnings of a result, by place.
#[derive(Default)]
pub(super) struct PlacedWarnings<'a> {
    entries: Vec<Vec<PrintedWarning<'a>>>,
    /// About the run, or shared by several entries.
    foot: Vec<PrintedWarning<'a>>,
}

impl<'a> PlacedWarnings<'a> {
    pub(super) fn of(result: &'a RunResult, entries: &[ReportEntry<'_>], all: bool) -> Self {
        // Names need not be unique: a warning belongs to the first of its name.
        let mut homes: HashMap<&str, usize> = HashMap::new();
        for (number, entry) in entries.iter().enumerate() {
            for job in &entry.jobs {
                homes.entry(&job.name).or_insert(number);
            }
        }
        let home = |w: &Warning| homes.get(w.job.as_deref()?).copied();
        let mut placed = Self {
            entries: entries.iter().map(|_| Vec::new()).collect(),
            foot: Vec::new(),
        };
        let mut sharing: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for warning in &result.warnings {
            let sharing = sharing.entry(&warning.id).or_default();
            sharing.extend(home(warning));
        }
        let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
        for warning in &result.warnings {
            let sharing = &sharing[warning.id.as_str()];
            match home(warning) {
                Some(at) if all => placed.entries[at].push(PrintedWarning::new(warning, None)),
                Some(at) if sharing.len() == 1 => placed.add_to_entry(at, warning),
                Some(_) => {
                    if seen.insert((&warning.id, "")) {
                        let names: Vec<&str> =
                            sharing.iter().map(|at| entries[*at].name()).collect();
                        placed.foot.push(shared(&result.warnings, warning, &names));
                    }
                }
                None => {
                    if all || seen.insert((&warning.id, &warning.cause)) {
                        let said = PrintedWarning::new(warning, warning.job.clone());
                        placed.foot.push(said);
                    }
                }
            }
        }
        placed
    }

    fn add_to_entry(&mut self, at: usize, warning: &'a Warning) {
        let said = &mut self.entries[at];
        match said.iter_mut().find(|s| s.warning.id == warning.id) {
            Some(known) => known.more += 1,
            None => said.push(PrintedWarning::new(warning, None)),
        }
    }
}

/// A warning that several entries have: for all whose cause is the same, or for one of them and then
/// for the others.
fn shared<'a>(all: &[Warning], first: &'a Warning, names: &[&str]) -> PrintedWarning<'a> {
    let mut of_id = all.iter().filter(|w| w.id == first.id && w.job.is_some());
    if of_id.all(|w| w.cause == first.cause) {
        return PrintedWarning::new(first, Some(list(names)));
    }
    let is_other = |name: &&str| first.job.as_deref() != Some(name);
    let others: Vec<&str> = names.iter().copied().filter(is_other).collect();
    PrintedWarning {
        besides: Some(format!("Likewise {}.", list(&others))),
        ..PrintedWarning::new(first, first.job.clone())
    }
}

/// `a, b, c and 5 more`.
fn list(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().checked_sub(NAMED) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}

impl Report<'_> {
    /// Warnings of an entry alone.
    pub(super) fn warnings_of(&mut self, entry: usize, owner: Option<&str>) {
        let said = self.warnings.entries.get_mut(entry).map(std::mem::take);
        let mut said = said.unwrap_or_default();
        for said in &mut said {
            said.of = owner.map(str::to_owned);
        }
        self.gravest(said);
    }

    /// Warnings about the run, and those that several entries share.
    pub(super) fn shared_warnings(&mut self) {
        let said = std::mem::take(&mut self.warnings.foot);
        self.gravest(said);
    }

    fn gravest(&mut self, mut said: Vec<PrintedWarning<'_>>) {
        said.sort_by_key(|said| said.warning.gravity());
        let most = if self.style.all_warnings {
            usize::MAX
        } else {
            PRINTED
        };
        let rest = said.split_off(said.len().min(most));
        for said in &said {
            self.warning(said);
        }
        if !rest.is_empty() {
            let ids: Vec<&str> = rest.iter().map(|said| &*said.warning.id).collect();
            let lead = format!("  ! {} more  ", rest.len());
            let hang = self.layout.columns(&lead.as_str().into());
            let text = format!("{} (--warnings all)", ids.join(", "));
            self.layout.prose(Text::new(Tone::Warn, lead), hang, &text);
        }
    }

    fn warning(&mut self, said: &PrintedWarning<'_>) {
        let warning = said.warning;
        let lead = format!("  ! {}  ", warning.id);
        let hang = self.layout.columns(&lead.as_str().into());
        let hang = if hang > self.style.width / 2 { 4 } else { hang };
        let more = (said.more > 0).then(|| format!("And {} more of this kind.", said.more));
        let mut text = match &said.of {
            Some(of) => format!("{of}: {}", warning.cause),
            None => warning.cause.clone(),
        };
        let further = more.iter().chain(&said.besides).chain([&warning.remedy]);
        for further in further {
            let ends = text.is_empty() || text.ends_with(['.', '!', '?']);
            text.push_str(if ends { " " } else { "; " });
            text.push_str(further);
        }
        self.layout.prose(Text::new(Tone::Warn, lead), hang, &text);
    }
}
