//! The handlers of a packet path, each in one line: its word in plans, what is known of it before it runs, and
//! where `weir-datapath` has it.
//!
//! In: nothing. Out: the words of plans with their facts; the lists themselves, with which `weir-datapath` finds
//! the types. Not here: what a handler does.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema};

/// Calls a macro with all message handlers: the module of each in `weir-datapath`'s `handler`, its type, whose name
/// is its word, and its [`HandlerFacts`].
#[macro_export]
macro_rules! message_handlers {
    ($then:ident) => {
        $then! {
            /// Frees it and answers nothing.
            plain::Discard = HandlerFacts::new("a sink", 22, 22).any_size().silent(),
            /// Reads it and answers with a filled message.
            plain::Fill = HandlerFacts::new("short answers", 982, 22).any_size(),
            /// Reads it and answers with its payload.
            plain::Same = HandlerFacts::new("answers of the same", 86, 86).any_size(),
            /// Reads it, writes all over a region of memory, and answers with its payload.
            touch::Touch = HandlerFacts::new("touched memory", 86, 86).any_size(),
            /// Copies it into slots of the region.
            file_write::FileWrite = HandlerFacts::new("written slots", 16384, 22),
            /// Answers with pieces of the region.
            file_read::FileRead = HandlerFacts::new("read slots", 22, 102_400),
            /// Puts a value into a map, or answers with it.
            key_value::KeyValue = HandlerFacts::new("a map of keys", 97, 97).at_least(81, 81),
            /// Inflates it, and checks length and checksum of what comes out.
            inflate::Inflate = HandlerFacts::new("inflated data", 2 << 20, 22).at_least(16, 0),
        }
    };
}

/// Calls a macro with all packet handlers: the module of each in `weir-datapath`'s `packet_handler`, and its type,
/// whose name is its word.
#[macro_export]
macro_rules! packet_handlers {
    ($then:ident) => {
        $then! {
            /// They send every packet back.
            echo::Echo,
        }
    };
}

/// Facts about a message handler before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandlerFacts {
    /// In a title.
    pub title: &'static str,
    /// Of a request where nothing is said, with its headers.
    pub request: Bytes,
    /// Of an answer, likewise.
    pub response: Bytes,
    /// Payload that a request has at least.
    pub least_request: Bytes,
    /// Of an answer, likewise.
    pub least_response: Bytes,
    /// Requests may have several sizes.
    pub takes_any_size: bool,
    /// Clients hear of their messages again.
    pub is_answered: bool,
}

impl HandlerFacts {
    /// Of a handler that answers messages of one size: how titles name it, bytes of a request and of an answer.
    const fn new(title: &'static str, request: u64, response: u64) -> Self {
        Self {
            title,
            request: Bytes(request),
            response: Bytes(response),
            least_request: Bytes(0),
            least_response: Bytes(0),
            takes_any_size: false,
            is_answered: true,
        }
    }

    const fn any_size(mut self) -> Self {
        self.takes_any_size = true;
        self
    }

    const fn silent(mut self) -> Self {
        self.is_answered = false;
        self
    }

    /// It needs so many bytes of payload in a request and in an answer.
    const fn at_least(mut self, request: u64, response: u64) -> Self {
        self.least_request = Bytes(request);
        self.least_response = Bytes(response);
        self
    }
}

macro_rules! words_of_messages {
    ($($(#[$doc:meta])+ $module:ident::$word:ident = $facts:expr,)*) => {
        /// Handler of a server's messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum MessageHandler {
            $($(#[$doc])+ $word,)*
        }

        impl MessageHandler {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$word,)*];

            /// The name of its type.
            pub const fn type_name(self) -> &'static str {
                match self {
                    $(Self::$word => stringify!($word),)*
                }
            }

            /// Facts about the handler.
            pub const fn facts(self) -> HandlerFacts {
                match self {
                    $(Self::$word => $facts,)*
                }
            }
        }
    };
}
message_handlers!(words_of_messages);

macro_rules! words_of_packets {
    ($($(#[$doc:meta])+ $module:ident::$word:ident,)*) => {
        /// Handler of incoming packets in the dispatchers of a server, before threads get them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum PacketHandler {
            /// Nothing.
            #[default]
            None,
            $($(#[$doc])+ $word,)*
        }

        impl PacketHandler {
            /// All that do something.
            pub const ALL: &[Self] = &[$(Self::$word,)*];

            /// The name of its type.
            pub const fn type_name(self) -> &'static str {
                match self {
                    Self::None => "None",
                    $(Self::$word => stringify!($word),)*
                }
            }
        }
    };
}
packet_handlers!(words_of_packets);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketPathWorkload;

    #[test]
    fn a_message_without_room_for_what_its_handler_needs_is_named_with_the_smallest_that_has() {
        let short = |handler, request, packet_bytes| {
            let work = PacketPathWorkload {
                handler,
                request_bytes: Bytes(request),
                response_bytes: Bytes(97),
                packet_bytes,
                ..PacketPathWorkload::default()
            };
            work.short_messages()
        };
        let found = short(MessageHandler::Inflate, 22, 2048);
        let why = "22 B has room for 6 bytes of payload; inflated data needs 16, a message of 32 B";
        assert_eq!(found, [("request_bytes", why.to_owned())]);
        assert_eq!(short(MessageHandler::Inflate, 32, 2048), []);
        assert_eq!(short(MessageHandler::Same, 16, 2048), []);
        // Packets of 36 bytes hold 20 of payload each: 81 take five of them.
        let found = short(MessageHandler::KeyValue, 97, 64);
        assert_eq!(found.len(), 2);
        assert!(found[0].1.ends_with("a message of 161 B"), "{found:?}");
    }

    #[test]
    fn a_word_of_a_plan_is_the_name_of_a_type() {
        for handler in MessageHandler::ALL {
            let word = serde_json::to_string(handler)
                .unwrap()
                .replace(['_', '"'], "");
            assert_eq!(word, handler.type_name().to_ascii_lowercase());
        }
    }
}
