//! Transports: the peer's names for them and the house's, and which one AUTO means.
//!
//! In: a name, the kernel file, whether a launcher started the program. Out: the engine's name.
//! Spec: effective bandwidth, 4.

use super::words::refuse;
use super::{LACKS, USAGE};
use crate::flags::nearest;
use crate::refusal::Refusal;

/// One transport.
#[derive(Clone, Copy, Debug)]
pub struct Transport {
    /// The engine.
    pub name: &'static str,
    /// What the peer calls it.
    pub peer: Option<&'static str>,
    /// The way of the data.
    pub path: &'static str,
}

/// All of them, in the order of `--list-comm`.
pub const TRANSPORTS: &[Transport] = &[
    transport("mpi", Some("CPU"), "host buffers, MPI send and receive"),
    transport("shm", Some("CPU"), "rings in shared memory"),
    transport("tcp", None, "one stream per replication and direction"),
    transport("udp", Some("UDP"), "numbered datagrams, losses counted"),
    transport("file", Some("IEC"), "external channels emulated by files"),
    transport("ofi", None, "libfabric messages"),
    transport(
        "ocl-pcie",
        Some("PCIE"),
        "device, host, exchange, host, device",
    ),
    transport("cuda", None, "device buffers"),
    transport("null", None, "nothing moves: what the loop itself costs"),
];

/// Names of the peer that no transport stands for.
const WITHOUT: &[&str] = &["ACCL", "AURORA", "UNSUPPORTED"];

const fn transport(
    name: &'static str,
    peer: Option<&'static str>,
    path: &'static str,
) -> Transport {
    Transport { name, peer, path }
}

/// Whether a transport works here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// What is missing, and how to get it; nothing where it works.
    pub missing: Option<String>,
}

/// The transport that was asked for, and a note about the choice where weir made it.
///
/// # Errors
/// Names that are none, or that no transport stands for.
pub(super) fn choose(
    asked: &str,
    file: Option<&str>,
    launcher: bool,
    offer: fn(&str) -> Option<Offer>,
) -> Result<(&'static str, Option<String>), Refusal> {
    let word = asked.to_uppercase();
    if word == "AUTO" {
        return auto(file, launcher, offer);
    }
    named(&word, launcher)
        .map(|name| (name, None))
        .ok_or_else(|| no_transport(asked, &word, offer))
}

/// By a word of the kernel file's name, else by how the program was started.
fn auto(
    file: Option<&str>,
    launcher: bool,
    offer: fn(&str) -> Option<Offer>,
) -> Result<(&'static str, Option<String>), Refusal> {
    let base = file.and_then(|f| f.rsplit('/').next()).unwrap_or_default();
    let words: Vec<String> = base.split(['_', '-', '.']).map(str::to_uppercase).collect();
    let peers = TRANSPORTS.iter().filter_map(|t| t.peer);
    let mut known: Vec<&str> = peers.chain(WITHOUT.iter().copied()).collect();
    known.sort_unstable();
    let hint = known.into_iter().find(|k| words.iter().any(|w| w == k));
    let (name, why) = match hint {
        Some(hint) => (
            named(hint, launcher).ok_or_else(|| no_transport(hint, hint, offer))?,
            format!("`{hint}` stands in the name of {base}"),
        ),
        None if launcher => ("mpi", "an MPI launcher started this".to_owned()),
        None => ("shm", "no MPI launcher started this".to_owned()),
    };
    Ok((name, Some(format!("comm-type AUTO: {name}, because {why}"))))
}

fn named(word: &str, launcher: bool) -> Option<&'static str> {
    if word == "CPU" {
        return Some(if launcher { "mpi" } else { "shm" });
    }
    let is_it = |t: &&Transport| t.peer == Some(word) || t.name.eq_ignore_ascii_case(word);
    TRANSPORTS.iter().find(is_it).map(|t| t.name)
}

