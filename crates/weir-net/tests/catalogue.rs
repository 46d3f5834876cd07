//! Check of other descriptions of transports against their own: the table of the book, and the
//! sample that tests of doors read.
#![allow(clippy::unwrap_used, reason = "in tests")]

use std::path::Path;

use weir_schema::catalogue::TransportRecord;
use weir_schema::sample;

/// The peer's column: CPU means two transports, by how the program was started.
fn peer(record: &TransportRecord) -> String {
    let all = weir_net::catalogue().records;
    let shares = |t: &&TransportRecord| t.peer == record.peer;
    let how = match (all.iter().filter(shares).count(), record.needs_launcher) {
        (1, _) => "",
        (_, true) => " under a launcher",
        (_, false) => " without one",
    };
    record
        .peer
        .map_or_else(|| "–".to_owned(), |peer| format!("`{peer}`{how}"))
}

fn settings(record: &TransportRecord) -> String {
    let names = record.settings.iter().map(|s| format!("`{}`", s.name));
    let list = names.collect::<Vec<_>>().join(", ");
    if list.is_empty() {
        "–".to_owned()
    } else {
        list
    }
}

#[test]
fn the_book_has_a_row_for_every_transport_in_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/transports.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page
        .lines()
        .skip_while(|line| !line.starts_with("| transport |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<&str>> = table
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let written: Vec<[String; 3]> = rows
        .iter()
        .map(|row| [row[0], row[1], row[3]].map(str::to_owned))
        .collect();
    let records = weir_net::catalogue().records;
    let wanted = records.iter();
    let wanted: Vec<[String; 3]> = wanted
        .map(|t| [format!("`{}`", t.name), peer(t), settings(t)])
        .collect();
    assert_eq!(written, wanted);
    assert!(rows.iter().all(|row| !row[2].is_empty()), "{rows:?}");
}

#[test]
fn the_sample_of_the_doors_tests_is_what_the_transports_say() {
    let said = |record: &TransportRecord| {
        let settings: Vec<_> = record.settings.iter().map(|s| s.name).collect();
        format!(
            "{} {:?} {settings:?} {:?} {:?} {} {} {}",
            record.name,
            record.peer,
            record.methods,
            record.transfers,
            record.moves_data,
            record.connects_any_two,
            record.needs_launcher
        )
    };
    let all = weir_net::catalogue();
    for record in sample::transports().records {
        let real = all.find(record.name).unwrap();
        assert_eq!(said(&record), said(real));
    }
}

#[test]
fn several_transports_that_the_peer_has_one_name_for_differ_in_the_launcher() {
    let all = weir_net::catalogue().records;
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            let is_same = one.peer.is_some() && one.peer == other.peer;
            assert!(
                !is_same || one.needs_launcher != other.needs_launcher,
                "{} and {}",
                one.name,
                other.name
            );
            assert_ne!(one.name, other.name);
        }
    }
}
