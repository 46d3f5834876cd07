//! Which CPU each thread has.
//!
//! In: the placement of a job. Out: a CPU for each thread, where there are enough.

use weir_run::failure;
use weir_schema::{Failure, PathSide, Placement};
use weir_sys::pin;
use weir_sys::topology::Topology;

/// The CPUs of threads.
pub(super) struct CpuChoice {
    /// One for each thread, of the nodes that the plan names; none where they are too few.
    pub(super) own: Option<Vec<u32>>,
    /// Others are left: for who watches the run, and everybody else.
    pub(super) has_more: bool,
}

impl CpuChoice {
    /// For so many threads of these sides: a server that is a run of its own takes the last ones, as its
    /// client may be on this machine too.
    pub(super) fn of(
        placement: &Placement,
        side: Option<PathSide>,
        threads: usize,
    ) -> Result<Self, Failure> {
        let allowed = pin::affinity().map_err(|why| failure("placement", None, why.to_string()))?;
        let topology = Topology::of_this_machine();
        let is_on_node = |cpu: u32| match &placement.nodes {
            None => true,
            // A kernel that knows no nodes has all of its CPUs on node 0.
            Some(nodes) => nodes.contains(&topology.node_of(cpu).unwrap_or(0)),
        };
        let allowed = allowed.as_slice();
        let on_node = allowed.iter().copied().filter(|cpu| is_on_node(*cpu));
        let own: Vec<u32> = match side {
            Some(PathSide::Server) => on_node.rev().take(threads).collect(),
            _ => on_node.take(threads).collect(),
        };
        let runs = if side.is_some() { 2 } else { 1 };
        Ok(Self {
            has_more: own.len() == threads && allowed.len() > threads * runs,
            own: (own.len() == threads).then_some(own),
        })
    }
}
