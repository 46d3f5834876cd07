//! NUMA nodes that memory comes from.
//!
//! In: a policy. Out: it holds for the calling thread's later page faults, or for one mapping.
//! Not here: pages that are there already; they stay where they are.

#![expect(
    unsafe_code,
    reason = "libc has no wrapper for the memory policy calls"
)]

use crate::cpulist::CpuList;
use crate::error::SysError;
use std::io;
use std::ptr::NonNull;
use weir_units::Bytes;

/// Policy for the nodes of pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The policy that the process started with: near the CPU that touches a page first.
    Default,
    /// Only these nodes; a page fails when they are full.
    Bind(CpuList),
    /// This node first, others when it is full.
    Preferred(u32),
    /// These nodes in turn.
    Interleave(CpuList),
    /// The node of the CPU that touches a page first.
    Local,
}

/// The node of the page that this byte lies in, and the node of the CPU that this thread is on: nothing where
/// the kernel does not say.
pub fn nodes_of_page_and_cpu(byte: &u8) -> Option<(u32, u32)> {
    let (mut page, mut cpu): (libc::c_int, libc::c_uint) = (0, 0);
    // SAFETY: the kernel writes the one number; it looks at the page's place and not into it.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_get_mempolicy,
            &raw mut page,
            std::ptr::null::<libc::c_ulong>(),
            0,
            std::ptr::from_ref(byte),
            MPOL_F_NODE | MPOL_F_ADDR,
        )
    };
    let none = std::ptr::null_mut::<libc::c_uint>();
    // SAFETY: the kernel writes the one number; null stands for what is not asked for.
    let located = unsafe { libc::syscall(libc::SYS_getcpu, none, &raw mut cpu, none) };
    let page = u32::try_from(page).ok()?;
    (asked == 0 && located == 0).then_some((page, cpu))
}

/// Flags of `get_mempolicy(2)`: the node, of the page at an address.
const MPOL_F_NODE: libc::c_ulong = 1;
const MPOL_F_ADDR: libc::c_ulong = 2;
/// Modes of `set_mempolicy(2)`.
const MPOL_DEFAULT: libc::c_int = 0;
const MPOL_PREFERRED: libc::c_int = 1;
const MPOL_BIND: libc::c_int = 2;
const MPOL_INTERLEAVE: libc::c_int = 3;
const MPOL_LOCAL: libc::c_int = 4;

/// One above the largest node number that a policy may name.
const NODES: u32 = 1_024;

impl MemoryPolicy {
    /// Makes this the policy of the calling thread.
    ///
    /// # Errors
    /// [`SysError::Refused`] for nodes that do not exist or are not allowed.
    pub fn apply_to_thread(&self) -> Result<(), SysError> {
        let (mode, mask) = self.encode()?;
        // SAFETY: the mask is valid memory of as many bits as the last argument says, read only
        // during the call; the call touches no other memory of ours.
        let result =
            unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask.as_ptr(), bits(&mask)) };
        self.check(result)
    }

    /// Makes this the policy of a mapping's pages that are not there yet.
    pub(crate) fn apply_to_range(&self, start: NonNull<u8>, len: Bytes) -> Result<(), SysError> {
        let (mode, mask) = self.encode()?;
        // SAFETY: the kernel checks the range; a policy changes where pages come from, never
        // their contents. The mask is valid memory of as many bits as `bits` says.
        let result = unsafe {
            libc::syscall(
                libc::SYS_mbind,
                start.as_ptr(),
                len.0,
                mode,
                mask.as_ptr(),
                bits(&mask),
                0,
            )
        };
        self.check(result)
    }

    fn check(&self, result: libc::c_long) -> Result<(), SysError> {
        if result == 0 {
            return Ok(());
        }
        Err(SysError::Refused {
            what: format!("take memory by policy {self:?}"),
            source: io::Error::last_os_error(),
            remedy: Some("name nodes that exist, see /sys/devices/system/node/has_memory"),
        })
    }

    fn encode(&self) -> Result<(libc::c_int, Vec<libc::c_ulong>), SysError> {
        let one = |node: u32| [node].into_iter().collect();
        let (mode, nodes) = match self {
            Self::Default => (MPOL_DEFAULT, CpuList::default()),
            Self::Local => (MPOL_LOCAL, CpuList::default()),
            Self::Preferred(node) => (MPOL_PREFERRED, one(*node)),
            Self::Bind(nodes) => (MPOL_BIND, nodes.clone()),
            Self::Interleave(nodes) => (MPOL_INTERLEAVE, nodes.clone()),
        };
        if let Some(node) = nodes.as_slice().iter().find(|&&node| node >= NODES) {
            let message = format!(
                "there is no memory node {node}: the last possible is {}",
                NODES - 1
            );
            return Err(SysError::Invalid(message));
        }
        let mut mask: Vec<libc::c_ulong> = Vec::new();
        for &node in nodes.as_slice() {
            let word = (node / libc::c_ulong::BITS) as usize;
            mask.resize(mask.len().max(word + 1), 0);
            mask[word] |= 1 << (node % libc::c_ulong::BITS);
        }
        Ok((mode, mask))
    }
}

/// The mask's length as the kernel wants it: one more than the bits it holds.
fn bits(mask: &[libc::c_ulong]) -> usize {
    mask.len() * libc::c_ulong::BITS as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_become_a_mask() {
        let nodes: CpuList = "0,2,65".parse().unwrap();
        let (mode, mask) = MemoryPolicy::Interleave(nodes).encode().unwrap();
        assert_eq!(mode, MPOL_INTERLEAVE);
        assert_eq!(mask, [0b101, 0b10]);
        assert_eq!(bits(&mask), 129);
    }

    #[test]
    fn a_node_that_cannot_exist_is_refused() {
        let error = MemoryPolicy::Preferred(5_000)
            .apply_to_thread()
            .unwrap_err();
        assert!(error.to_string().contains("no memory node 5000"), "{error}");
    }

    #[test]
    fn a_page_and_a_cpu_have_nodes_of_this_machine() {
        let page = Box::new([1; 4096]);
        // A kernel without nodes, or a filter, says nothing.
        if let Some((page, cpu)) = nodes_of_page_and_cpu(&page[7]) {
            let known = std::fs::read_to_string("/sys/devices/system/node/possible").unwrap();
            let known: CpuList = known.parse().unwrap();
            assert!(
                [page, cpu]
                    .iter()
                    .all(|node| known.as_slice().contains(node))
            );
        }
    }

    #[test]
    fn the_default_policy_is_always_granted_unless_the_kernel_has_none() {
        match MemoryPolicy::Default.apply_to_thread() {
            Ok(()) => {}
            Err(SysError::Refused { source, .. }) => {
                let code = source.raw_os_error();
                let denied = [Some(libc::ENOSYS), Some(libc::EPERM)].contains(&code);
                assert!(denied, "{source}");
            }
            Err(other) => unreachable!("{other}"),
        }
    }
}
