//! Names of error numbers of Linux, the same on every machine: results come from other ones too.
//!
//! In: a number, or a name. Out: the other. Not here: what a number means, which a report says.

/// Numbers and names: all up to 34, then those that storage and networks give.
const NAMES: &[(i32, &str)] = &[
    (1, "EPERM"),
    (2, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (7, "E2BIG"),
    (8, "ENOEXEC"),
    (9, "EBADF"),
    (10, "ECHILD"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (15, "ENOTBLK"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (18, "EXDEV"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (26, "ETXTBSY"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (29, "ESPIPE"),
    (30, "EROFS"),
    (31, "EMLINK"),
    (32, "EPIPE"),
    (33, "EDOM"),
    (34, "ERANGE"),
    (61, "ENODATA"),
    (62, "ETIME"),
    (84, "EILSEQ"),
    (95, "EOPNOTSUPP"),
    (104, "ECONNRESET"),
    (110, "ETIMEDOUT"),
    (117, "EUCLEAN"),
    (121, "EREMOTEIO"),
    (122, "EDQUOT"),
    (125, "ECANCELED"),
];

/// The name of a number, for example `EIO`.
pub fn name(errno: i32) -> Option<&'static str> {
    let found = NAMES.iter().find(|(number, _)| *number == errno);
    found.map(|(_, name)| *name)
}

/// The number of a name.
pub fn number(name: &str) -> Option<i32> {
    let found = NAMES.iter().find(|(_, known)| *known == name);
    found.map(|(number, _)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_to_each_other() {
        assert_eq!((name(28), number("ENOSPC")), (Some("ENOSPC"), Some(28)));
        assert_eq!((name(999), number("ENOTHING")), (None, None));
        assert!(NAMES.is_sorted_by(|a, b| a.0 < b.0));
        assert!(NAMES.iter().zip(1..=34).all(|((n, _), at)| *n == at));
    }
}
