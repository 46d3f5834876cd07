//! `weir tune -c FILE` without a command: a packet path is tuned, by the keys of its configuration.
//!
//! In: the arguments of the search, the configuration. Out: the command, the keys that vary, limits
//! that other figures have to keep. Not here: trials, figures.

use weir_diagnose::ConfigText;
use weir_diagnose::tune::{TuneDimension, TuneTemplate};

use super::path_layout::{PathLayout, layouts};
use super::{CONFIG, Tune};
use crate::axio::window::{default_window_of, is_answered_by};
use crate::refusal::Refusal;

/// Words of `--objective`, each with the figure of `weir axio` that it means.
const OBJECTIVES: [(&str, &str); 3] = [
    ("mpps", "packet rate"),
    ("p99", "message p99"),
    ("mpps-per-core", "packet rate per core"),
];

/// Words of `--objective`.
pub(super) const OBJECTIVE_WORDS: &[&str] = &["mpps", "p99", "mpps-per-core"];

/// Values of batches.
const BATCHES: &str = "1,4,8,16,32,64,128,256,512";
/// The key of the window.
const WINDOW: &str = "inflight";
/// A batch at which layouts are compared.
const COMPARED_BATCH: &str = "32";
/// Batches on the way out, one after the other: each stage gathers a batch and hands it over.
const JOINT: [&str; 3] = ["kAppTxMsgBatchSize", "kDispTxBatchSize", "kNICTxPostSize"];
/// Keys that vary, with their values and the default.
const VARIED: [(&str, &str, &str); 9] = [
    ("kAppTxMsgBatchSize", BATCHES, "32"),
    ("kAppRxMsgBatchSize", BATCHES, "32"),
    ("kDispTxBatchSize", BATCHES, "32"),
    ("kDispRxBatchSize", BATCHES, "32"),
    ("kNICTxPostSize", BATCHES, "32"),
    ("kNICRxPostSize", BATCHES, "32"),
    (WINDOW, "64..8192*2", "1024"),
    ("ring", "512..16384*2", "4096"),
    ("nic_ring", "64..8192*2", "2048"),
];

/// The keys that may hold a path back, by the rule of `weir diagnose` that holds.
const KEYS_OF_RULES: &[(&str, &[&str])] = &[
    ("D4", &["inflight", "kAppTxMsgBatchSize"]),
    ("D5", &["inflight"]),
    ("D6", &["kAppTxMsgBatchSize"]),
    ("D7", &["kNICTxPostSize", "nic_ring", "ring"]),
    ("D8", &["kDispTxBatchSize", "kNICTxPostSize"]),
    ("D9", &["kDispRxBatchSize"]),
    ("D10", &["kDispRxBatchSize", "kNICRxPostSize"]),
    ("D11", &["ring", "inflight"]),
    ("D12", &["kAppRxMsgBatchSize"]),
    ("D13", &["inflight", "ring"]),
    ("D14", &["ring", "kDispRxBatchSize"]),
];

/// The same by the critical stage, where no rule holds.
const KEYS_OF_STAGES: &[(&str, &str)] = &[
    ("app_tx", "kAppTxMsgBatchSize"),
    ("app_rx", "kAppRxMsgBatchSize"),
    ("disp_tx", "kDispTxBatchSize"),
    ("disp_rx", "kDispRxBatchSize"),
    ("nic_tx", "kNICTxPostSize"),
];

/// The keys to change, the likeliest first, by the rule that is the verdict and by the critical stage.
pub fn keys_of_verdict(rule: Option<&str>, stage: Option<&str>) -> Vec<&'static str> {
    let of_rule = KEYS_OF_RULES.iter().filter(|(id, _)| Some(*id) == rule);
    let of_rule = of_rule.flat_map(|(_, keys)| keys.iter().copied());
    let of_stage = KEYS_OF_STAGES
        .iter()
        .filter(|(name, _)| Some(*name) == stage);
    of_rule.chain(of_stage.map(|(_, key)| *key)).collect()
}

/// The figure of an objective.
pub(super) fn figure(objective: &str) -> &'static str {
    let known = OBJECTIVES.iter().find(|(word, _)| *word == objective);
    known.map_or(OBJECTIVES[0].1, |(_, figure)| figure)
}

