//! Pages of comparisons made by hand.

mod answer;
mod fixtures;
mod junit;
mod markdown;
mod page;
