//! The words for message sizes, `(0 b1048578)` (spec: RPC self-test, 3.2), and the peer's words for what
//! they mean.
//!
//! In: the value of an option. Out: what is sent and what comes back, or what is wrong and at which
//! character. Not here: which option it is.

use weir_schema::{RpcPayload, RpcPayloadKind, RpcWorkload};

use super::grammar::Wrong;

/// From here on data is bulk unless a letter says something else.
const BULK_FROM: u32 = 1 << 20;
/// So many pairs may be asked for.
const MOST_PAIRS: usize = 1024;

/// Payloads of a request and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessagePair {
    /// Payload of the request.
    pub request: RpcPayload,
    /// Payload of the reply.
    pub reply: RpcPayload,
}

impl MessagePair {
    /// That of a workload.
    pub(super) fn of(work: &RpcWorkload) -> Self {
        Self {
            request: work.request,
            reply: work.reply,
        }
    }

    /// `(0-EMPTY 1048578-BULK_PUT)`.
    pub(super) fn words(self) -> String {
        let (request, reply) = (self.request, self.reply);
        format!(
            "({}-{} {}-{})",
            request.bytes,
            request_word(request.kind),
            reply.bytes,
            reply_word(reply.kind)
        )
    }
}

/// The peer's word for what is sent.
pub(super) const fn request_word(kind: RpcPayloadKind) -> &'static str {
    match kind {
        RpcPayloadKind::Empty => "EMPTY",
        RpcPayloadKind::Inline => "IOV",
        RpcPayloadKind::Bulk => "BULK_GET",
    }
}

/// The peer's word for what comes back.
pub(super) const fn reply_word(kind: RpcPayloadKind) -> &'static str {
    match kind {
        RpcPayloadKind::Bulk => "BULK_PUT",
        other => request_word(other),
    }
}

/// Reads a list of pairs.
///
/// # Errors
/// Anything else, with its place; a list without any.
pub(super) fn message_pairs(text: &str) -> Result<Vec<MessagePair>, Wrong> {
    let mut pairs = Vec::new();
    let mut at = 0;
    for piece in text.split(['(', ')', ',']) {
        let start = at;
        at += piece.len() + 1;
        if piece.trim().is_empty() {
            continue;
        }
        if pairs.len() == MOST_PAIRS {
            let why = format!("more than {MOST_PAIRS} message sizes");
            return Err(Wrong::at(start, why));
        }
        let mut reader = Reader { text: piece, at: 0 };
        pairs.push(reader.pair().map_err(|wrong| wrong.behind(start))?);
    }
    if pairs.is_empty() {
        return Err(Wrong::whole("No valid message sizes given"));
    }
    Ok(pairs)
}

/// A size with the letter before it.
#[derive(Clone, Copy)]
struct Sized {
    letter: Option<RpcPayloadKind>,
    bytes: u32,
    /// It has a suffix, which another letter would continue.
    has_suffix: bool,
}

impl Sized {
    fn payload(self) -> RpcPayload {
        let by_size = if self.bytes < BULK_FROM {
            RpcPayloadKind::Inline
        } else {
            RpcPayloadKind::Bulk
        };
        RpcPayload::of(self.letter.unwrap_or(by_size), self.bytes)
    }
}

