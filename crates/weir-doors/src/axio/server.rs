//! Flags of two runs that meet: who may call the server, and what makes it slower on purpose.
//!
//! In: flags. Out: the side of a packet path. Not here: loss on purpose, which a client has.

use weir_schema::{PacketPathWorkload, PathCallers, PathSide};
use weir_units::Nanos;

use super::traffic::{AskedRate, plain_number, rate, whole};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// The longest pause.
const LONGEST: Nanos = Nanos::from_secs(3600);

/// `--token-file` and `--open-to-anyone`.
///
/// # Errors
/// There is no other run, or it is the one that listens.
pub(super) fn open_to(given: &GivenFlags, work: &mut PacketPathWorkload) -> Result<(), Refusal> {
    let idle = match work.side {
        None => ["token-file", "open-to-anyone"].as_slice(),
        Some(PathSide::Client) => &["open-to-anyone"],
        Some(PathSide::Server) => &[],
    };
    if let Some(flag) = idle.iter().find(|flag| given.has(flag)) {
        let why = format!(
            "--{flag} acts only where one run calls another, {}",
            match *flag {
                "token-file" => "on both",
                _ => "on the server",
            }
        );
        return Err(Refusal::usage(why));
    }
    work.callers = match given.text("token-file") {
        Some(file) => PathCallers::Token(file.to_owned()),
        None if given.has("open-to-anyone") => PathCallers::Anyone,
        None => PathCallers::ThisMachine,
    };
    Ok(())
}

/// `--sink-rate` and `--inject-pause`; loss on purpose at a server is refused.
///
/// # Errors
/// A value that a flag does not take, or a flag of the other side.
pub(super) fn limit(given: &GivenFlags, work: &mut PacketPathWorkload) -> Result<(), Refusal> {
    for flag in ["sink-rate", "inject-pause"] {
        if given.has(flag) && work.side == Some(PathSide::Client) {
            let why = format!("--{flag} acts on the server: give it to that program");
            return Err(Refusal::usage(why));
        }
    }
    if given.has("inject-loss") && work.side == Some(PathSide::Server) {
        let why = "--inject-loss acts on the client: give it to that program";
        return Err(Refusal::usage(why));
    }
    if let Some(text) = given.text("sink-rate") {
        let Some(AskedRate::Messages(per_s)) = rate(text) else {
            let why = format!(
                "--sink-rate {text}: expected packets per second, 1 to 1000000000, as 300k"
            );
            return Err(Refusal::usage(why));
        };
        work.sink_packets_per_s = whole(per_s);
    }
    if let Some(text) = given.text("inject-pause") {
        let pause = time(text).filter(|pause| *pause > Nanos::ZERO && *pause <= LONGEST);
        let run = work.duration_ns.saturating_mul(work.iterations.into());
        match pause {
            Some(pause) if pause.0 <= run.0 / 2 => work.pause_ns = pause,
            Some(pause) => {
                let why = format!(
                    "--inject-pause {pause}: it is longer than half of the run, which is {run}"
                );
                return Err(Refusal::usage(why));
            }
            None => {
                let why = format!(
                    "--inject-pause {text}: expected a time with its unit, as 10ms or 500us"
                );
                return Err(Refusal::usage(why));
            }
        }
    }
    Ok(())
}

/// A number with `ns`, `us`, `ms` or `s`.
fn time(text: &str) -> Option<Nanos> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (digits, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    Nanos::from_secs_f64(plain_number(digits)? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(time("10ms"), Some(Nanos(10_000_000)));
        assert_eq!(time("500us"), Some(Nanos(500_000)));
        assert_eq!(time("1.5s"), Some(Nanos(1_500_000_000)));
        for text in ["10", "", "ms", "-1ms", "1h"] {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
