//! Program that the tests of worlds start: one for every kind of world.
//!
//! `weir-world-ranks mpi|threads|processes RANKS WHAT`. What rank 0 has to
//! tell goes to standard output in one line, errors to standard error; 0 is good, 1 is not, 3 is
//! a lack of the machine. `WHAT` is a name of `work` or, under MPI, of `mpi`. `RANKS` counts where no launcher does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::exit,
    clippy::print_stdout,
    reason = "a program for tests, which says what went wrong and ends"
)]

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weir_world::mpi::{Abi, MessageLayout, Mpi, MpiLibrary, MpiWorld, Requests, Tag};
use weir_world::{Collectives, Launcher, ProcessWorld, World, WorldError, on_threads};

const LIMIT: Duration = Duration::from_secs(20);
/// For messages that never come.
const SOON: Duration = Duration::from_secs(2);
const LONG: usize = 3_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, ranks, what] = &args[..] else {
        print_error("KIND RANKS WHAT");
        return ExitCode::from(2);
    };
    let ranks: u32 = ranks.parse().unwrap();
    match kind.as_str() {
        "threads" => {
            let codes = on_threads(ranks, |world| answer(&world, work(&world, what)));
            ExitCode::from(codes.unwrap().into_iter().max().unwrap())
        }
        "processes" => processes(ranks, what),
        "mpi" => mpi(what),
        other => panic!("no world of kind {other}"),
    }
}

