//! Facts in a module's file: the kernel it is for, and the modules it needs.
//!
//! In: the bytes of a `.ko`. Out: fields of its `modinfo`. Not here: building it (`module_build`).

/// A field such as `vermagic`, from the strings that the file carries.
fn field<'a>(bytes: &'a [u8], name: &str) -> Option<&'a str> {
    let wanted = format!("\0{name}=");
    let at = bytes
        .windows(wanted.len())
        .position(|window| window == wanted.as_bytes())?;
    let value = bytes.get(at + wanted.len()..)?;
    let end = value.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&value[..end]).ok()
}

/// The release that it was built for.
pub(crate) fn release(bytes: &[u8]) -> Option<&str> {
    field(bytes, "vermagic")?.split(' ').next()
}

/// The kernel's modules that have to be loaded before it.
pub(crate) fn needs(bytes: &[u8]) -> Vec<&str> {
    let list = field(bytes, "depends").unwrap_or_default();
    list.split(',').filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_module_are_found_anywhere_in_it() {
        let bytes = b"\x7fELF..\0license=GPL\0depends=null_blk,configfs\0vermagic=6.1.0-9-cloud SMP mod_unload \0x";
        assert_eq!(release(bytes), Some("6.1.0-9-cloud"));
        assert_eq!(needs(bytes), ["null_blk", "configfs"]);
        assert_eq!(release(b"no module"), None);
        assert!(needs(b"\0depends=\0").is_empty());
    }
}
