//! Values with a small grammar of their own: warm-ups, polling, addresses, names of groups.
//!
//! In: the text of a value. Out: what it means, or what was expected.

use weir_schema::{RpcPoll, RpcWarmup};
use weir_units::{Nanos, parse};

use crate::flags::Flag;
use crate::takes::Takes;

/// Largest product of repetitions and RPCs at once.
pub(super) const MOST: i64 = 1 << 30;
/// The name of a group.
pub(crate) const GROUP: Takes = Takes::Grammar(|text| group_name(text).map(drop));
/// Polling, of masters and of servers.
pub(crate) const POLL: Takes = Takes::Grammar(|text| poll(text).map(drop));

/// The peer's reason against a value. An alignment out of range it leaves alone, with a warning.
pub(super) fn peers_reason(flag: &Flag, value: &str, why: String) -> Option<String> {
    match flag.name {
        "align" => value.parse::<i64>().is_err().then_some(why),
        "group-name" => Some(format!(
            "--group-name argument not specified or is invalid: {why}"
        )),
        name @ ("repetitions-per-size" | "max-inflight-rpcs") => {
            let is_plain = value.starts_with(|c: char| c.is_ascii_digit());
            let number = value.parse::<u128>().ok().filter(|_| is_plain);
            let out_of_range = number.map(|number| out_of_range(name, number));
            Some(out_of_range.unwrap_or_else(|| "it takes a whole number".to_owned()))
        }
        _ => Some(why),
    }
}

/// The peer's sentence about a number that it could not count with.
pub(super) fn out_of_range(name: &str, number: u128) -> String {
    format!("Invalid --{name} argument: Expected value in range (0:{MOST}], got {number}")
}

/// A number of RPCs, or a time with its unit.
pub(super) fn warmup(text: &str) -> Result<RpcWarmup, String> {
    let count =
        parse::whole(text, (0, MOST.unsigned_abs())).map(|count| RpcWarmup::Requests { count });
    let time = || parse::time_with_unit(text).map(|for_ns| RpcWarmup::Time { for_ns });
    let wrong = || format!("it takes a number of RPCs up to {MOST}, or a time as 500ms");
    count.ok().or_else(time).ok_or_else(wrong)
}

/// `auto`, `busy`, `block` or `spin:US`.
pub(crate) fn poll(text: &str) -> Result<RpcPoll, String> {
    match (text, text.strip_prefix("spin:")) {
        ("auto", _) => Ok(RpcPoll::Automatic),
        ("busy", _) => Ok(RpcPoll::Busy),
        ("block", _) => Ok(RpcPoll::Block),
        (_, Some(us)) => {
            let us = us.parse::<u64>().ok().filter(|us| *us <= 60_000_000);
            let for_ns = us.map(Nanos::from_micros);
            let wrong = || "spin takes whole microseconds up to 60000000, as spin:10000".to_owned();
            for_ns
                .map(|for_ns| RpcPoll::Spin { for_ns })
                .ok_or_else(wrong)
        }
        _ => Err("it takes auto, busy, block or spin:US".to_owned()),
    }
}

/// URIs of servers, with commas between them.
pub(crate) fn server_uris(text: &str) -> Result<Vec<String>, String> {
    let known = |text: &str| uri(text, true).and_then(|uri| reachable(&uri).map(|()| uri));
    text.split(',').map(known).collect()
}

/// URIs to listen at, which need no port, with commas between them.
pub(crate) fn listen_uris(text: &str) -> Result<Vec<String>, String> {
    text.split(',').map(|text| uri(text, false)).collect()
}

/// `tcp://host:port`, `shm://`: a scheme, and no blanks.
fn uri(text: &str, needs_port: bool) -> Result<String, String> {
    let text = text.trim();
    let wrong = |why: &str| Err(format!("`{text}`: {why}, as in tcp://host:7000"));
    let Some((scheme, rest)) = text.split_once("://") else {
        return match text {
            "shm" => Err(format!("`{text}`: write {text}://")),
            _ => wrong("it needs a transport before ://"),
        };
    };
    transport(scheme).map_err(|why| format!("`{text}`: {why}"))?;
    if rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return wrong("it has blanks");
    }
    if scheme == "shm" {
        return Ok(text.to_owned());
    }
    // `[::1]` has none.
    let port = rest.rsplit_once(':').filter(|_| !rest.ends_with(']'));
    match port {
        Some(("", _)) => wrong("it needs a host before the port"),
        None if needs_port => wrong("it needs a port"),
        Some((_, port)) if port.parse::<u16>().is_err() || port.starts_with('+') => {
            let port = if port.is_empty() { "nothing" } else { port };
            wrong(&format!(
                "a port is a number up to {}, not {port}",
                u16::MAX
            ))
        }
        _ => Ok(text.to_owned()),
    }
}

/// A server's URI says which socket or port of it.
fn reachable(uri: &str) -> Result<(), String> {
    let (scheme, place) = uri.split_once("://").unwrap_or(("", uri));
    if scheme == "shm" && place.is_empty() {
        return Err(format!(
            "`{uri}`: it needs the socket of a server, as in shm:///tmp/daos_server-0-4711.sock"
        ));
    }
    let is_any = |(_, port): (&str, &str)| port.parse() == Ok(0_u16);
    if scheme != "shm" && place.rsplit_once(':').is_some_and(is_any) {
        return Err(format!(
            "`{uri}`: nobody is reached at port 0; the line READY of a server has its port"
        ));
    }
    Ok(())
}