/// Command that measures a packet path, before the flag of its role.
pub(super) fn command() -> Vec<String> {
    ["axio", "-c", "{config}"].map(str::to_owned).to_vec()
}

impl Tune {
    /// Makes the search over a packet path, with its command and its keys. Keys that the configuration leaves
    /// out get a line with their default.
    ///
    /// # Errors
    /// The configuration has a key twice.
    pub fn of_path(
        mut self,
        config: &mut ConfigText,
        variable: Option<&str>,
    ) -> Result<Self, Refusal> {
        if !self.is_path {
            return Ok(self);
        }
        let mut command = std::mem::take(&mut self.command);
        if command.is_empty() {
            command = self::command();
        }
        let mut flags = command.iter().filter_map(|word| word.strip_prefix("--"));
        let flag = flags.find(|flag| ["server", "client", "loopback"].contains(flag));
        let role = flag.map(str::to_owned).or_else(|| role_of(config));
        let role = role.or_else(|| variable.map(str::to_owned));
        self.refuse_server(config, role.as_deref())?;
        if let Some(server) = &self.server {
            self.refuse_other_role(config)?;
            command.push("--client".to_owned());
            let token = server.token_file.as_ref();
            command.extend(token.map(|file| format!("--token-file={file}")));
        } else if role.is_none() {
            command.push("--loopback".to_owned());
        }
        // The server of a command is laid out alike.
        let is_loopback = self.server.is_some() || role.is_none_or(|role| role == "loopback");
        let template = TuneTemplate::read(&command, &[CONFIG]);
        self.template = template.map_err(|why| Refusal::usage(why.to_string()))?;
        self.command = command;
        self.add_layouts(config, is_loopback)?;
        let path = self.config.as_deref().unwrap_or_default();
        let refused = |why: &dyn std::fmt::Display| Refusal::usage(format!("{path}:{why}"));
        if !is_answered_by(path, &config.text()) {
            return Err(refused(
                &" a search compares what comes back: msg_handler Empty answers nothing (pkt_handler : Echo does)",
            ));
        }
        for (key, values, default) in VARIED {
            if self.has_own_keys && self.vary.iter().all(|d| d.name != key) {
                continue;
            }
            if config.value(key).map_err(|why| refused(&why))?.is_none() {
                if config.has_sections() {
                    continue;
                }
                if key == WINDOW {
                    // It depends on the messages.
                    let window = default_window_of(path, &config.text());
                    config.add(key, &window.to_string());
                } else {
                    config.add(key, default);
                }
            }
            if self.has_own_keys {
                continue;
            }
            let mut dimension = TuneDimension::read(key, values).map_err(|why| refused(&why))?;
            dimension.compared_at = (values == BATCHES).then(|| COMPARED_BATCH.to_owned());
            dimension.is_joint = JOINT.contains(&key);
            self.vary.push(dimension);
        }
        Ok(self)
    }
}