/// One piece, from where it is read on.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Blanks are passed over; whether there were any.
    fn blanks(&mut self) -> bool {
        let rest = self.rest();
        let blanks = rest.len() - rest.trim_start().len();
        self.at += blanks;
        blanks > 0
    }

    fn pair(&mut self) -> Result<MessagePair, Wrong> {
        self.blanks();
        let first = self.size()?;
        let is_apart = self.blanks();
        if self.next().is_none() {
            return Ok(MessagePair {
                request: first.payload(),
                reply: first.payload(),
            });
        }
        if first.has_suffix && !is_apart {
            let why = "after a suffix the second size needs a blank before it";
            return Err(Wrong::at(self.at, why));
        }
        let second = self.size()?;
        self.blanks();
        if self.next().is_some() {
            return Err(Wrong::at(
                self.at,
                "a message has two sizes, and there is more",
            ));
        }
        Ok(MessagePair {
            request: first.payload(),
            reply: second.payload(),
        })
    }

    fn size(&mut self) -> Result<Sized, Wrong> {
        let letter = self.next().and_then(kind_of_letter);
        if letter.is_some() {
            self.at += 1;
            self.blanks();
        }
        let start = self.at;
        let digits = self.rest();
        let digits = digits.len()
            - digits
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        if digits == 0 {
            let why = "expected a size: a letter e, i or b if any, then digits";
            return Err(Wrong::at(self.at, why));
        }
        let number = self
            .rest()
            .get(..digits)
            .and_then(|digits| digits.parse::<u64>().ok());
        self.at += digits;
        let factor = self.suffix();
        let bytes = number.and_then(|n| n.checked_mul(factor.unwrap_or(1)));
        let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
        let too_large = || Wrong::at(start, format!("a size goes up to {}", u32::MAX));
        Ok(Sized {
            letter,
            bytes: bytes.ok_or_else(too_large)?,
            has_suffix: factor.is_some(),
        })
    }

    /// `k`, `ki` and so on; both count in steps of 1024.
    fn suffix(&mut self) -> Option<u64> {
        let factor = match self.next()? {
            'k' | 'K' => 1 << 10,
            'm' | 'M' => 1 << 20,
            'g' | 'G' => 1 << 30,
            _ => return None,
        };
        self.at += 1;
        self.at += usize::from(matches!(self.next(), Some('i' | 'I')));
        Some(factor)
    }
}

