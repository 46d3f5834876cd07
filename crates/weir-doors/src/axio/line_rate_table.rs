//! `weir axio linerate`: how many frames a line carries per second.
//!
//! In: a rate of the line, sizes of frames with their check. Out: a number, or a table of the usual sizes.

use serde_json::json;

use super::print::is_json;
use super::traffic::{LINE_TAKES, LineRate, SMALLEST_FRAME, line_rate, real, whole};
use crate::given::Given;
use crate::refusal::Refusal;
use crate::request::Request;

/// Sizes of frames that tests of network gear take.
pub(super) const USUAL_FRAMES: [u64; 7] = [64, 128, 256, 512, 1024, 1280, 1518];
/// The largest frame that is looked up.
const LARGEST_FRAME: u64 = 65_536;

/// Reads the operands of `linerate`.
pub(super) fn read(given: &Given) -> Result<Request, Refusal> {
    given.refuse_beside("`linerate`", &["voice", "format"])?;
    let plain: Vec<&str> = given.operands.iter().skip(1).map(String::as_str).collect();
    let Some((rate, frames)) = plain.split_first() else {
        let more = "\n  help: as in `weir axio linerate 10G 64`";
        return Err(Refusal::usage(format!(
            "linerate: the rate of the line is missing{more}"
        )));
    };
    let bits_per_s = line_rate(rate)
        .ok_or_else(|| Refusal::usage(format!("linerate {rate}: expected {LINE_TAKES}")))?;
    let line = LineRate { bits_per_s };
    let frame = |text: &&str| {
        let frame = text.parse().ok();
        let frame = frame.filter(|n| (SMALLEST_FRAME..=LARGEST_FRAME).contains(n));
        frame.ok_or_else(|| {
            Refusal::usage(format!(
                "linerate: frame {text}: expected bytes with the frame check, {SMALLEST_FRAME} to {LARGEST_FRAME}"
            ))
        })
    };
    let frames: Vec<u64> = frames.iter().map(frame).collect::<Result<_, _>>()?;
    Ok(Request::print(text(line, &frames, is_json(given))))
}

fn text(line: LineRate, frames: &[u64], is_json: bool) -> String {
    let per_s = |frame: u64| whole(line.frames_per_s(real(frame)));
    let all = if frames.is_empty() {
        &USUAL_FRAMES[..]
    } else {
        frames
    };
    if is_json {
        let row = |frame: &u64| json!({ "frame_bytes": frame, "frames_per_s": per_s(*frame) });
        let rows: Vec<_> = all.iter().map(row).collect();
        return format!(
            "{}\n",
            json!({ "line_bits_per_s": line.bits_per_s, "frames": rows })
        );
    }
    if let [frame] = frames {
        return format!("{}\n", per_s(*frame));
    }
    let mut out = format!("{:>6} {:>15}\n", "frame", "frames/s");
    for frame in all {
        push!(out, "{frame:>6} {:>15}\n", per_s(*frame));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::read_given;
    use crate::axio::DOOR;
    use crate::request::Action;

    fn said(words: &str) -> Result<String, String> {
        let words = ["linerate"].into_iter().chain(words.split_whitespace());
        let words: Vec<String> = words.map(str::to_owned).collect();
        let given = read_given(&DOOR, &words);
        match given.and_then(|given| read(&given)) {
            Ok(request) => match request.action {
                Action::Print(text) => Ok(text.out),
                other => Err(format!("{other:?}")),
            },
            Err(refusal) => Err(refusal.message),
        }
    }

    #[test]
    fn frames_per_second_of_ten_gigabits_are_those_of_every_table() {
        let known = [
            14_880_952, 8_445_946, 4_528_986, 2_349_624, 1_197_318, 961_538, 812_744,
        ];
        for (frame, per_s) in USUAL_FRAMES.into_iter().zip(known) {
            assert_eq!(said(&format!("10G {frame}")), Ok(format!("{per_s}\n")));
        }
        let table = said("10Gbps").unwrap();
        assert_eq!(table.lines().count(), 8, "{table}");
        let json = said("100G 64 --format json").unwrap();
        assert!(json.contains("\"frames_per_s\":148809524"), "{json}");
    }

    #[test]
    fn what_is_no_line_or_no_frame_is_refused_by_name() {
        for (words, why) in [
            ("", "the rate of the line is missing"),
            ("fast", "linerate fast: expected bits per second"),
            ("1 64", "linerate 1: expected bits per second, 1k to 1000T"),
            ("10G 63", "frame 63: expected bytes"),
            ("10G 64 --formt json", "no option `--formt`"),
            ("10G --both", "--both has no effect with `linerate`"),
        ] {
            assert!(said(words).unwrap_err().contains(why), "{words}");
        }
    }
}
