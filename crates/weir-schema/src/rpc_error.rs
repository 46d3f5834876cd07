//! The codes of services of the DAOS family: their names, their numbers.
//!
//! In a result a failed RPC has the name of its code ([`crate::ErrorCode::Named`]). Not here: who fails.

/// Names and numbers, from the first.
const CODES: &[(i32, &str)] = &[
    (-1001, "DER_NO_PERM"),
    (-1002, "DER_NO_HDL"),
    (-1003, "DER_INVAL"),
    (-1004, "DER_EXIST"),
    (-1005, "DER_NONEXIST"),
    (-1006, "DER_UNREACH"),
    (-1007, "DER_NOSPACE"),
    (-1008, "DER_ALREADY"),
    (-1009, "DER_NOMEM"),
    (-1010, "DER_NOSYS"),
    (-1011, "DER_TIMEDOUT"),
    (-1012, "DER_BUSY"),
    (-1013, "DER_AGAIN"),
    (-1014, "DER_PROTO"),
    (-1015, "DER_UNINIT"),
    (-1016, "DER_TRUNC"),
    (-1017, "DER_OVERFLOW"),
    (-1018, "DER_CANCELED"),
    (-1019, "DER_OOG"),
    (-1020, "DER_HG"),
    (-1021, "DER_UNREG"),
    (-1022, "DER_ADDRSTR_GEN"),
    (-1023, "DER_PMIX"),
    (-1024, "DER_IVCB_FORWARD"),
    (-1025, "DER_MISC"),
    (-1026, "DER_BADPATH"),
    (-1027, "DER_NOTDIR"),
    (-1028, "DER_CORPC_INCOMPLETE"),
    (-1029, "DER_NO_RAS_RANK"),
    (-1030, "DER_NOTATTACH"),
    (-1031, "DER_MISMATCH"),
    (-1032, "DER_EXCLUDED"),
    (-1033, "DER_NOREPLY"),
    (-1034, "DER_DOS"),
    (-1035, "DER_BAD_TARGET"),
    (-1036, "DER_GRPVER"),
    (-2001, "DER_IO"),
    (-2010, "DER_EP_RO"),
    (-2011, "DER_EP_OLD"),
    (-2012, "DER_KEY2BIG"),
    (-2013, "DER_REC2BIG"),
    (-2014, "DER_IO_INVAL"),
    (-2021, "DER_CSUM"),
    (-2025, "DER_TX_RESTART"),
];

/// Name of a code that is in no list.
pub const UNKNOWN_RPC_ERROR: &str = "DER_UNKNOWN";

/// The name of a code.
pub fn rpc_error_name(code: i32) -> Option<&'static str> {
    let found = CODES.iter().find(|(number, _)| *number == code);
    found.map(|(_, name)| *name)
}

/// The code of a name.
pub fn rpc_error_code(name: &str) -> Option<i32> {
    let found = CODES.iter().find(|(_, known)| *known == name);
    found.map(|(number, _)| *number)
}
