//! Pages of runs that are written down here.

mod fixture;
mod repeats;
mod run;