fn no_transport(asked: &str, word: &str, offer: fn(&str) -> Option<Offer>) -> Refusal {
    let names = TRANSPORTS.iter().map(|t| t.name);
    let names: Vec<&str> = names.filter(|name| offer(name).is_some()).collect();
    let list = names.join(", ");
    if WITHOUT.contains(&word) {
        let message =
            format!("error: comm-type {word} is not available in this build; it has {list}");
        return Refusal::new(USAGE, message);
    }
    let known = TRANSPORTS.iter().flat_map(|t| [Some(t.name), t.peer]);
    let near = nearest(&asked.to_lowercase(), known.flatten());
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
pub(super) fn ready(name: &str, offer: fn(&str) -> Option<Offer>) -> Result<(), Refusal> {
    match lack(name, offer) {
        None => Ok(()),
        Some(missing) => Err(Refusal::new(
            LACKS,
            format!(
                "error: comm-type {name} is not available: {missing}\n  help: weir beff --list-comm lists what is"
            ),
        )),
    }
}

fn lack(name: &str, offer: fn(&str) -> Option<Offer>) -> Option<String> {
    match offer(name) {
        Some(offer) => offer.missing,
        None => Some("this build does not have it".to_owned()),
    }
}

/// The page of `--list-comm`.
pub(super) fn list(offer: fn(&str) -> Option<Offer>) -> String {
    let mut out = String::new();
    for transport in TRANSPORTS {
        let peer = transport.peer.unwrap_or("-");
        let state = lack(transport.name, offer).unwrap_or_else(|| "available".to_owned());
        push!(
            out,
            "{:9} {peer:5} {:42} {state}\n",
            transport.name,
            transport.path
        );
    }
    out
}

/// What the peer calls this engine, else its name in capitals.
pub(super) fn spelling(engine: &str) -> String {
    let known = TRANSPORTS.iter().find(|t| t.name == engine);
    known
        .and_then(|t| t.peer)
        .map_or_else(|| engine.to_uppercase(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not what every build has.
    fn few(name: &str) -> Option<Offer> {
        ["mpi", "shm", "tcp"].contains(&name).then(Offer::default)
    }

    fn chosen(asked: &str, file: Option<&str>, launcher: bool) -> &'static str {
        choose(asked, file, launcher, few).unwrap().0
    }

    #[test]
    fn names_of_the_peer_and_of_the_house_are_understood() {
        assert_eq!(chosen("cpu", None, false), "shm");
        assert_eq!(chosen("CPU", None, true), "mpi");
        assert_eq!(chosen("IEC", None, true), "file");
        assert_eq!(chosen("Udp", None, false), "udp");
        assert_eq!(chosen("PCIE", None, false), "ocl-pcie");
        assert_eq!(chosen("tcp", None, false), "tcp");
        assert_eq!(spelling("shm"), "CPU");
        assert_eq!(spelling("file"), "IEC");
        assert_eq!(spelling("tcp"), "TCP");
    }

    #[test]
    fn auto_reads_words_of_the_file_name_but_not_of_its_folders() {
        assert_eq!(chosen("AUTO", None, false), "shm");
        assert_eq!(chosen("auto", None, true), "mpi");
        assert_eq!(chosen("AUTO", Some("/UDP/bin/b_IEC.aocx"), true), "file");
        assert_eq!(chosen("AUTO", Some("/UDP/bin/b.aocx"), false), "shm");
        assert_eq!(chosen("AUTO", Some("communication_CPUs.aocx"), true), "mpi");
        assert_eq!(chosen("AUTO", Some("x-UDP_CPU.bin"), false), "shm");
        let refusal = choose("AUTO", Some("k_ACCL.xclbin"), false, few).unwrap_err();
        assert_eq!(refusal.code, USAGE);
        assert!(
            refusal
                .message
                .contains("comm-type ACCL is not available in this build")
        );
    }

    #[test]
    fn what_is_no_transport_is_refused_with_the_nearest_one() {
        let wrong = choose("tpc", None, false, few).unwrap_err();
        assert!(
            wrong
                .message
                .contains("could not be converted from string: tpc"),
            "{wrong}"
        );
        assert!(wrong.message.contains("did you mean `tcp`?"), "{wrong}");
        let aurora = choose("aurora", None, false, few).unwrap_err();
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
    fn a_transport_that_is_not_there_is_named_with_its_remedy() {
        let offer = |name: &str| match name {
            "shm" => Some(Offer::default()),
            "mpi" => Some(Offer {
                missing: Some("no libmpi; install one".to_owned()),
            }),
            _ => None,
        };
        assert!(ready("shm", offer).is_ok());
        let refusal = ready("mpi", offer).unwrap_err();
        assert_eq!(refusal.code, LACKS);
        assert!(refusal.message.contains("no libmpi; install one"));
        assert!(
            ready("cuda", offer)
                .unwrap_err()
                .message
                .contains("this build")
        );
        let page = list(offer);
        let states: Vec<_> = page.lines().map(|l| l.ends_with("available")).collect();
        assert_eq!(states.iter().filter(|s| **s).count(), 1, "{page}");
        assert_eq!(states.len(), TRANSPORTS.len());
    }
}