fn processes(ranks: u32, what: &str) -> ExitCode {
    let world = match ProcessWorld::enter(ranks) {
        Ok(world) => world,
        Err(error) => {
            print_error(&format!("error: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let code = answer(&world, work(&world, what));
    if code == 0
        && let Err(error) = world.finish(LIMIT)
    {
        print_error(&format!("end: {error}"));
        return ExitCode::FAILURE;
    }
    ExitCode::from(code)
}

fn mpi(what: &str) -> ExitCode {
    let launcher = Launcher::of_this_process();
    let wish = std::env::var("WEIR_MPI_LIB").ok();
    let opened = MpiLibrary::open(launcher, wish.as_deref()).and_then(MpiLibrary::start);
    let world = match opened {
        Ok(world) => world,
        // Ranks that have nothing to say end well: the launcher ends all as soon as one does not.
        Err(_) if launcher.is_some_and(|l| !l.prints_for_all()) => return ExitCode::SUCCESS,
        Err(error) => {
            print_error(&format!("error: {error}"));
            return ExitCode::from(if error.is_lack() { 3 } else { 1 });
        }
    };
    let done = match (&world, what) {
        (MpiWorld::OpenMpi(mpi), "typed") => typed(mpi),
        (MpiWorld::Mpich(mpi), "typed") => typed(mpi),
        (MpiWorld::OpenMpi(mpi), "uneven") => uneven(mpi),
        (MpiWorld::Mpich(mpi), "uneven") => uneven(mpi),
        (MpiWorld::OpenMpi(mpi), "deadlock") => deadlock(mpi),
        (MpiWorld::Mpich(mpi), "deadlock") => deadlock(mpi),
        _ => work(&world, what),
    };
    ExitCode::from(answer(&world, done))
}

/// One line in one piece, because ranks share standard error.
fn print_error(line: &str) {
    std::io::stderr()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// Rank 0 tells what was found, every rank what went wrong.
fn answer(world: &dyn World, done: Result<String, WorldError>) -> u8 {
    match done {
        Ok(text) if world.rank() == 0 => println!("{text}"),
        Ok(_) => {}
        Err(error) => {
            print_error(&format!("rank {}: {error}", world.rank()));
            return 1;
        }
    }
    0
}

fn work(world: &dyn World, what: &str) -> Result<String, WorldError> {
    let last = world.size() - 1;
    let is_last = world.rank() == last;
    match what {
        "collectives" => collectives(world),
        "die" if is_last => {
            world.barrier(LIMIT)?;
            std::process::exit(7)
        }
        "die" => {
            world.barrier(LIMIT)?;
            let heard = world.receive(last, Instant::now() + LIMIT);
            if world.rank() > 0 {
                // Rank 0 ends it. If both were gone when it looks, it could not know who was first.
                std::thread::sleep(LIMIT);
            }
            heard?;
            Ok("the dead have spoken".to_owned())
        }
        "hang" if is_last => {
            world.barrier(LIMIT)?;
            std::thread::sleep(SOON * 20);
            Ok(String::new())
        }
        "hang" => {
            world.barrier(LIMIT)?;
            world.receive(last, Instant::now() + SOON)?;
            Ok("the sleeping have spoken".to_owned())
        }
        other => panic!("no task {other}"),
    }
}

/// Everything that all ranks do together, from and to every rank, with messages of all lengths.
fn collectives(world: &dyn World) -> Result<String, WorldError> {
    let (rank, size) = (world.rank(), world.size());
    world.barrier(LIMIT)?;
    for (root, length) in (0..size).zip([0, 1, 70_000, LONG, 5].into_iter().cycle()) {
        let mine = vec![u8::try_from(rank).unwrap(); length];
        let received = world.broadcast(root, mine.clone(), LIMIT)?;
        assert_eq!(received, vec![u8::try_from(root).unwrap(); length]);
        if let Some(all) = world.gather(&mine, LIMIT)? {
            let expected = (0..size).map(|r| vec![u8::try_from(r).unwrap(); length]);
            assert_eq!(all, expected.collect::<Vec<_>>());
        }
    }
    let name = format!("{rank} ").into_bytes();
    let all = world.reduce(name, &mut |a, b| Ok([a, b].concat()), LIMIT)?;
    world.barrier(LIMIT)?;
    Ok(format!(
        "{size} ranks: {}",
        String::from_utf8(all.unwrap_or_default()).unwrap().trim()
    ))
}

/// Rank 0 has told the others more than it heard.
fn uneven<A: Abi>(mpi: &Mpi<A>) -> Result<String, WorldError> {
    let (rank, size) = (World::rank(mpi), World::size(mpi));
    let until = Instant::now() + LIMIT;
    let others = if rank == 0 { 1..size } else { 0..1 };
    let peers: Vec<_> = others.clone().map(|r| mpi.peer(r).unwrap()).collect();
    let long = vec![2; LONG];
    let three: [&[u8]; 3] = [b"one", &long, b""];
    for other in others.clone() {
        for message in three {
            if rank == 0 {
                World::send(mpi, other, message, until)?;
            } else {
                assert_eq!(World::receive(mpi, other, until)?, message);
            }
        }
    }
    // Before the last of them is taken.
    if rank == 0 {
        others
            .clone()
            .try_for_each(|to| World::send(mpi, to, b"late", until))?;
    }
    let took = mpi.level(&peers).unwrap();
    if rank != 0 {
        assert_eq!(World::receive(mpi, 0, until)?, b"late");
    }
    assert_eq!(mpi.level(&peers).unwrap(), 0);
    let pieces = took / (peers.len().max(1) as u64);
    Ok(format!("{pieces} messages to each"))
}

/// The typed calls that transports use, around a ring.
fn typed<A: Abi>(mpi: &Mpi<A>) -> Result<String, WorldError> {
    let (rank, size) = (World::rank(mpi), World::size(mpi));
    let right = mpi.peer((rank + 1) % size).unwrap();
    let left = mpi.peer((rank + size - 1) % size).unwrap();
    let tag = Tag::from(3);
    let mine = vec![u8::try_from(rank).unwrap(); LONG];
    let expected = vec![u8::try_from((rank + size - 1) % size).unwrap(); LONG];

    let mut into = vec![255; LONG];
    mpi.barrier().unwrap();
    mpi.sendrecv(right, &mine, left, &mut into, tag).unwrap();
    assert_eq!(into, expected);

    into.fill(255);
    let mut requests = Requests::with_capacity(2);
    mpi.together(&mut requests, |posting| {
        posting.irecv(left, &mut into, tag)?;
        posting.isend(right, &mine, tag)
    })
    .unwrap();
    assert_eq!(into, expected);

    into.fill(255);
    let asked = mpi
        .together(&mut requests, |posting| {
            posting.irecv(left, &mut into, tag)?;
            posting.isend(right, &mine, tag)?;
            let mut asked = 1u64;
            while !posting.is_done()? {
                asked += 1;
            }
            Ok(asked)
        })
        .unwrap();
    assert!(asked > 0);
    assert_eq!(into, expected);

    let parts: Vec<_> = (0..size as usize).map(|r| (r * 10, 10)).collect();
    let layout = MessageLayout::new(&parts).unwrap();
    let mut all = vec![255; parts.len() * 10];
    mpi.alltoallv(&mine, &layout, &mut all, &layout).unwrap();
    let from = |r: u32| [u8::try_from(r).unwrap(); 10];
    assert_eq!(all, (0..size).flat_map(from).collect::<Vec<_>>());
    let short = mpi.alltoallv(&mine[..1], &layout, &mut all, &layout);
    assert!(short.is_err());

    // The pages of zeros are never touched: it is refused before it is copied.
    let long = vec![0; 1 << 31];
    let refused = World::send(mpi, 0, &long, Instant::now()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "a message of 2147483648 bytes to rank 0 is too long"
    );
    let refused = mpi.send(right, &long, tag).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("2147483648 bytes is more than")
    );

    pass_on(mpi)?;
    let refused = mpi.peer(size).unwrap_err().to_string();
    Ok(format!("{size} ranks around the ring; {refused}"))
}

/// Both ranks wait for each other where no deadline is; a watchdog on rank 1 sees to the end.
fn deadlock<A: Abi>(mpi: &Mpi<A>) -> Result<String, WorldError> {
    Collectives::barrier(mpi, LIMIT)?;
    let other = mpi.peer(1 - World::rank(mpi)).unwrap();
    if World::rank(mpi) == 1 {
        let emergency = mpi.emergency();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            print_error("the watchdog ends the world");
            emergency.abort(77)
        });
    }
    mpi.receive(other, &mut [0; 8], Tag::from(1)).unwrap();
    Ok("nobody waited".to_owned())
}

/// Blocking messages from rank 0 to the last.
fn pass_on<A: Abi>(mpi: &Mpi<A>) -> Result<(), WorldError> {
    let (rank, size) = (World::rank(mpi), World::size(mpi));
    let tag = Tag::from(9);
    let mut note = [0; 8];
    if rank > 0 {
        mpi.receive(mpi.peer(rank - 1).unwrap(), &mut note, tag)
            .unwrap();
    }
    if rank + 1 < size {
        note[0] += 1;
        mpi.send(mpi.peer(rank + 1).unwrap(), &note, tag).unwrap();
    }
    assert_eq!(u32::from(note[0]), (rank + 1).min(size - 1));
    Collectives::barrier(mpi, LIMIT)
}
