//! `cargo xtask package`: a Debian package, a wheel and an archive of the release.
//!
//! In: the tree at its last commit. Out: `target/package/*.deb`, `*.whl`, `*.tar.xz`, the symbols of the
//! program in `*.debug`, and their sha256 sums. The same commit gives the same bytes wherever it is built: times are those of the commit, paths of
//! the building machine are taken out, members are sorted. `--check` shows that: it packs once more
//! from a clone in another folder, has lintian read the package, installs, runs and purges it in
//! a bare Debian root, and installs and runs the wheel in an empty Python environment.

mod check;
mod deb;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::cmd::Cmd;
use crate::packages;

/// Where packages are made, below the tree.
const OUT: &str = "target/package";

/// Contents of all packages.
struct Release {
    /// The program, without symbols.
    program: PathBuf,
    /// Its symbols: `gdb` finds the file by its name where it lies beside the program.
    symbols: PathBuf,
    version: String,
    /// Seconds since 1970: when the commit was made.
    epoch: u64,
    /// Where packages and what goes into them lie.
    out: PathBuf,
}

/// Builds the packages, and checks them where that is asked for.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let checks = match args {
        [] => false,
        [word] if word == "--check" => true,
        [other, ..] => bail!("`{other}`: `package` takes --check or nothing"),
    };
    packages::ensure("package");
    let root = std::env::current_dir()?;
    let changed = Cmd::new("git status --porcelain --untracked-files=no").read()?;
    if checks && !changed.is_empty() {
        bail!("commit first: a clone has nothing of\n{changed}");
    }
    let made = make(&root)?;
    for file in &made {
        println!("{}  {}", sum(file)?, file.display());
    }
    if checks {
        check::run(&root, &made)?;
    }
    Ok(())
}

/// Makes the packages of a tree; their files and that of the symbols.
fn make(root: &Path) -> Result<[PathBuf; 4]> {
    let release = build(root)?;
    let (deb, tree) = deb::make(root, &release)?;
    Ok([
        deb,
        wheel::make(root, &release)?,
        archive(&release, &tree)?,
        release.symbols,
    ])
}

/// The files of the Debian package in an archive, for other systems.
fn archive(release: &Release, tree: &Path) -> Result<PathBuf> {
    let name = format!("weir-{}", release.version);
    let machine = std::env::consts::ARCH;
    let file = release.out.join(format!("{name}-{machine}-linux.tar.xz"));
    Cmd::new("tar --create --xz --sort=name --owner=0 --group=0 --numeric-owner")
        .arg(format!("--mtime=@{}", release.epoch))
        // Links to the program are relative, and stay so.
        .arg(format!("--transform=flags=r;s,^usr,{name},"))
        .args([Path::new("--file"), &file, Path::new("--directory"), tree])
        .arg("usr")
        .run()?;
    Ok(file)
}

fn build(root: &Path) -> Result<Release> {
    let git = |args: &str| -> Result<String> {
        let said = Cmd::new("git -C").arg(root).args(args.split(' ')).read()?;
        Ok(said.trim().to_owned())
    };
    let epoch: u64 = git("log -1 --format=%ct")?.parse()?;
    let out = root.join(OUT);
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    // The C code of dependencies has its paths from the same place.
    let remap = |from: &str, to: &str| format!("--remap-path-prefix={from}={to}");
    let flags = [
        remap(&root.display().to_string(), "/weir"),
        remap(&home, "/cargo"),
    ];
    let c_flags = format!(
        "-ffile-prefix-map={home}=/cargo -ffile-prefix-map={}=/weir",
        root.display()
    );
    Cmd::new("cargo build --profile profiling --locked --package weir")
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(out.join("build"))
        .env("RUSTFLAGS", flags.join(" "))
        .env("CFLAGS", c_flags)
        .env("SOURCE_DATE_EPOCH", epoch.to_string())
        .run()?;
    let built = out.join("build/profiling/weir");
    let said = Cmd::program(&built).arg("--version").read()?;
    let version = said.trim().strip_prefix("weir ").context("no version")?;
    let (program, symbols) = split(&built, &out, version)?;
    Ok(Release {
        program,
        symbols,
        version: version.to_owned(),
        epoch,
        out,
    })
}

/// Takes the symbols out of a program: the program without them, and their file, which it names.
fn split(built: &Path, out: &Path, version: &str) -> Result<(PathBuf, PathBuf)> {
    let program = out.join("weir");
    let machine = std::env::consts::ARCH;
    let symbols = out.join(format!("weir-{version}-{machine}.debug"));
    Cmd::new("objcopy --only-keep-debug --compress-debug-sections")
        .args([built, &symbols])
        .run()?;
    let link = format!("--add-gnu-debuglink={}", symbols.display());
    Cmd::new("objcopy --strip-all")
        .arg(link)
        .args([built, &program])
        .run()?;
    Ok((program, symbols))
}

/// The sha256 of a file, in hexadecimal digits.
fn sum(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| file.display().to_string())?;
    let digest = Sha256::digest(&bytes);
    let digits: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(digits.concat())
}

/// Writes a file and the folders above it.
fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content).with_context(|| path.display().to_string())
}

/// An empty folder of that name.
fn emptied(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| path.display().to_string())?;
    }
    fs::create_dir_all(path).with_context(|| path.display().to_string())
}
