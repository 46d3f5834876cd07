//! Names of handlers in configurations: those of the older program, and the names of their types for all
//! others.
//!
//! In: a name. Out: the handler of a plan; all names. Not here: what is known of handlers (`weir-schema`).

use weir_schema::{MessageHandler, PacketHandler};

/// Words of the older program.
const OLDER: [(&str, MessageHandler); 8] = [
    ("Empty", MessageHandler::Discard),
    ("T_APP", MessageHandler::Fill),
    ("L_APP", MessageHandler::Same),
    ("M_APP", MessageHandler::Touch),
    ("FS_WRITE", MessageHandler::FileWrite),
    ("FS_READ", MessageHandler::FileRead),
    ("KV", MessageHandler::KeyValue),
    ("FileDecompress", MessageHandler::Inflate),
];

/// The handler without a name.
pub(super) const DEFAULT: MessageHandler = MessageHandler::Fill;

/// Message handlers by name.
fn message_handlers() -> impl Iterator<Item = (&'static str, MessageHandler)> {
    let is_newer = |one: &MessageHandler| OLDER.iter().all(|(_, older)| older != one);
    let newer = MessageHandler::ALL.iter().copied().filter(is_newer);
    OLDER
        .into_iter()
        .chain(newer.map(|one| (one.type_name(), one)))
}

/// Packet handlers by name.
fn packet_handlers() -> impl Iterator<Item = (&'static str, PacketHandler)> {
    let all = PacketHandler::ALL.iter().copied();
    let none = ("Empty", PacketHandler::None);
    [none]
        .into_iter()
        .chain(all.map(|one| (one.type_name(), one)))
}

/// The message handler of a name.
pub(super) fn message_handler(word: &str) -> Option<MessageHandler> {
    let (_, found) = message_handlers().find(|(known, _)| *known == word)?;
    Some(found)
}

/// The packet handler of a name.
pub(super) fn packet_handler(word: &str) -> Option<PacketHandler> {
    let (_, found) = packet_handlers().find(|(known, _)| *known == word)?;
    Some(found)
}

/// All names of message handlers.
pub(super) fn message_words() -> String {
    words(message_handlers().map(|(word, _)| word))
}

/// Names of the message handlers whose requests may have several sizes.
pub(super) fn any_size_words() -> String {
    let all = message_handlers().filter(|(_, one)| one.facts().takes_any_size);
    words(all.map(|(word, _)| word))
}

/// All names of packet handlers.
pub(super) fn packet_words() -> String {
    words(packet_handlers().map(|(word, _)| word))
}

fn words(all: impl Iterator<Item = &'static str>) -> String {
    all.collect::<Vec<_>>().join(", ")
}
