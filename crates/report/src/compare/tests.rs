//! Pages of comparisons made by hand.

mod answer;
pub(crate) mod fixtures;
pub(crate) mod junit;
mod markdown;
mod page;
pub(crate) mod shadow;
