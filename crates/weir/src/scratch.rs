//! A temporary folder.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// A folder of this process, gone with this value.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder for this use. One that is there belongs to another program, or to one that was killed
    /// and had the number of this process.
    ///
    /// # Errors
    /// The folder cannot be made: its path, and the variable that names its parent.
    pub(crate) fn new(what: &str) -> io::Result<Self> {
        let parent = env::temp_dir();
        let mut folder = parent.join(format!("weir-{what}-{}", std::process::id()));
        let make = |folder: &Path| fs::DirBuilder::new().mode(0o700).create(folder);
        let mut made = make(&folder);
        while matches!(&made, Err(why) if why.kind() == io::ErrorKind::AlreadyExists) {
            folder.as_mut_os_string().push("+");
            made = make(&folder);
        }
        made.map_err(|why| {
            let parent = parent.display();
            let named = match env::var_os("TMPDIR") {
                Some(_) => "which TMPDIR names",
                None => "as TMPDIR names no other",
            };
            io::Error::new(
                why.kind(),
                format!("cannot make a folder in {parent}, {named}: {why}"),
            )
        })?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in the folder for temporary files harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_another_program_left_is_no_hindrance() {
        let [first, second] = [(); 2].map(|()| Scratch::new("left").unwrap());
        assert_ne!(first.path(), second.path());
    }
}
