//! Reads the request for a search from the arguments.
//!
//! In: the verb and its flags, the packet path that is searched. Out: a [`TrafficSearch`]; refusals.

use weir_schema::PacketPathWorkload;
use weir_units::Nanos;

use super::{NetworkTest, SearchWay, TrafficSearch};
use crate::axio::config::AxioConfig;
use crate::axio::traffic::{LineRate, SMALLEST_FRAME, largest_frame};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// The verbs that search.
pub(in crate::axio) const LOSS_RATES: &str = "ndr";
pub(in crate::axio) const NETWORK_TESTS: &str = "rfc2544";

/// Flags of searches, and the verbs that take them.
const OWN: [(&str, &[&str]); 9] = [
    ("search", &[LOSS_RATES, NETWORK_TESTS]),
    ("precision", &[LOSS_RATES, NETWORK_TESTS]),
    ("trial-time", &[LOSS_RATES, NETWORK_TESTS]),
    ("residual", &[LOSS_RATES, NETWORK_TESTS]),
    ("rest", &[LOSS_RATES, NETWORK_TESTS]),
    ("loss", &[LOSS_RATES]),
    ("frames", &[NETWORK_TESTS]),
    ("tests", &[NETWORK_TESTS]),
    ("repeats", &[NETWORK_TESTS]),
];
/// Flags that no search takes, and why.
const OF_RUNS: [(&str, &str); 5] = [
    ("both", "a search prints no tables"),
    ("inject-pause", "the trials of a search are alike"),
    ("force", "a search has no window"),
    ("verify", "this is what `weir axio verify` does"),
    ("print", "this is what `weir axio verify -p` does"),
];
/// Keys that a search chooses itself.
const CHOSEN: [&str; 3] = ["rate", "messages", "inflight"];

/// Default time to wait for answers after a trial: 2 s for a trial of 60 s.
pub(super) fn residual_of(trial: Nanos) -> Nanos {
    Nanos((trial.0 / 30).clamp(100_000_000, 2_000_000_000))
}

/// Default time between trials: 5 s for trials of 60 s.
pub(super) fn rest_of(trial: Nanos) -> Nanos {
    Nanos((trial.0 / 12).min(5_000_000_000))
}

/// Search that a verb and its flags ask for; `None` where the verb does not search. The packet path is not
/// known yet.
///
/// # Errors
/// Values that they do not take; flags that act with another verb alone.
pub(in crate::axio) fn of_words(
    verb: &str,
    given: &GivenFlags,
) -> Result<Option<TrafficSearch>, Refusal> {
    for (flag, verbs) in OWN {
        if given.has(flag) && !verbs.contains(&verb) {
            let verbs: Vec<String> = verbs.iter().map(|v| format!("`weir axio {v}`")).collect();
            let why = format!("--{flag} acts only with {}", verbs.join(" and "));
            return Err(Refusal::usage(why));
        }
    }
    let mut search = match verb {
        LOSS_RATES => TrafficSearch::default(),
        NETWORK_TESTS => TrafficSearch::network_tests(),
        _ => return Ok(None),
    };
    if let Some((flag, why)) = OF_RUNS.iter().find(|(flag, _)| given.has(flag)) {
        return Err(Refusal::usage(format!("--{flag}: {why}; leave it out")));
    }
    if given.is("search", "mlr") {
        search.way = SearchWay::Mlr;
    }
    search.precision = given.share("precision").unwrap_or(search.precision);
    search.loss = given.share("loss").unwrap_or(search.loss);
    if let Some(trial) = given.seconds("trial-time") {
        search.trial = trial;
        search.residual = residual_of(trial);
        if verb == NETWORK_TESTS {
            search.rest = rest_of(trial);
        }
    }
    search.residual = given.seconds("residual").unwrap_or(search.residual);
    search.rest = given.seconds("rest").unwrap_or(search.rest);
    if let Some(text) = given.text("frames") {
        search.frames = list(text, |one| one.parse().ok().filter(|n| *n >= SMALLEST_FRAME))
            .map_err(|one| {
                Refusal::usage(format!(
                    "--frames {text}: `{one}`: expected bytes with the frame check, from {SMALLEST_FRAME}"
                ))
            })?;
    }
    if let Some(text) = given.text("tests") {
        let known = NetworkTest::WORDS;
        let of = |one: &str| {
            known
                .iter()
                .find(|(word, _)| *word == one)
                .map(|(_, test)| *test)
        };
        search.tests = list(text, of).map_err(|one| {
            let all = known.map(|(word, _)| word).join(", ");
            Refusal::usage(format!("--tests {text}: `{one}`: expected {all}"))
        })?;
    }
    search.repeats = given.whole("repeats");
    Ok(Some(search))
}

impl TrafficSearch {
    /// The search over a packet path, with the rate of the line where it is known.
    ///
    /// # Errors
    /// A property of the path with which it cannot be searched.
    pub(in crate::axio) fn over(
        mut self,
        work: &PacketPathWorkload,
        line: Option<LineRate>,
    ) -> Result<Self, Refusal> {
        self.line = line;
        if work.side.is_some() {
            return Err(Refusal::usage(
                "a search begins its trials anew, which needs both sides in this program (role : loopback)",
            ));
        }
        if !work.is_answered() {
            return Err(Refusal::usage(
                "a search counts what does not come back: msg_handler Empty answers nothing (pkt_handler : Echo does)",
            ));
        }
        let most = largest_frame(work);
        if let Some(frame) = self.frames.iter().find(|frame| **frame > most) {
            return Err(Refusal::usage(format!(
                "--frames: {frame} bytes do not fit: mtu {} takes up to {most}",
                work.packet_bytes
            )));
        }
        if !self.frames.is_empty() && !work.takes_any_size() {
            return Err(Refusal::usage(
                "the messages of this msg_handler have one size (valid: T_APP, L_APP, M_APP, or pkt_handler : Echo)",
            ));
        }
        Ok(self)
    }

    /// Notes on keys of the configuration that the search overrides.
    pub(in crate::axio) fn notes(&self, config: &AxioConfig) -> Vec<String> {
        // Those of a file may be there for its runs.
        let is_word = |key: &str| config.values.get(key).is_some_and(|v| v.place.line == 0);
        let sizes = ["imix", "req_size"].into_iter();
        let sizes = sizes.filter(|key| !self.frames.is_empty() && is_word(key));
        let rates = CHOSEN.into_iter().filter(|key| config.text(key).is_some());
        let note = |key| {
            let place = config.place_of(key);
            format!("{place}: without effect: the search chooses it")
        };
        rates.chain(sizes).map(note).collect()
    }

    pub(super) fn way_word(&self) -> &'static str {
        match self.way {
            SearchWay::Binary => "binary",
            SearchWay::Mlr => "mlr",
        }
    }
}

/// Reads each part of a list; the error is the part that cannot be read.
fn list<T>(text: &str, of: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    text.split(',')
        .map(str::trim)
        .map(|one| of(one).ok_or_else(|| one.to_owned()))
        .collect()
}
