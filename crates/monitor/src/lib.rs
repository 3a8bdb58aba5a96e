//! *The live screen*: a [`View`] of what goes on, drawn on a terminal of any size.
//!
//! Pure: the same view gives the same screen. It knows no terminal and no clock; whoever owns those
//! makes the view and calls [`draw`]. Foreign text must have been made harmless before it gets here.

mod panes;
mod view;
mod words;

#[cfg(test)]
mod tests;

pub use panes::draw;
pub use view::{
    Campaign, Client, Comparison, Difference, Latency, Level, Offered, Pane, Percentiles, Phase,
    Point, Run, Server, Standing, Sweep, View,
};
