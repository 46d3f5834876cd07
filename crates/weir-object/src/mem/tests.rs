//! Loss of power at every fence, on a simulated medium.

use std::collections::{BTreeMap, BTreeSet};

use super::Mem;
use super::medium::{CHUNK, Medium};
use crate::store::*;

type Line = [u8; 64];

/// Stores between two fences.
struct CrashPoint {
    /// Lines that may or may not have become persistent, and those that have behind the fence.
    lines: Vec<(usize, Line)>,
    flushed: BTreeSet<usize>,
    /// Operations that were acknowledged before.
    acknowledged: usize,
}

/// A medium in memory that notes what is stored and written back.
#[derive(Default)]
struct Recording {
    bytes: Vec<u8>,
    touched: BTreeSet<usize>,
    flushed: BTreeSet<usize>,
    points: Vec<CrashPoint>,
    acknowledged: usize,
    is_recorded: bool,
    /// Bytes before each change, where changes are to be taken back.
    undo: Option<Vec<(usize, Vec<u8>)>>,
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} B", self.bytes.len())
    }
}

impl Recording {
    fn line(&self, number: usize) -> Line {
        *self.bytes[number * 64..].first_chunk().unwrap()
    }
}

impl Medium for Recording {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn bytes(&self, at: u64, len: usize) -> &[u8] {
        &self.bytes[at as usize..at as usize + len]
    }
    fn bytes_mut(&mut self, at: u64, len: usize) -> &mut [u8] {
        let at = at as usize;
        if let Some(undo) = &mut self.undo {
            undo.push((at, self.bytes[at..at + len].to_vec()));
        } else {
            self.touched.extend(at / 64..(at + len).div_ceil(64));
        }
        &mut self.bytes[at..at + len]
    }
    fn write_back(&mut self, at: u64, len: usize) {
        if self.undo.is_some() {
            return;
        }
        self.flushed
            .extend(at as usize / 64..(at as usize + len).div_ceil(64));
    }
    fn fence(&mut self) {
        let flushed = std::mem::take(&mut self.flushed);
        if self.is_recorded {
            let lines = self
                .touched
                .iter()
                .map(|&line| (line, self.line(line)))
                .collect();
            let point = CrashPoint {
                lines,
                flushed: flushed.clone(),
                acknowledged: self.acknowledged,
            };
            self.points.push(point);
        }
        self.touched.retain(|line| !flushed.contains(line));
    }
    fn back(&mut self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
}

const OBJECT: ObjectId = ObjectId { hi: 0, lo: 5 };

fn value(number: usize, akey: u8) -> Vec<u8> {
    (0..40 + number * 7)
        .map(|at| (at * 31 + number * 17) as u8 ^ akey)
        .collect()
}

fn operation(store: &mut Mem<Recording>, c: ContainerId, number: usize) {
    let name = format!("d{number}");
    let epoch = Epoch(number as u64 * 10 + 10);
    let range = EpochRange {
        after: Epoch(0),
        upto: epoch,
    };
    match number {
        6 | 11 => {
            store
                .note_pass(super::RecordKind::Aggregate, c, range)
                .unwrap();
            return;
        }
        7 | 12 => {
            assert!(store.rewrite_log().unwrap() > 0);
            return;
        }
        _ => {}
    }
    let dkey = if number.is_multiple_of(2) {
        "again"
    } else {
        &name
    };
    let key = KeyAt {
        container: c,
        object: OBJECT,
        dkey: dkey.as_bytes(),
    };
    let (a, b) = (value(number, b'a'), value(number, b'b'));
    let iods = [
        Iod::single(b"a", a.len() as u64),
        Iod::single(b"b", b.len() as u64),
    ];
    let _ = store
        .update_values(key, &iods, epoch, Conditions::NONE, &[a, b].concat())
        .unwrap();
}

/// Newest number of an operation that a key shows; both attribute keys are of the same one.
fn shown(store: &Mem<Recording>, c: ContainerId, dkey: &str, upto: usize) -> Option<usize> {
    let key = KeyAt {
        container: c,
        object: OBJECT,
        dkey: dkey.as_bytes(),
    };
    let mut data = [0; 512];
    let mut iods = [Iod::single(b"a", 256), Iod::single(b"b", 256)];
    let Ticket::Done(found) = store
        .fetch_values(key, &mut iods, Epoch::LATEST, Conditions::NONE, &mut data)
        .unwrap()
    else {
        panic!("inline")
    };
    if found == 0 {
        return None;
    }
    let number = (0..=upto).find(|&number| {
        data.starts_with(&value(number, b'a')) && iods[0].size == value(number, b'a').len() as u64
    });
    let number = number.expect("bytes of one operation");
    let b = value(number, b'b');
    assert_eq!(
        (&data[256..256 + b.len()], iods[1].size),
        (&b[..], b.len() as u64),
        "both keys or none"
    );
    Some(number)
}

fn check(store: &Mem<Recording>, c: ContainerId, acknowledged: usize) {
    let updates = |upto: usize| (0..upto).filter(|n| ![6, 7, 11, 12].contains(n));
    for number in updates(acknowledged + 1).filter(|n| n % 2 == 1) {
        let got = shown(store, c, &format!("d{number}"), acknowledged);
        assert!(
            got == Some(number) || got.is_none() && number == acknowledged,
            "{number}: {got:?}"
        );
    }
    let newest = updates(acknowledged).filter(|n| n % 2 == 0).max();
    let got = shown(store, c, "again", acknowledged);
    assert!(
        got == newest || got == Some(acknowledged),
        "{got:?} is neither {newest:?} nor {acknowledged}"
    );
}

/// Opens and checks a pool; its bytes, as they were.
fn check_image(bytes: Vec<u8>, c: ContainerId, acknowledged: usize) -> Vec<u8> {
    let medium = Recording {
        bytes,
        undo: Some(Vec::new()),
        ..Recording::default()
    };
    let store = Mem::recover(medium, Some([3; 16])).unwrap();
    assert!(!store.stats.log_damaged, "a torn end is no damage");
    check(&store, c, acknowledged);
    let Mem { medium, .. } = store;
    let mut image = medium.bytes;
    for (at, bytes) in medium.undo.unwrap_or_default().into_iter().rev() {
        image[at..at + bytes.len()].copy_from_slice(&bytes);
    }
    image
}

#[test]
#[expect(clippy::too_many_lines, reason = "one course of events")]
fn loss_of_power_at_any_fence_leaves_whole_operations() {
    let empty = Recording {
        bytes: vec![0; 8 * CHUNK as usize],
        ..Recording::default()
    };
    let mut store = Mem::create(empty, [3; 16], ValueSums::Crc32c, 0).unwrap();
    let c = store
        .open_container([4; 16], ContainerMode::Create)
        .unwrap();
    let mut image = store.medium.bytes.clone();
    store.medium.is_recorded = true;
    for number in 0..14 {
        if number == 10 {
            store.leave_image();
            store = Mem::recover(store.medium, None).unwrap();
            assert_eq!(store.stats.recovered, 0, "the image was taken");
        }
        operation(&mut store, c, number);
        store.medium.acknowledged += 1;
    }
    let points = std::mem::take(&mut store.medium.points);
    let samples = if std::env::var_os("WEIR_LONG").is_some() {
        1_000
    } else {
        40
    };
    let (mut random, mut states) = (7_u64, 0);
    for point in &points {
        let changed: Vec<_> = point
            .lines
            .iter()
            .filter(|(n, line)| image[n * 64..n * 64 + 64] != line[..])
            .collect();
        let all = changed.len() <= 5 || changed.len() <= 12 && samples == 1_000;
        let count = if all { 1 << changed.len() } else { samples };
        for subset in 0..count {
            let mut before = BTreeMap::new();
            for (place, (n, line)) in changed.iter().enumerate() {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                if if all {
                    subset >> place & 1 == 1
                } else {
                    random >> 40 & 1 == 1
                } {
                    let slot: &mut Line = image[n * 64..].first_chunk_mut().unwrap();
                    before.insert(*n, std::mem::replace(slot, *line));
                }
            }
            image = check_image(image, c, point.acknowledged);
            states += 1;
            for (n, line) in before {
                image[n * 64..n * 64 + 64].copy_from_slice(&line);
            }
        }
        for (n, line) in point
            .lines
            .iter()
            .filter(|(n, _)| point.flushed.contains(n))
        {
            image[n * 64..n * 64 + 64].copy_from_slice(line);
        }
    }
    assert!(states > 300, "{states} states");
}

#[test]
fn an_open_that_is_interrupted_does_not_damage_the_log() {
    let mut medium = Recording {
        bytes: vec![0; 8 * CHUNK as usize],
        ..Recording::default()
    };
    let mut store = Mem::create(medium, [3; 16], ValueSums::Crc32c, 0).unwrap();
    let c = store
        .open_container([4; 16], ContainerMode::Create)
        .unwrap();
    let iods = [Iod::single(b"a", 1), Iod::single(b"b", 1)];
    let mut number = 0_u8;
    // Long keys fill the segment soon; the first record makes a later group begin in it and end in
    // the next.
    while store.log.segments().len() == 1 {
        let iods = &iods[..if number == 0 { 1 } else { 2 }];
        let key = KeyAt {
            container: c,
            object: OBJECT,
            dkey: &vec![number; 60_000],
        };
        let _ = store
            .update_values(key, iods, Epoch(1), Conditions::NONE, &b"xy"[..iods.len()])
            .unwrap();
        number += 1;
    }
    // The second record of the last group did not last.
    let segment = store.log.segments()[1] as usize;
    medium = store.medium;
    medium.bytes[segment..segment + CHUNK as usize].fill(0);
    let mut image = medium.bytes.clone();
    medium.is_recorded = true;
    let store = Mem::recover(medium, None).unwrap();
    assert!(!store.stats.log_damaged && store.log.segments().len() == 1);
    let points = &store.medium.points;
    assert!(points.len() > 1);
    for (at, point) in points.iter().enumerate() {
        for (line, bytes) in &point.lines {
            image[line * 64..line * 64 + 64].copy_from_slice(bytes);
        }
        let medium = Recording {
            bytes: image.clone(),
            ..Recording::default()
        };
        let again = Mem::recover(medium, None).unwrap();
        assert!(!again.stats.log_damaged, "killed at fence {at}");
        assert_eq!(again.stats.recovered, store.stats.recovered);
    }
}
