//! Names that every engine and the runner use: the model, its errors, its limits.

pub(crate) use crate::array::{extent_of, range};
pub(crate) use crate::conditions::{no_akey, no_dkey};
pub(crate) use crate::error::{ObjectCode, ObjectError, code_of_io, refuse};
pub(crate) use crate::limits::*;
pub(crate) use crate::listing::visit_from;
pub(crate) use crate::pool::{
    ALL_EPOCHS, Container, directory_of, find_container, known, local, sum_of, there, word,
};
pub(crate) use crate::run::uuid_text;
pub(crate) use crate::store::*;
pub(crate) use crate::superblock::remove_pool;
