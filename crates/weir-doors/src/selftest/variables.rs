//! Environment variables of the self-test, and the place of the table of a group.
//!
//! In: variables, whether a file is there. Out: parts of a workload, and which variables had an effect.
//! Not here: options, which go before variables; what the table says.

use weir_schema::{RpcAddresses, RpcPoll, RpcWorkload};
use weir_units::{Nanos, parse};

use super::{refuse, values};
use crate::given::GivenFlags;
use crate::machine::{Machine, NamedPath};
use crate::refusal::Refusal;

/// The longest path of a directory that the older program takes.
const LONGEST_PATH: usize = 255;
/// Most contexts of a process of it.
const MOST_CONTEXTS: u64 = 128;
/// The older program takes a larger number for the largest.
const MOST_CREDITS: u32 = 256;

/// Variables that name the directory of tables, the first before the others.
const NAMED: [&str; 2] = ["WEIR_GROUP_DIR", "CRT_ATTACH_INFO_PATH"];
/// Where tables are in the end.
const EVERYBODYS: &str = "/tmp";

/// Reads variables, and remembers those that had an effect.
pub(crate) struct UsedVariables<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    effects: Vec<String>,
    /// Notes about values that do not count as they are.
    remarks: Vec<String>,
}

impl<'a> UsedVariables<'a> {
    pub(crate) fn new(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            variable,
            effects: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// A line about the variables that had an effect, and others on what became of values.
    pub(crate) fn notes(self) -> Vec<String> {
        let effects = (!self.effects.is_empty())
            .then(|| format!("from the environment: {}", self.effects.join(" ")));
        effects.into_iter().chain(self.remarks).collect()
    }

    /// The first of these variables that says something.
    fn first(&mut self, names: &[&'static str]) -> Option<(&'static str, String)> {
        let found = names.iter().find_map(|name| {
            let value = (self.variable)(name)?;
            (!value.is_empty()).then_some((*name, value))
        })?;
        self.effects.push(format!("{}={}", found.0, found.1));
        Some(found)
    }

    /// Its value, as `read` takes it.
    fn value<T>(
        &mut self,
        names: &[&'static str],
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Refusal> {
        let Some((name, text)) = self.first(names) else {
            return Ok(None);
        };
        let refuse = |why| Refusal::usage(format!("the variable {name}={text}: {why}"));
        read(&text).map(Some).map_err(refuse)
    }

    fn number(&mut self, name: &'static str, range: (u64, u64)) -> Result<Option<u64>, Refusal> {
        self.value(&[name], |text| parse::whole(text, range))
    }

    /// Time that an RPC may take.
    pub(crate) fn timeout(&mut self) -> Result<Option<Nanos>, Refusal> {
        Ok(self.number("CRT_TIMEOUT", (1, 3600))?.map(Nanos::from_secs))
    }

    /// Way in which threads wait.
    pub(crate) fn poll(&mut self) -> Result<Option<RpcPoll>, Refusal> {
        let busy = (self.variable)("D_PROGRESS_BUSY");
        if busy.is_some_and(|value| !["", "0", "no", "false"].contains(&&*value)) {
            let _ = self.first(&["D_PROGRESS_BUSY"]);
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

    /// Contexts: threads of who asks, tags of who answers.
    pub(crate) fn contexts(&mut self) -> Result<Option<u32>, Refusal> {
        let contexts = self.number("CRT_CTX_NUM", (1, MOST_CONTEXTS))?;
        Ok(contexts.and_then(|n| u32::try_from(n).ok()))
    }

    /// Transport, as the beginning of a URI.
    pub(crate) fn transport(&mut self) -> Result<Option<String>, Refusal> {
        self.value(&["D_PROVIDER", "CRT_PHY_ADDR_STR"], values::transport)
    }

    /// The name of a network interface.
    pub(crate) fn interface(&mut self) -> Option<String> {
        let found = self.first(&["D_INTERFACE", "OFI_INTERFACE"]);
        found.map(|(_, name)| name)
    }

    /// The domain of a fabric.
    pub(crate) fn domain(&mut self) -> Option<String> {
        self.first(&["D_DOMAIN", "OFI_DOMAIN"])
            .map(|(_, name)| name)
    }

    /// The port that a server listens at.
    pub(crate) fn port(&mut self) -> Result<Option<u64>, Refusal> {
        let range = (0, u16::MAX.into());
        self.value(&["D_PORT", "OFI_PORT"], |text| parse::whole(text, range))
    }

    /// Which addresses of servers are used.
    fn addresses(&mut self) -> Result<RpcAddresses, Refusal> {
        let known = self.value(&["D_ADDR_FORMAT"], |text| match text {
            "unspec" | "native" => Ok(RpcAddresses::Any),
            "ipv4" => Ok(RpcAddresses::Ipv4),
            "ipv6" => Ok(RpcAddresses::Ipv6),
            _ => Err("it takes unspec, ipv4, ipv6 or native".to_owned()),
        })?;
        Ok(known.unwrap_or_default())
    }

    /// RPCs at once from one context to one rank.
    fn credits(&mut self) -> Result<u32, Refusal> {
        let credits = self.number("CRT_CREDIT_EP_CTX", (0, u64::MAX))?;
        let taken = credits.map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX));
        if taken > MOST_CREDITS {
            let remark = format!("CRT_CREDIT_EP_CTX goes up to {MOST_CREDITS}, which it is now");
            self.remarks.push(remark);
        }
        Ok(taken.min(MOST_CREDITS))
    }

    /// The log that is asked for. A mask without a file has no effect.
    pub(crate) fn log(&mut self) -> Result<Option<LogSettings>, Refusal> {
        let file = self.first(&["D_LOG_FILE"]).map(|(_, file)| file);
        let effects = self.effects.len();
        let level = self.value(&["D_LOG_MASK"], log_level)?;
        if file.is_none() {
            self.effects.truncate(effects);
        }
        Ok(file.map(|file| LogSettings {
            file,
            level: level.unwrap_or(LogLevel::Warnings),
        }))
    }

    /// Settings that options leave open: transport, interface, limits, the table.
    pub(super) fn fill(
        &mut self,
        given: &GivenFlags,
        machine: &dyn Machine,
        work: &mut RpcWorkload,
    ) -> Result<(), Refusal> {
        if work.transport.is_none() {
            work.transport = self.transport()?;
        }
        work.addresses = self.addresses()?;
        (work.interface, work.domain) = (self.interface(), self.domain());
        self.log()?;
        work.credits_per_rank = self.credits()?;
        let quota = self.number("D_QUOTA_RPCS", (0, u32::MAX.into()))?;
        work.quota = quota.and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let is_null = work.transport.as_deref() == Some("null");
        if work.loopback.is_none() && work.targets.is_empty() && !is_null {
            work.table = Some(self.table(given, machine, &work.group)?);
        }
        Ok(())
    }

    /// Where a server's table may be: where words or a variable say, else in the first of several that can
    /// be used.
    pub(crate) fn table_directories(&mut self, path: Option<&str>) -> Vec<TableDirectory> {
        if let Some(path) = path {
            return vec![TableDirectory {
                variable: None,
                path: path.to_owned(),
            }];
        }
        let mut all = places(self.variable, true);
        if let Some(name) = all[0].variable.filter(|name| NAMED.contains(name)) {
            let _ = self.first(&[name]);
            all.truncate(1);
        }
        all
    }

    /// The directory of the table: that of --path, else the first that has it. A table that somebody else has
    /// laid where nobody named a directory could send calls anywhere.
    fn table(
        &mut self,
        given: &GivenFlags,
        machine: &dyn Machine,
        group: &str,
    ) -> Result<String, Refusal> {
        if let Some(path) = given.text("path") {
            let refuse = |why: &str| Err(refuse("path", path, why));
            if path.len() > LONGEST_PATH {
                return refuse("it has more than 255 characters");
            }
            if machine.named_path(path) != NamedPath::Directory {
                return refuse("it is no directory");
            }
            return Ok(path.to_owned());
        }
        let has_agent = given.has("use-daos-agent-env");
        let mut first = None;
        for directory in places(self.variable, has_agent) {
            let path = directory.path;
            let table = table_file(&path, group);
            if machine.named_path(&table).is_file() {
                if !machine.is_believed(&table) {
                    let help = "help: --path names the directory whose tables you believe";
                    let why = format!("{table}: this table is another user's\n  {help}");
                    return Err(Refusal::lacks(why));
                }
                if let Some(variable) = directory.variable {
                    self.effects.push(format!("{variable}={path}"));
                }
                return Ok(path);
            }
            first.get_or_insert(path);
        }
        Ok(first.unwrap_or_else(|| EVERYBODYS.to_owned()))
    }
}

/// A directory where the table of a group may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDirectory {
    /// The variable that names it.
    pub variable: Option<&'static str>,
    /// Where it is.
    pub path: String,
}

/// Where tables are, in this order, for servers and those who look for them. `is_of_site`: with the places
/// that a site or a session has for such things.
pub(super) fn places(
    variable: &dyn Fn(&str) -> Option<String>,
    is_of_site: bool,
) -> Vec<TableDirectory> {
    let named = |name: &'static str, behind: &str| {
        let value = variable(name).filter(|value| !value.is_empty());
        value.map(|value| TableDirectory {
            variable: Some(name),
            path: format!("{value}{behind}"),
        })
    };
    let plain = |path: &str| TableDirectory {
        variable: None,
        path: path.to_owned(),
    };
    let mut all: Vec<_> = NAMED.iter().filter_map(|name| named(name, "")).collect();
    if is_of_site {
        all.extend(named("XDG_RUNTIME_DIR", "/weir"));
        all.push(plain("/run/weir"));
    }
    all.push(plain(EVERYBODYS));
    all
}

/// A file that gets what is said beside results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// The file, which is added to.
    pub file: String,
    /// Messages that it gets.
    pub level: LogLevel,
}

/// Level of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Errors.
    Errors,
    /// Warnings as well.
    Warnings,
    /// Everything.
    Notes,
}

/// The log that `D_LOG_FILE` and `D_LOG_MASK` ask for.
///
/// # Errors
/// The mask has a word that is no level.
pub fn log_settings(
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<LogSettings>, Refusal> {
    UsedVariables::new(variable).log()
}

/// Level of a log by a mask. The part behind a comma is of one part of the older program alone.
fn log_level(mask: &str) -> Result<LogLevel, String> {
    let word = mask.split(',').find(|word| !word.contains('='));
    match word.unwrap_or("WARN").to_ascii_uppercase().as_str() {
        "ERR" | "CRIT" | "ALRT" | "EMRG" => Ok(LogLevel::Errors),
        "WARN" => Ok(LogLevel::Warnings),
        "NOTE" | "INFO" | "DEBUG" | "DBUG" => Ok(LogLevel::Notes),
        _ => Err("it takes DEBUG, INFO, NOTE, WARN, ERR, CRIT, ALRT or EMRG".to_owned()),
    }
}

/// The file of a group's table.
pub(crate) fn table_file(directory: &str, group: &str) -> String {
    format!("{directory}/{group}.attach_info_tmp")
}
