//! Checks of packages against their descriptions.
//!
//! In: a tree and its packages. Out: nothing, or what is wrong. Everything that is made for that lies
//! in a folder for temporary files and is gone afterwards.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{make, sum};
use crate::cmd::Cmd;

/// Complaint about a part that only an upload to Debian itself needs: to close the request for the
/// package.
const NO_UPLOAD: &str = "initial-upload-closes-no-bugs";
/// Complaints about an address that is none.
const NO_ADDRESS: [&str; 2] = ["bogus-mail-host", "bogus-mail-host-in-debian-changelog"];

pub(super) fn run(root: &Path, made: &[PathBuf; 4]) -> Result<()> {
    let [deb, wheel, archive, symbols] = made;
    let mut suppressed = vec![NO_UPLOAD];
    // A package that says that it is nobody's may be nobody's.
    if std::env::var_os("DEBEMAIL").is_none_or(|mail| mail.is_empty()) {
        suppressed.extend(NO_ADDRESS);
    }
    Cmd::new("lintian --fail-on error,warning --suppress-tags")
        .arg(suppressed.join(","))
        .arg(deb)
        .run()?;
    let scratch = Scratch::new()?;
    in_a_bare_root(&scratch.0.join("root"), deb)?;
    in_an_empty_environment(&scratch.0.join("python"), wheel)?;
    from_an_archive(&scratch.0.join("archive"), archive, symbols)?;
    equal_from_elsewhere(root, &scratch.0.join("elsewhere"), made)
}

/// Installs the package in a Debian that holds what is essential, runs the program, purges it.
fn in_a_bare_root(bare: &Path, deb: &Path) -> Result<()> {
    Cmd::new("mmdebstrap --variant=apt bookworm")
        .arg(bare)
        .run()?;
    let name = deb.file_name().context("the package has no name")?;
    std::fs::copy(deb, bare.join(name))?;
    let within = |args: &str| Cmd::new("chroot").arg(bare).args(args.split(' '));
    let before = files(bare)?;
    within("dpkg -i").arg(Path::new("/").join(name)).run()?;
    within("weir --version").run()?;
    within("weir run --calibrate").run()?;
    within("weir run --show-plan /usr/share/doc/weir/examples/first.fio").read()?;
    within("/usr/lib/weir/doors/fio --version").run()?;
    within("dpkg --purge weir").run()?;
    let left: Vec<String> = files(bare)?
        .into_iter()
        .filter(|file| !before.contains(file))
        .collect();
    if !left.is_empty() {
        bail!("purging the package leaves {}", left.join(", "));
    }
    Ok(())
}

/// The files of programs and of what belongs to them.
fn files(bare: &Path) -> Result<Vec<String>> {
    let said = Cmd::new("find -L")
        .arg(bare.join("usr"))
        .args(["-name", "*weir*"])
        .read()?;
    Ok(said.lines().map(str::to_owned).collect())
}

fn in_an_empty_environment(folder: &Path, wheel: &Path) -> Result<()> {
    Cmd::new("/usr/bin/python3 -m venv").arg(folder).run()?;
    let of = |program: &str| folder.join("bin").join(program);
    Cmd::program(&of("pip"))
        .args(["install", "--no-index", "--quiet"])
        .arg(wheel)
        .run()?;
    Cmd::program(&of("weir")).arg("--version").run()?;
    Cmd::program(&of("pip")).args(["check"]).run()
}

/// Unpacks the archive and runs what is in it; the program names the file of its symbols.
fn from_an_archive(folder: &Path, archive: &Path, symbols: &Path) -> Result<()> {
    std::fs::create_dir(folder)?;
    Cmd::new("tar --strip-components=1 --directory")
        .args([folder, Path::new("--extract"), Path::new("--file"), archive])
        .run()?;
    Cmd::program(&folder.join("lib/weir/doors/fio"))
        .arg("--version")
        .run()?;
    let named = Cmd::new("readelf --string-dump=.gnu_debuglink")
        .arg(folder.join("bin/weir"))
        .read()?;
    let name = symbols.file_name().context("the symbols have no name")?;
    if !named.contains(&*name.to_string_lossy()) {
        bail!(
            "the program names other symbols than {}: {named}",
            symbols.display()
        );
    }
    let debug = Cmd::new("readelf --sections --wide").arg(symbols).read()?;
    if !debug.contains(".debug_line") {
        bail!("{} holds no lines", symbols.display());
    }
    Ok(())
}

/// A clone in another folder gives the same bytes.
fn equal_from_elsewhere(root: &Path, clone: &Path, made: &[PathBuf; 4]) -> Result<()> {
    Cmd::new("git clone --quiet").args([root, clone]).run()?;
    for (first, second) in made.iter().zip(make(clone)?) {
        if sum(first)? != sum(&second)? {
            bail!(
                "{} differs from what a clone in another folder gives",
                first.display()
            );
        }
        println!("equal: {}", first.display());
    }
    Ok(())
}

/// A folder for temporary files, gone with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("weir-package-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in the folder for temporary files harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
