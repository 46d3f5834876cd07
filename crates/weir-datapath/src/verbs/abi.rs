//! The part of libibverbs' binary interface that weir uses: constants, structures, functions.
//!
//! In: the header `infiniband/verbs.h`, whose structures have kept their beginnings since 2006. Out: `repr(C)`
//! structures. A test compares sizes and offsets with the installed header. Not here: any call.
//!
//! Structures that the library allocates are reached by pointer, and may be longer than they are here.
#![expect(
    clippy::struct_field_names,
    reason = "fields have the names that C gives them"
)]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A structure of the C header: its size and, by field, offset and size.
#[cfg(test)]
struct AbiLayout {
    name: &'static str,
    size: usize,
    fields: &'static [(&'static str, usize, usize)],
}

macro_rules! structures {
    ($($(#[$note:meta])* $name:ident = $c:literal { $($field:ident: $kind:ty,)* })*) => {
        $(
            $(#[$note])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub(super) struct $name {
                $(pub(super) $field: $kind,)*
            }
        )*

        /// Every structure.
        #[cfg(test)]
        const LAYOUTS: &[AbiLayout] = &[$(AbiLayout {
            name: $c,
            size: size_of::<$name>(),
            fields: &[$((
                stringify!($field),
                std::mem::offset_of!($name, $field),
                size_of::<$kind>(),
            )),*],
        }),*];
    };
}

macro_rules! constants {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(pub(super) const $name: $kind = $value;)*

        /// Every constant by its name in C.
        #[cfg(test)]
        const CONSTANTS: &[(&str, i64)] = &[$((stringify!($name), $name as i64)),*];
    };
}

constants! {
    IBV_ACCESS_LOCAL_WRITE: c_int = 1;
    IBV_PORT_ACTIVE: c_int = 4;
    IBV_LINK_LAYER_ETHERNET: u8 = 2;
    IBV_QPT_RC: c_int = 2;
    IBV_QPT_UD: c_int = 4;
    IBV_QPS_INIT: c_int = 1;
    IBV_QPS_RTR: c_int = 2;
    IBV_QPS_RTS: c_int = 3;
    IBV_QPS_ERR: c_int = 6;
    IBV_QP_STATE: c_int = 1;
    IBV_QP_ACCESS_FLAGS: c_int = 1 << 3;
    IBV_QP_PKEY_INDEX: c_int = 1 << 4;
    IBV_QP_PORT: c_int = 1 << 5;
    IBV_QP_QKEY: c_int = 1 << 6;
    IBV_QP_AV: c_int = 1 << 7;
    IBV_QP_PATH_MTU: c_int = 1 << 8;
    IBV_QP_TIMEOUT: c_int = 1 << 9;
    IBV_QP_RETRY_CNT: c_int = 1 << 10;
    IBV_QP_RNR_RETRY: c_int = 1 << 11;
    IBV_QP_RQ_PSN: c_int = 1 << 12;
    IBV_QP_MAX_QP_RD_ATOMIC: c_int = 1 << 13;
    IBV_QP_MIN_RNR_TIMER: c_int = 1 << 15;
    IBV_QP_SQ_PSN: c_int = 1 << 16;
    IBV_QP_MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
    IBV_QP_DEST_QPN: c_int = 1 << 20;
    IBV_WR_SEND: c_int = 2;
    IBV_SEND_SIGNALED: c_uint = 2;
    IBV_WC_SUCCESS: c_int = 0;
    IBV_WC_WR_FLUSH_ERR: c_int = 5;
}

/// A call of a driver's table that weir never makes.
type UnusedCall = *const c_void;
/// Objects that are reached by their addresses alone.
pub(super) type IbvDevice = c_void;
pub(super) type IbvAh = c_void;

structures! {
    IbvContext = "struct ibv_context" {
        device: *mut IbvDevice,
        ops: IbvContextOps,
    }
    /// Functions of a device's driver. Fields without a name in C are skipped.
    IbvContextOps = "struct ibv_context_ops" {
        skipped_before_poll: [UnusedCall; 11],
        poll_cq: Option<unsafe extern "C" fn(*mut IbvCq, c_int, *mut IbvWc) -> c_int>,
        skipped_before_srq: [UnusedCall; 8],
        post_srq_recv: Option<
            unsafe extern "C" fn(*mut IbvSrq, *mut IbvRecvWr, *mut *mut IbvRecvWr) -> c_int
        >,
        skipped_before_send: [UnusedCall; 4],
        post_send: Option<
            unsafe extern "C" fn(*mut IbvQp, *mut IbvSendWr, *mut *mut IbvSendWr) -> c_int
        >,
        post_recv: Option<
            unsafe extern "C" fn(*mut IbvQp, *mut IbvRecvWr, *mut *mut IbvRecvWr) -> c_int
        >,
        skipped_after: [UnusedCall; 5],
    }
    IbvPd = "struct ibv_pd" {
        context: *mut IbvContext,
    }
    IbvCq = "struct ibv_cq" {
        context: *mut IbvContext,
    }
    IbvSrq = "struct ibv_srq" {
        context: *mut IbvContext,
    }
    IbvMr = "struct ibv_mr" {
        context: *mut IbvContext,
        pd: *mut IbvPd,
        addr: *mut c_void,
        length: usize,
        handle: u32,
        lkey: u32,
    }
    IbvQp = "struct ibv_qp" {
        context: *mut IbvContext,
        qp_context: *mut c_void,
        pd: *mut IbvPd,
        send_cq: *mut IbvCq,
        recv_cq: *mut IbvCq,
        srq: *mut IbvSrq,
        handle: u32,
        qp_num: u32,
    }
    /// Allocated here.
    IbvPortAttr = "struct ibv_port_attr" {
        state: c_int,
        max_mtu: c_int,
        active_mtu: c_int,
        gid_tbl_len: c_int,
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        port_cap_flags2: u16,
    }
    IbvSrqAttr = "struct ibv_srq_attr" {
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
    }
    /// Allocated here.
    IbvSrqInitAttr = "struct ibv_srq_init_attr" {
        srq_context: *mut c_void,
        attr: IbvSrqAttr,
    }
    IbvQpCap = "struct ibv_qp_cap" {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
    }
    /// Allocated here.
    IbvQpInitAttr = "struct ibv_qp_init_attr" {
        qp_context: *mut c_void,
        send_cq: *mut IbvCq,
        recv_cq: *mut IbvCq,
        srq: *mut IbvSrq,
        cap: IbvQpCap,
        qp_type: c_int,
        sq_sig_all: c_int,
    }
    IbvGlobalRoute = "struct ibv_global_route" {
        dgid: [u64; 2],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
    }
    /// Allocated here.
    IbvAhAttr = "struct ibv_ah_attr" {
        grh: IbvGlobalRoute,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }
    /// Allocated here.
    IbvQpAttr = "struct ibv_qp_attr" {
        qp_state: c_int,
        cur_qp_state: c_int,
        path_mtu: c_int,
        path_mig_state: c_int,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: c_uint,
        cap: IbvQpCap,
        ah_attr: IbvAhAttr,
        alt_ah_attr: IbvAhAttr,
        pkey_index: u16,
        alt_pkey_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        rate_limit: u32,
    }
    IbvSge = "struct ibv_sge" {
        addr: u64,
        length: u32,
        lkey: u32,
    }
    /// Allocated here. The unions of C are as a message of UD has them.
    IbvSendWr = "struct ibv_send_wr" {
        wr_id: u64,
        next: *mut IbvSendWr,
        sg_list: *mut IbvSge,
        num_sge: c_int,
        opcode: c_int,
        send_flags: c_uint,
        imm_data: u32,
        ud_ah: *mut IbvAh,
        ud_remote_qpn: u32,
        ud_remote_qkey: u32,
        skipped_of_atomic: [u64; 2],
        skipped_of_xrc: u64,
        skipped_of_windows: [u64; 6],
    }
    /// Allocated here.
    IbvRecvWr = "struct ibv_recv_wr" {
        wr_id: u64,
        next: *mut IbvRecvWr,
        sg_list: *mut IbvSge,
        num_sge: c_int,
    }
    /// Allocated here.
    IbvWc = "struct ibv_wc" {
        wr_id: u64,
        status: c_int,
        opcode: c_int,
        vendor_err: u32,
        byte_len: u32,
        imm_data: u32,
        qp_num: u32,
        src_qp: u32,
        wc_flags: c_uint,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    }
}

weir_sys::library_calls! {
    /// Functions of the library.
    pub(super) struct VerbsCalls {
        get_device_list = c"ibv_get_device_list"(*mut c_int) -> *mut *mut IbvDevice;
        free_device_list = c"ibv_free_device_list"(*mut *mut IbvDevice);
        get_device_name = c"ibv_get_device_name"(*mut IbvDevice) -> *const c_char;
        open_device = c"ibv_open_device"(*mut IbvDevice) -> *mut IbvContext;
        close_device = c"ibv_close_device"(*mut IbvContext) -> c_int;
        query_port = c"ibv_query_port"(*mut IbvContext, u8, *mut IbvPortAttr) -> c_int;
        alloc_pd = c"ibv_alloc_pd"(*mut IbvContext) -> *mut IbvPd;
        dealloc_pd = c"ibv_dealloc_pd"(*mut IbvPd) -> c_int;
        reg_mr = c"ibv_reg_mr"(*mut IbvPd, *mut c_void, usize, c_int) -> *mut IbvMr;
        dereg_mr = c"ibv_dereg_mr"(*mut IbvMr) -> c_int;
        create_cq = c"ibv_create_cq"(
            *mut IbvContext, c_int, *mut c_void, *mut c_void, c_int
        ) -> *mut IbvCq;
        destroy_cq = c"ibv_destroy_cq"(*mut IbvCq) -> c_int;
        create_srq = c"ibv_create_srq"(*mut IbvPd, *mut IbvSrqInitAttr) -> *mut IbvSrq;
        destroy_srq = c"ibv_destroy_srq"(*mut IbvSrq) -> c_int;
        create_qp = c"ibv_create_qp"(*mut IbvPd, *mut IbvQpInitAttr) -> *mut IbvQp;
        modify_qp = c"ibv_modify_qp"(*mut IbvQp, *mut IbvQpAttr, c_int) -> c_int;
        destroy_qp = c"ibv_destroy_qp"(*mut IbvQp) -> c_int;
        create_ah = c"ibv_create_ah"(*mut IbvPd, *mut IbvAhAttr) -> *mut IbvAh;
        destroy_ah = c"ibv_destroy_ah"(*mut IbvAh) -> c_int;
        status_text = c"ibv_wc_status_str"(c_int) -> *const c_char;
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;
    use std::io::Write as _;
    use std::process::Command;

    use super::*;

    /// Structures that weir allocates: what the library takes for one has to lie within.
    const OWN: [&str; 9] = [
        "struct ibv_port_attr",
        "struct ibv_srq_init_attr",
        "struct ibv_qp_init_attr",
        "struct ibv_ah_attr",
        "struct ibv_qp_attr",
        "struct ibv_send_wr",
        "struct ibv_recv_wr",
        "struct ibv_wc",
        "struct ibv_sge",
    ];

    fn claims() -> Vec<String> {
        let mut claims = Vec::new();
        for layout in LAYOUTS {
            let (name, size) = (layout.name, layout.size);
            let than = if OWN.contains(&name) { "==" } else { ">=" };
            claims.push(format!("sizeof({name}) {than} {size}"));
            let known = layout.fields.iter();
            for (field, offset, bytes) in known.filter(|one| !one.0.starts_with("skipped")) {
                let field = field.replace("ud_", "wr.ud.");
                claims.push(format!("offsetof({name}, {field}) == {offset}"));
                claims.push(format!("sizeof((({name} *)0)->{field}) == {bytes}"));
            }
        }
        let constants = CONSTANTS.iter();
        claims.extend(constants.map(|(name, value)| format!("{name} == {value}")));
        claims
    }

    /// Writes that a test has found nothing to test, where the test tool reads it.
    fn skip(why: &str) {
        let Some(path) = std::env::var_os("WEIR_SKIP_LOG") else {
            return eprintln!("skipped: {why}");
        };
        let mut log = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        writeln!(
            log,
            "structures_and_constants_are_those_of_the_installed_header: {why}"
        )
        .unwrap();
    }

    #[test]
    fn structures_and_constants_are_those_of_the_installed_header() {
        let scratch =
            |name: &str| std::env::temp_dir().join(format!("weir-{}-{name}", std::process::id()));
        let (source, program) = (scratch("verbs.c"), scratch("verbs"));
        let mut text = "#include <stddef.h>\n#include <stdio.h>\n\
             #include <infiniband/verbs.h>\nint main(void) {\n"
            .to_owned();
        for claim in claims() {
            writeln!(text, "    if (!({claim})) puts({claim:?});").unwrap();
        }
        text += "    return 0;\n}\n";
        fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        let built = compiler.arg("-o").arg(&program).arg(&source).output();
        fs::remove_file(&source).unwrap();
        let built = match built {
            Ok(built) => built,
            Err(why) => return skip(&format!("no C compiler ({why})")),
        };
        let complaints = String::from_utf8_lossy(&built.stderr);
        if complaints.contains("infiniband/verbs.h: No such file") {
            return skip("no header of libibverbs (Debian package libibverbs-dev)");
        }
        assert!(built.status.success(), "{complaints}");
        let said = Command::new(&program).output().unwrap();
        fs::remove_file(program).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&said.stdout),
            "",
            "these do not hold"
        );
    }
}
