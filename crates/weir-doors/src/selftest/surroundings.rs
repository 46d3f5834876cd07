//! What variables of the surroundings say, and where the table of a group is.
//!
//! In: variables, whether a file is there. Out: parts of a workload, and which variables had an effect.
//! Not here: options, which go before variables; what the table says.

use weir_schema::{RpcPoll, RpcWorkload};
use weir_units::Nanos;

use super::argv::refuse_named;
use super::{SelfTestEnvironment, values};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// The longest path of a directory that the older program takes.
const LONGEST_PATH: usize = 255;

/// Reads variables, and remembers those that had an effect.
pub(super) struct Used<'a> {
    environment: &'a SelfTestEnvironment<'a>,
    effects: Vec<String>,
}

impl<'a> Used<'a> {
    pub(super) fn new(environment: &'a SelfTestEnvironment<'a>) -> Self {
        Self {
            environment,
            effects: Vec::new(),
        }
    }

    /// A line about the variables that had an effect.
    pub(super) fn notes(self) -> Vec<String> {
        if self.effects.is_empty() {
            return Vec::new();
        }
        vec![format!("from the environment: {}", self.effects.join(" "))]
    }

    pub(super) fn seed(&self) -> u64 {
        self.environment.seed.max(1)
    }

    /// The first of these variables that says something.
    fn variable(&mut self, names: &[&'static str]) -> Option<(&'static str, String)> {
        let found = names.iter().find_map(|name| {
            let value = (self.environment.variable)(name)?;
            (!value.is_empty()).then_some((*name, value))
        })?;
        self.effects.push(format!("{}={}", found.0, found.1));
        Some(found)
    }

    fn number(&mut self, name: &'static str, range: (u64, u64)) -> Result<Option<u64>, Refusal> {
        let Some((_, text)) = self.variable(&[name]) else {
            return Ok(None);
        };
        let number = values::whole(&text, range);
        let refuse = |why| Refusal::usage(format!("the variable {name}={text}: {why}"));
        number.map(Some).map_err(refuse)
    }

    /// How long an RPC may take.
    pub(super) fn timeout(&mut self) -> Result<Option<Nanos>, Refusal> {
        Ok(self.number("CRT_TIMEOUT", (1, 3600))?.map(Nanos::from_secs))
    }

    /// How threads wait.
    pub(super) fn poll(&mut self) -> Result<Option<RpcPoll>, Refusal> {
        let busy = (self.environment.variable)("D_PROGRESS_BUSY");
        if busy.is_some_and(|value| !["", "0", "no", "false"].contains(&&*value)) {
            let _ = self.variable(&["D_PROGRESS_BUSY"]);
            return Ok(Some(RpcPoll::Busy));
        }
        let spin = self.number("D_PROGRESS_SPINDOWN", (0, 60_000))?;
        Ok(spin.map(|ms| match ms {
            0 => RpcPoll::Block,
            ms => RpcPoll::Spin {
                for_ns: Nanos::from_millis(ms),
            },
        }))
    }

    /// What options leave open: transport, interface, limits, the table.
    pub(super) fn fill(
        &mut self,
        given: &GivenFlags,
        work: &mut RpcWorkload,
    ) -> Result<(), Refusal> {
        if work.transport.is_none()
            && let Some((name, text)) = self.variable(&["D_PROVIDER", "CRT_PHY_ADDR_STR"])
        {
            let transport = values::transport(&text);
            let refuse = |why| Refusal::usage(format!("the variable {name}={text}: {why}"));
            work.transport = Some(transport.map_err(refuse)?);
        }
        let text = |found: Option<(&str, String)>| found.map(|(_, text)| text);
        work.interface = text(self.variable(&["OFI_INTERFACE", "D_INTERFACE"]));
        work.domain = text(self.variable(&["OFI_DOMAIN", "D_DOMAIN"]));
        // The older program takes a larger number for the largest.
        let credits = self.number("CRT_CREDIT_EP_CTX", (0, u64::MAX))?;
        work.credits_per_rank = credits.map_or(0, |n| u32::try_from(n.min(256)).unwrap_or(256));
        let quota = self.number("D_QUOTA_RPCS", (0, u32::MAX.into()))?;
        work.quota = quota.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        if work.loopback.is_none() && work.targets.is_empty() {
            work.table = Some(self.table(given, &work.group)?);
        }
        Ok(())
    }

    /// The directory of the table: that of --path, else the first that has it.
    fn table(&mut self, given: &GivenFlags, group: &str) -> Result<String, Refusal> {
        if let Some(path) = given.text("path") {
            let refuse = |why: &str| Err(refuse_named("path", path, why));
            if path.len() > LONGEST_PATH {
                return refuse("it has more than 255 characters");
            }
            if !(self.environment.is_directory)(path) {
                return refuse("it is no directory");
            }
            return Ok(path.to_owned());
        }
        let has_agent = given.has("use-daos-agent-env");
        let mut first = None;
        for (variable, directory) in places(self.environment, has_agent) {
            if (self.environment.has_file)(&table_file(&directory, group)) {
                if let Some(variable) = variable {
                    self.effects.push(format!("{variable}={directory}"));
                }
                return Ok(directory);
            }
            first.get_or_insert(directory);
        }
        Ok(first.unwrap_or_else(|| "/tmp".to_owned()))
    }
}

/// Where tables are looked for, each with the variable that says so.
pub(super) fn places(
    environment: &SelfTestEnvironment<'_>,
    has_agent: bool,
) -> Vec<(Option<&'static str>, String)> {
    let variable = |name: &'static str, behind: &str| {
        let value = (environment.variable)(name).filter(|value| !value.is_empty());
        value.map(|value| (Some(name), format!("{value}{behind}")))
    };
    let mut all = Vec::new();
    all.extend(variable("WEIR_GROUP_DIR", ""));
    all.extend(variable("CRT_ATTACH_INFO_PATH", ""));
    if has_agent {
        all.extend(variable("XDG_RUNTIME_DIR", "/weir"));
        all.push((None, "/run/weir".to_owned()));
    }
    all.push((None, "/tmp".to_owned()));
    all
}

/// The file of a group's table.
pub(crate) fn table_file(directory: &str, group: &str) -> String {
    format!("{directory}/{group}.attach_info_tmp")
}
