//! Transports: the peer's names for them and the house's, and which one AUTO means.
//!
//! In: a name, the kernel file, whether a launcher started the program, the transports of this
//! build. Out: the record of a transport. Spec: effective bandwidth, 4.

use weir_schema::Job;
use weir_schema::catalogue::{TransportCatalogue, TransportRecord};

use super::refuse;
use crate::flags::nearest;
use crate::refusal::Refusal;

/// The peer's name for exchanges between hosts, which AUTO means where the kernel file names no type.
pub(crate) const HOSTS: &str = "CPU";

/// Known by name, in no build.
const ABSENT: &[TransportRecord] = &[
    absent("ofi", "libfabric messages"),
    absent("cuda", "device buffers"),
];

/// Names of the peer without a transport.
const WITHOUT: &[&str] = &["ACCL", "AURORA", "UNSUPPORTED"];

const fn absent(name: &'static str, summary: &'static str) -> TransportRecord {
    TransportRecord {
        name,
        peer: None,
        summary,
        settings: &[],
        methods: &[],
        transfers: &[],
        moves_data: true,
        connects_any_two: false,
        needs_launcher: false,
    }
}

/// Those of the build, then those that are known by name alone.
fn known(all: &TransportCatalogue) -> impl Iterator<Item = &TransportRecord> {
    let is_absent = |t: &&TransportRecord| all.find(t.name).is_none();
    all.records.iter().chain(ABSENT.iter().filter(is_absent))
}

/// The transport that was asked for, and a note about the choice where weir made it.
///
/// # Errors
/// A name that is unknown, or that no transport stands for.
pub(super) fn choose(
    asked: &str,
    file: Option<&str>,
    launcher: bool,
    all: &TransportCatalogue,
) -> Result<(TransportRecord, Option<String>), Refusal> {
    let word = asked.to_uppercase();
    if word == "AUTO" {
        return auto(file, launcher, all);
    }
    named(&word, launcher, all)
        .map(|transport| (transport, None))
        .ok_or_else(|| no_transport(asked, &word, all))
}

/// Chooses by a word of the kernel file's name, else by the launcher of the program.
fn auto(
    file: Option<&str>,
    launcher: bool,
    all: &TransportCatalogue,
) -> Result<(TransportRecord, Option<String>), Refusal> {
    let base = file.and_then(|f| f.rsplit('/').next()).unwrap_or_default();
    let words: Vec<String> = base.split(['_', '-', '.']).map(str::to_uppercase).collect();
    let peers = known(all).filter_map(|t| t.peer);
    let mut peers: Vec<&str> = peers.chain(WITHOUT.iter().copied()).collect();
    peers.sort_unstable();
    let hint = peers.into_iter().find(|k| words.iter().any(|w| w == k));
    let (word, why) = match hint {
        Some(hint) => (hint, format!("`{hint}` stands in the name of {base}")),
        None if launcher => (HOSTS, "an MPI launcher started this".to_owned()),
        None => (HOSTS, "no MPI launcher started this".to_owned()),
    };
    let transport = named(word, launcher, all).ok_or_else(|| no_transport(word, word, all))?;
    let note = format!("comm-type AUTO: {}, because {why}", transport.name);
    Ok((transport, Some(note)))
}

/// Finds a transport by its name or by the peer's, in capitals. Of several with one name of the peer's,
/// chooses the one for this launcher.
pub(crate) fn named(
    word: &str,
    launcher: bool,
    all: &TransportCatalogue,
) -> Option<TransportRecord> {
    let is_it = |t: &&TransportRecord| t.peer == Some(word) || t.name.eq_ignore_ascii_case(word);
    let mut found: Vec<&TransportRecord> = known(all).filter(is_it).collect();
    found.sort_by_key(|t| t.needs_launcher != launcher);
    found.first().copied().copied()
}

fn no_transport(asked: &str, word: &str, all: &TransportCatalogue) -> Refusal {
    let names: Vec<&str> = all.records.iter().map(|t| t.name).collect();
    let list = names.join(", ");
    if WITHOUT.contains(&word) {
        return Refusal::usage(format!(
            "comm-type {word} is not available in this build; it has {list}"
        ));
    }
    let there = all.records.iter().flat_map(|t| [Some(t.name), t.peer]);
    let near = nearest(&asked.to_lowercase(), there.flatten());
    let hint = near.map_or_else(String::new, |n| format!("\n  help: did you mean `{n}`?"));
    refuse(&format!(
        "Communication type could not be converted from string: {asked}; \
         --comm-type takes AUTO, {list}{hint}"
    ))
}

/// Refuses a transport that does not work here.
///
/// # Errors
/// It lacks something, which is named.
pub(super) fn ready(name: &str, all: &TransportCatalogue) -> Result<(), Refusal> {
    match lack(name, all) {
        None => Ok(()),
        Some(missing) => Err(Refusal::lacks(format!(
            "comm-type {name} is not available: {missing}\n  help: weir beff --list-comm lists what is"
        ))),
    }
}

fn lack(name: &str, all: &TransportCatalogue) -> Option<String> {
    match all.find(name) {
        Some(_) => (all.lacks)(name),
        None => Some("this build does not have it".to_owned()),
    }
}