fn kind_of_letter(letter: char) -> Option<RpcPayloadKind> {
    match letter {
        'e' | 'E' => Some(RpcPayloadKind::Empty),
        'i' | 'I' => Some(RpcPayloadKind::Inline),
        'b' | 'B' => Some(RpcPayloadKind::Bulk),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> String {
        let pairs = message_pairs(text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        let words: Vec<String> = pairs.into_iter().map(MessagePair::words).collect();
        words.join(", ")
    }

    #[test]
    fn what_the_reference_reads_is_read_alike() {
        for (text, meant) in [
            ("0", "(0-EMPTY 0-EMPTY)"),
            ("0 b1048578", "(0-EMPTY 1048578-BULK_PUT)"),
            ("b1048578 0", "(1048578-BULK_GET 0-EMPTY)"),
            ("b1000", "(1000-BULK_GET 1000-BULK_PUT)"),
            ("i100 b1000", "(100-IOV 1000-BULK_PUT)"),
            ("1048575", "(1048575-IOV 1048575-IOV)"),
            ("1048576", "(1048576-BULK_GET 1048576-BULK_PUT)"),
            ("i1048576", "(1048576-IOV 1048576-IOV)"),
            ("I2048", "(2048-IOV 2048-IOV)"),
            ("e1000", "(1000-IOV 1000-IOV)"),
            ("e5 b0", "(5-IOV 0-EMPTY)"),
            ("b1000 2000", "(1000-BULK_GET 2000-IOV)"),
            ("b1000i2000", "(1000-BULK_GET 2000-IOV)"),
            (
                "(0 0) (b1048578 0) (0 b1048578)",
                "(0-EMPTY 0-EMPTY), (1048578-BULK_GET 0-EMPTY), (0-EMPTY 1048578-BULK_PUT)",
            ),
            ("(1)(2)", "(1-IOV 1-IOV), (2-IOV 2-IOV)"),
            (
                "b2000,b2000 0,0 b2000,b2000 i1000,i1000 b2000,i1000,i1000 0,0 i1000,1,0",
                "(2000-BULK_GET 2000-BULK_PUT), (2000-BULK_GET 0-EMPTY), (0-EMPTY 2000-BULK_PUT), \
                 (2000-BULK_GET 1000-IOV), (1000-IOV 2000-BULK_PUT), (1000-IOV 1000-IOV), \
                 (1000-IOV 0-EMPTY), (0-EMPTY 1000-IOV), (1-IOV 1-IOV), (0-EMPTY 0-EMPTY)",
            ),
        ] {
            assert_eq!(words(text), meant, "{text}");
        }
    }

    #[test]
    fn suffixes_count_in_steps_of_1024() {
        for (text, meant) in [
            ("4k", "(4096-IOV 4096-IOV)"),
            ("1k i2000", "(1024-IOV 2000-IOV)"),
            ("b1mi 2K", "(1048576-BULK_GET 2048-IOV)"),
            ("b3g 0", "(3221225472-BULK_GET 0-EMPTY)"),
            ("4294967295", "(4294967295-BULK_GET 4294967295-BULK_PUT)"),
        ] {
            assert_eq!(words(text), meant, "{text}");
        }
    }

    #[test]
    fn what_the_reference_takes_for_something_else_is_refused_with_its_place() {
        for (text, why, at) in [
            ("10.5", "expected a size", Some(2)),
            ("-5", "expected a size", Some(0)),
            ("1 2 3", "there is more", Some(4)),
            ("0,1 2 3", "there is more", Some(6)),
            ("100b", "expected a size", Some(4)),
            ("bi100", "expected a size", Some(1)),
            ("4294967296", "up to 4294967295", Some(0)),
            ("4g", "up to 4294967295", Some(0)),
            ("99999999999999999999999", "up to 4294967295", Some(0)),
            ("1kb2000", "needs a blank", Some(2)),
            ("1ki2000", "needs a blank", Some(3)),
            ("x", "expected a size", Some(0)),
            ("() , ()", "No valid message sizes given", None),
            ("", "No valid message sizes given", None),
        ] {
            let wrong = message_pairs(text).unwrap_err();
            assert!(wrong.why.contains(why), "{text}: {wrong:?}");
            assert_eq!(wrong.at, at, "{text}: {wrong:?}");
        }
        assert!(message_pairs(&"0,".repeat(2000)).is_err());
    }

    type LetteredSize = (Option<char>, u32);

    fn size() -> impl Strategy<Value = LetteredSize> {
        let letter = prop::option::of(prop::sample::select(vec!['e', 'i', 'b']));
        (letter, prop_oneof![Just(0), 1_u32..5000, any::<u32>()])
    }

    fn word((letter, bytes): LetteredSize) -> String {
        format!("{}{bytes}", letter.map_or(String::new(), String::from))
    }

    /// By the rules of the specification, one after another.
    fn naive((letter, bytes): LetteredSize) -> (u32, RpcPayloadKind) {
        let kind = match (letter, bytes) {
            (_, 0) => RpcPayloadKind::Empty,
            (Some('b'), _) | (None, 1_048_576..) => RpcPayloadKind::Bulk,
            _ => RpcPayloadKind::Inline,
        };
        (bytes, kind)
    }

    proptest! {
        #[test]
        fn a_list_means_what_its_pairs_mean(
            sizes in prop::collection::vec((size(), prop::option::of(size())), 1..20),
            between in prop::sample::select(vec![",", ")(", ") (", " , "]),
        ) {
            let piece = |(first, second): &(LetteredSize, Option<LetteredSize>)| {
                let second = second.map_or(String::new(), |s| format!(" {}", word(s)));
                format!("{}{second}", word(*first))
            };
            let text = sizes.iter().map(piece).collect::<Vec<_>>().join(between);
            let pairs = message_pairs(&text).unwrap();
            prop_assert_eq!(pairs.len(), sizes.len());
            for (pair, (first, second)) in pairs.iter().zip(sizes) {
                let (bytes, kind) = naive(first);
                prop_assert_eq!((pair.request.bytes, pair.request.kind), (bytes, kind));
                let (bytes, kind) = naive(second.unwrap_or(first));
                prop_assert_eq!((pair.reply.bytes, pair.reply.kind), (bytes, kind));
            }
        }

        #[test]
        fn no_words_are_too_odd(text in "[0-9eibkmgx(), ]{0,30}") {
            let _ = message_pairs(&text);
        }
    }
}
