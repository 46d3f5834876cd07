//! Every kind of world, from the outside.

mod alone;
mod launch;
mod slow;
