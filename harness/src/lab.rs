//! x
pub(crate) mod addresses;