/// Transports that reach a server, for messages.
const TRANSPORTS: &str = "tcp, shm or ofi+PROVIDER";

/// The beginning of a URI: `tcp`, `shm`, `ofi+PROVIDER`.
pub(crate) fn transport(text: &str) -> Result<String, String> {
    let text = text.strip_suffix("://").unwrap_or(text);
    let known = |c: char| c.is_ascii_alphanumeric() || ";_+-".contains(c);
    let is_provider = |word: &str| !word.is_empty() && word.chars().all(known);
    let provider = text.strip_prefix("ofi+");
    if ["tcp", "shm"].contains(&text) || provider.is_some_and(is_provider) {
        return Ok(text.to_owned());
    }
    Err(match text {
        "null" => format!("null reaches nobody; it takes {TRANSPORTS}"),
        "tcp+uring" => "this build has no tcp+uring; tcp is the nearest".to_owned(),
        ucx if ucx.starts_with("ucx+") => {
            "this build has no UCX; ofi+PROVIDER is the nearest, as ofi+verbs;ofi_rxm".to_owned()
        }
        _ => format!("it takes {TRANSPORTS}"),
    })
}

/// The same, or `null`, which calls nobody.
pub(super) fn transport_or_null(text: &str) -> Result<String, String> {
    match text.strip_suffix("://").unwrap_or(text) {
        "null" => Ok("null".to_owned()),
        text => transport(text).map_err(|why| format!("{why}; or null, which calls nobody")),
    }
}

/// The name of a group, which becomes part of a file's name.
fn group_name(text: &str) -> Result<String, String> {
    const LONGEST: usize = 64;
    let odd = |c: &char| !(*c == ' ' || c.is_ascii_graphic()) || ";\"`'\\/".contains(*c);
    if text.is_empty() || text.len() > LONGEST {
        return Err(format!("a name has 1 to {LONGEST} characters"));
    }
    if let Some((at, c)) = text.chars().enumerate().find(|(_, c)| odd(c)) {
        let place = at + 1;
        return Err(format!("a name has no {c:?} (character {place})"));
    }
    if text.contains("..") {
        return Err("a name has no `..`".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_a_count_or_a_time() {
        assert_eq!(warmup("0"), Ok(RpcWarmup::Requests { count: 0 }));
        assert_eq!(
            warmup("1s"),
            Ok(RpcWarmup::Time {
                for_ns: Nanos::SECOND
            })
        );
        assert!(warmup("1.5").is_err() && warmup("x").is_err());
    }

    #[test]
    fn a_name_of_a_group_is_no_path() {
        for name in ["daos_server", "a b", "x.y", &"a".repeat(64)] {
            assert_eq!(group_name(name).as_deref(), Ok(name));
        }
        for name in [
            "",
            "a/b",
            "..",
            "a..b",
            "a;b",
            "a'b",
            "a\\b",
            "ä",
            "a\nb",
            &"a".repeat(65),
        ] {
            assert!(group_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_uri_has_a_transport_that_there_is_and_a_port_that_can_be() {
        let list = "tcp://h1:7000, ofi+verbs;ofi_rxm://ib0,shm://,tcp://[::1]";
        assert_eq!(listen_uris(list).map(|all| all.len()), Ok(4));
        let servers = "tcp://[::1]:7,shm:///run/0.sock";
        assert_eq!(server_uris(servers).map(|all| all.len()), Ok(2));
        for (text, why) in [
            ("", "a transport before ://"),
            ("h1:7000", "a transport before ://"),
            ("udp://h:1", "it takes tcp, shm or ofi+PROVIDER"),
            ("shm", "write shm://"),
            ("tcp+uring://h:1", "tcp is the nearest"),
            ("ucx+dc://h:1", "ofi+PROVIDER is the nearest"),
            ("null://h:1", "null reaches nobody"),
            ("tcp://a b:1", "it has blanks"),
            ("ofi+://x:1", "it takes tcp, shm or"),
            ("tcp://h:1,", "a transport before ://"),
            ("tcp://h:99999", "up to 65535, not 99999"),
            ("tcp://h:", "up to 65535, not nothing"),
            ("tcp://h:x", "up to 65535, not x"),
            ("tcp://:7", "it needs a host before the port"),
        ] {
            for refused in [server_uris(text), listen_uris(text)] {
                let refused = refused.unwrap_err();
                assert!(refused.contains(why), "{text}: {refused}");
            }
        }
        assert!(
            server_uris("tcp://h")
                .unwrap_err()
                .contains("it needs a port")
        );
        assert!(server_uris("tcp://[::1]").is_err());
        for (text, why) in [
            ("tcp://h:0", "nobody is reached at port 0"),
            ("shm://", "it needs the socket of a server"),
        ] {
            let refused = server_uris(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
            assert!(listen_uris(text).is_ok(), "{text}");
        }
        assert_eq!(transport_or_null("null://").as_deref(), Ok("null"));
        assert!(
            transport_or_null("x")
                .unwrap_err()
                .ends_with("or null, which calls nobody")
        );
    }
}
