//! Parts of a guest's first file system that change seldom, each packed once and kept.
//!
//! In: what a part is made of. Out: the path of an archive; a kernel takes several in a
//! row. Not here: what a run alone needs (`initrd`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::archive::Archive;
use crate::host::{Places, digest, find, need, stamp, unique, write_whole};
use crate::programs::libraries;

/// The source of the program that writes the exit port.
const EXIT_SOURCE: &str = include_str!("../../../lab/lab-exit.c");

/// One user with all rights and one without any.
const USERS: &str = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";

/// The userland: busybox, folders, the console, the exit program.
pub(crate) fn userland(places: &Places) -> Result<PathBuf> {
    let busybox = need("busybox", "busybox-static")?;
    ensure!(
        libraries(&busybox)?.is_empty(),
        crate::host::Missing {
            what: "busybox needs libraries".to_owned(),
            remedy: "apt: busybox-static".to_owned(),
        }
    );
    let exit = exit_program(places)?;
    kept(
        places,
        &format!("userland {} {} {USERS}", stamp(&busybox)?, stamp(&exit)?),
        |archive| {
            for folder in [
                "proc", "sys", "dev", "tmp", "out", "bin", "sbin", "lab", "lib", "etc",
            ] {
                archive.folder(folder);
            }
            archive.character_device("dev/console", (5, 1));
            archive.file("bin/busybox", 0o755, &read(&busybox)?);
            archive.link("bin/sh", "busybox");
            archive.file("lab/lab-exit", 0o755, &read(&exit)?);
            archive.file("etc/passwd", 0o644, USERS.as_bytes());
            archive.file("etc/group", 0o644, b"root:x:0:\n");
            Ok(())
        },
    )
}

/// A guest whose first program is the one that ends the emulator.
pub(crate) fn probe(places: &Places) -> Result<PathBuf> {
    let exit = exit_program(places)?;
    kept(places, &format!("probe {}", stamp(&exit)?), |archive| {
        archive.folder("dev");
        archive.character_device("dev/console", (5, 1));
        archive.file("init", 0o755, &read(&exit)?);
        Ok(())
    })
}

/// A program with its libraries, at `guest`.
pub(crate) fn program(places: &Places, file: &Path, guest: &str) -> Result<PathBuf> {
    kept(
        places,
        &format!("program {guest} {}", stamp(file)?),
        |archive| {
            archive.file(guest, 0o755, &stripped(places, file)?);
            for library in libraries(file)? {
                archive.file(&library.to_string_lossy(), 0o755, &read(&library)?);
            }
            Ok(())
        },
    )
}

/// A part by its key, packed if it is not there yet.
fn kept(
    places: &Places,
    key: &str,
    pack: impl FnOnce(&mut Archive) -> Result<()>,
) -> Result<PathBuf> {
    let path = places
        .folder("parts")?
        .join(format!("{}.cpio", digest(key)));
    if !path.is_file() {
        let mut archive = Archive::default();
        pack(&mut archive)?;
        write_whole(&path, &archive.finish())?;
    }
    Ok(path)
}

/// Without symbols where `strip` is at hand: the guest's memory holds the whole file.
fn stripped(places: &Places, file: &Path) -> Result<Vec<u8>> {
    let Some(strip) = find("strip") else {
        return read(file);
    };
    let to = places
        .folder("parts")?
        .join(format!("stripped-{}", unique()));
    let status = Command::new(strip).arg("-o").arg(&to).arg(file).output()?;
    let bytes = if status.status.success() {
        read(&to)
    } else {
        read(file)
    };
    let _ = fs::remove_file(to);
    bytes
}

/// Compiles the program that writes the exit port.
fn exit_program(places: &Places) -> Result<PathBuf> {
    let program = places
        .state
        .join(format!("lab-exit-{}", digest(EXIT_SOURCE)));
    if program.is_file() {
        return Ok(program);
    }
    let cc = need("cc", "build-essential")?;
    let name = format!("lab-exit-{}", unique());
    let (source, object) = (
        places.state.join(&name).with_extension("c"),
        places.state.join(&name),
    );
    fs::write(&source, EXIT_SOURCE)?;
    let output = Command::new(cc)
        .args(["-O2", "-static", "-s", "-o"])
        .args([&object, &source])
        .output()?;
    let _ = fs::remove_file(source);
    ensure!(
        output.status.success(),
        "lab/lab-exit.c does not compile (apt: libc6-dev): {}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::rename(&object, &program)?;
    Ok(program)
}

pub(crate) fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| file.display().to_string())
}