/// The page of `--list-comm`.
pub(super) fn list(all: &TransportCatalogue) -> String {
    let mut out = String::new();
    for transport in known(all) {
        let peer = transport.peer.unwrap_or("-");
        let state = lack(transport.name, all).unwrap_or_else(|| "available".to_owned());
        push!(
            out,
            "{:9} {peer:5} {:42} {state}\n",
            transport.name,
            transport.summary
        );
    }
    out
}

/// Key of the plan's entry with the peer's name of the transport.
pub(super) const SPELLING: &str = "comm-type";

/// The peer's name of a transport, else weir's in capitals.
pub(super) fn spelling(transport: &TransportRecord) -> String {
    let name = || transport.name.to_uppercase();
    transport.peer.map_or_else(name, str::to_owned)
}

/// The peer's name of a job's transport. The door has stored it in the plan.
pub(super) fn spelling_of(job: &Job) -> String {
    let word = job.words.iter().find(|word| word.key == SPELLING);
    let value = word.and_then(|word| word.value.clone());
    value.unwrap_or_else(|| job.engine.name.to_uppercase())
}

#[cfg(test)]
mod tests {
    use weir_schema::sample::transports;

    use super::*;
    use crate::{LACKS, USAGE};

    /// Catalogue without the transports that some builds lack.
    fn few() -> TransportCatalogue {
        let mut few = transports();
        few.records.truncate(3);
        few
    }

    fn chosen(asked: &str, file: Option<&str>, launcher: bool) -> &'static str {
        let (transport, _) = choose(asked, file, launcher, &transports()).unwrap();
        transport.name
    }

    #[test]
    fn names_of_the_peer_and_of_the_house_are_understood() {
        assert_eq!(chosen("cpu", None, false), "shm");
        assert_eq!(chosen("CPU", None, true), "mpi");
        assert_eq!(chosen("IEC", None, true), "file");
        assert_eq!(chosen("Udp", None, false), "udp");
        assert_eq!(chosen("PCIE", None, false), "ocl-pcie");
        assert_eq!(chosen("tcp", None, false), "tcp");
        let spelled = |name| spelling(transports().find(name).unwrap());
        assert_eq!(["shm", "file", "tcp"].map(spelled), ["CPU", "IEC", "TCP"]);
    }

    #[test]
    fn auto_reads_words_of_the_file_name_but_not_of_its_folders() {
        assert_eq!(chosen("AUTO", None, false), "shm");
        assert_eq!(chosen("auto", None, true), "mpi");
        assert_eq!(chosen("AUTO", Some("/UDP/bin/b_IEC.aocx"), true), "file");
        assert_eq!(chosen("AUTO", Some("/UDP/bin/b.aocx"), false), "shm");
        assert_eq!(chosen("AUTO", Some("communication_CPUs.aocx"), true), "mpi");
        assert_eq!(chosen("AUTO", Some("x-UDP_CPU.bin"), false), "shm");
        let refusal = choose("AUTO", Some("k_ACCL.xclbin"), false, &few()).unwrap_err();
        assert_eq!(refusal.code, USAGE);
        assert!(
            refusal
                .message
                .contains("comm-type ACCL is not available in this build")
        );
    }

    #[test]
    fn what_is_no_transport_is_refused_with_the_nearest_one() {
        let wrong = choose("tpc", None, false, &few()).unwrap_err();
        assert!(
            wrong
                .message
                .contains("could not be converted from string: tpc"),
            "{wrong}"
        );
        assert!(wrong.message.contains("did you mean `tcp`?"), "{wrong}");
        let aurora = choose("aurora", None, false, &few()).unwrap_err();
        assert!(
            aurora.message.contains("AURORA is not available"),
            "{aurora}"
        );
        assert!(
            aurora.message.ends_with("it has mpi, shm, tcp\n"),
            "{aurora}"
        );
    }

    #[test]
    fn a_name_that_the_peer_gives_to_several_means_the_one_that_there_is() {
        let mut all = transports();
        all.records.retain(|t| t.name != "mpi");
        let chosen = |launcher| choose("CPU", None, launcher, &all).unwrap().0.name;
        assert_eq!([chosen(true), chosen(false)], ["shm", "shm"]);
        all.records.clear();
        let none = choose("AUTO", None, false, &all).unwrap_err();
        assert_eq!(none.code, USAGE);
    }

    #[test]
    fn a_transport_that_is_not_there_is_named_with_its_remedy() {
        let all = TransportCatalogue {
            lacks: |name| (name != "shm").then(|| format!("no lib{name}; install one")),
            ..few()
        };
        assert!(ready("shm", &all).is_ok());
        let refusal = ready("mpi", &all).unwrap_err();
        assert_eq!(refusal.code, LACKS);
        assert!(refusal.message.contains("no libmpi; install one"));
        let absent = ready("cuda", &all).unwrap_err();
        assert!(absent.message.contains("this build does not have it"));
        let page = list(&all);
        let states: Vec<_> = page.lines().map(|l| l.ends_with("available")).collect();
        assert_eq!(states.iter().filter(|s| **s).count(), 1, "{page}");
        assert_eq!(states.len(), all.records.len() + ABSENT.len());
    }
}
