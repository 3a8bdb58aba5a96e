//! Comparisons: is B really faster than A, and by how much.

pub mod floor;
pub mod gates;
pub mod names;
pub mod proof;