impl Tune {
    /// Refuses a role other than the client's beside a command for the server.
    fn refuse_other_role(&self, config: &ConfigText) -> Result<(), Refusal> {
        match role_of(config) {
            Some(role) if role != "client" => {
                let path = self.config.as_deref().unwrap_or_default();
                Err(Refusal::usage(format!(
                    "{path}: role: `{role}`: with --server-command this side is the client\n  help: `role : client`, or no role"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses the side that makes no messages: it would wait for a client that nobody starts.
    fn refuse_server(&self, config: &ConfigText, role: Option<&str>) -> Result<(), Refusal> {
        let workloads = config.all("workload");
        let is_silent = |text: &&str| !text.to_ascii_lowercase().contains("txapplication");
        let is_receiver = !workloads.is_empty() && workloads.iter().all(is_silent);
        if self.server.is_none() && (role == Some("server") || is_receiver) {
            let path = self.config.as_deref().unwrap_or_default();
            return Err(Refusal::usage(format!(
                "{path}: this is a server's side, which makes no messages\n  help: tune from the client: -c with its \
                 configuration, and --server-command --server-config={path}"
            )));
        }
        Ok(())
    }

    /// Varies layouts on request, and in a loopback without named keys, which lays out both sides itself.
    fn add_layouts(&mut self, config: &ConfigText, is_loopback: bool) -> Result<(), Refusal> {
        let is_asked = self.has_layouts;
        self.has_layouts = false;
        if !is_asked && (self.has_own_keys || self.server.is_some() || !is_loopback) {
            return Ok(());
        }
        let found = match layouts(config, is_loopback) {
            Ok(found) => others_than_given(found),
            Err(_) if !is_asked => return Ok(()),
            Err(why) => return Err(Refusal::usage(format!("--layouts: {why}"))),
        };
        if found.len() < 2 {
            if !is_asked {
                return Ok(());
            }
            return Err(Refusal::usage(
                "--layouts: its workspaces have no other layout",
            ));
        }
        let names: Vec<&str> = found.iter().map(|of| of.name.as_str()).collect();
        let dimension = TuneDimension::read(LAYOUT, &names.join(","));
        let dimension = dimension.map_err(|why| Refusal::usage(format!("--layouts: {why}")))?;
        self.vary.push(dimension);
        self.layouts = found;
        self.has_layouts = true;
        Ok(())
    }
}

/// The given layout and those that are laid out otherwise.
fn others_than_given(mut found: Vec<PathLayout>) -> Vec<PathLayout> {
    if let Some(given) = found.first().cloned() {
        let mut is_first = true;
        found.retain(|one| std::mem::take(&mut is_first) || !one.is_laid_out_as(&given));
    }
    found
}

fn role_of(config: &ConfigText) -> Option<String> {
    let role = config.value("role").ok().flatten();
    role.map(|(role, _)| role.to_owned())
}

/// A limit of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneLimit {
    /// Figure as `--metric` takes it.
    pub figure: String,
    /// Limit as written.
    pub text: String,
    /// Limit in the figure's unit: seconds, a share, a count.
    pub value: f64,
}

/// The dimension of layouts.
pub const LAYOUT: &str = "layout";

/// Suffixes of limits and their factors; longer ones first.
const SUFFIXES: [(&str, f64); 10] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("%", 0.01),
    ("K", 1e3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
];

/// `p99=50us,loss=0`.
pub(super) fn limits(text: &str) -> Result<Vec<TuneLimit>, Refusal> {
    text.split(',').map(limit).collect()
}

fn limit(text: &str) -> Result<TuneLimit, Refusal> {
    let wrong = || {
        Refusal::usage(format!(
            "--slo {text}: expected FIGURE=LIMIT, as p99=50us or loss=0"
        ))
    };
    let (figure, limit) = text.split_once('=').ok_or_else(wrong)?;
    let (figure, limit) = (figure.trim(), limit.trim());
    let suffix = SUFFIXES.iter().find(|(suffix, _)| limit.ends_with(suffix));
    let (suffix, factor) = suffix.copied().unwrap_or(("", 1.0));
    let number = limit.strip_suffix(suffix).unwrap_or(limit).trim();
    let number = number.parse::<f64>().ok().map(|number| number * factor);
    let number = number.filter(|number| number.is_finite() && *number >= 0.0);
    match number {
        Some(value) if !figure.is_empty() => Ok(TuneLimit {
            figure: figure.to_owned(),
            text: limit.to_owned(),
            value,
        }),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::{Action, read};

    fn asked(text: &str) -> Tune {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        match read(&words) {
            Ok(Action::Tune(asked)) => *asked,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_configuration_alone_is_a_packet_path_with_its_keys() {
        let tune = asked("-c c.conf --objective p99");
        assert!(tune.is_path);
        assert_eq!(tune.metric, "message p99");
        let mut config = ConfigText::read("kAppTxMsgBatchSize : 3 # few\nnuma : 0").unwrap();
        let tune = tune.of_path(&mut config, None).unwrap();
        assert_eq!(tune.command, ["axio", "-c", "{config}", "--loopback"]);
        assert_eq!(tune.vary.len(), 9);
        let joint = tune.vary.iter().filter(|d| d.is_joint).count();
        let compared = tune.vary.iter().filter(|d| d.compared_at.is_some());
        assert_eq!((joint, compared.count()), (3, 6));
        let text = config.text();
        assert!(text.starts_with("kAppTxMsgBatchSize : 3 # few\nnuma : 0\n"));
        assert!(
            text.ends_with("inflight : 1024\nring : 4096\nnic_ring : 2048"),
            "{text}"
        );
        let mut with_role = ConfigText::read("role : client\n").unwrap();
        let tune = asked("-c c --vary ring=64,128").of_path(&mut with_role, None);
        let tune = tune.unwrap();
        assert_eq!((tune.command.len(), tune.vary.len()), (3, 1));
        assert_eq!(tune.metric, "packet rate");
        let line = "workload : 0 : TxApplication : 1 : 0 : 1\n";
        let config = ConfigText::read(line).unwrap();
        let of = |words: &str| {
            let tune = asked(words).of_path(&mut config.clone(), None);
            let vary = tune.unwrap().vary.into_iter();
            vary.map(|d| d.values.join(" ")).collect::<Vec<String>>()
        };
        // A workspace that dispatches alone is what `given` is.
        let all = "given combined combined-of-1";
        assert_eq!((of("-c c")[0].as_str(), of("-c c").len()), (all, 10));
        assert_eq!(of("-c c --layouts --vary ring=64,128").len(), 2);
        assert_eq!(of("-c c --vary ring=64,128").len(), 1);
        // A key that varies gets a line with its default.
        let mut added = config.clone();
        let tune = asked("-c c --vary ring=64,128").of_path(&mut added, None);
        assert!(
            tune.is_ok() && added.text().contains("\nring : 4096"),
            "{}",
            added.text()
        );
        let server = "-c c --server-command x --server-config s";
        assert_eq!(of(server).len(), 9);
        assert_eq!(of(&format!("{server} --layouts"))[0], all);
        let alone = "workload : 0 : TxApplication : 0 : 0 : 0\n";
        let mut alone = ConfigText::read(alone).unwrap();
        let none = asked("-c c --layouts").of_path(&mut alone, None);
        assert!(none.unwrap_err().message.contains("no other layout"));
        let none = asked("-c c").of_path(&mut alone, None).unwrap();
        assert!(!none.has_layouts && none.vary.len() == 9);
    }

    #[test]
    fn a_search_begins_with_the_window_that_the_messages_have() {
        for (handler, window) in [("FS_READ", 64), ("FS_WRITE", 256), ("T_APP", 1024)] {
            let text = format!(
                "msg_handler : {handler}\nkAppCoreNum : 1\nkDispQueueNum : 1\n\
                 workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0\n"
            );
            let mut config = ConfigText::read(&text).unwrap();
            asked("-c c").of_path(&mut config, None).unwrap();
            let found = config.value("inflight").unwrap().unwrap();
            assert_eq!(found.0, window.to_string(), "{handler}");
        }
    }

    #[test]
    fn limits_have_units_and_a_figure() {
        let of = |text: &str| limits(text).map(|all| all.into_iter().map(|l| l.value).collect());
        assert_eq!(of("p99=50us,loss=0"), Ok(vec![50.0 * 1e-6, 0.0]));
        assert_eq!(of("loss=0.5%"), Ok(vec![0.5 * 0.01]));
        assert_eq!(of("packet rate=2M"), Ok(vec![2e6]));
        for text in ["p99", "=1", "p99=fast", "p99=-1us", "p99=1us,"] {
            let why = of(text).unwrap_err().message;
            assert!(why.contains("--slo"), "{text}: {why}");
        }
    }

    #[test]
    fn verdicts_name_keys_that_vary() {
        let known = |key: &&str| VARIED.iter().any(|(name, _, _)| name == key);
        for (rule, keys) in KEYS_OF_RULES {
            assert!(keys.iter().all(&known), "{rule}");
            assert_eq!(keys_of_verdict(Some(rule), None), *keys);
        }
        let both = keys_of_verdict(Some("D9"), Some("disp_rx"));
        assert_eq!(both, ["kDispRxBatchSize"; 2]);
        assert!(KEYS_OF_STAGES.iter().all(|(_, key)| known(key)));
        assert!(keys_of_verdict(None, None).is_empty());
        assert_eq!(OBJECTIVE_WORDS, OBJECTIVES.map(|(word, _)| word));
    }
}
