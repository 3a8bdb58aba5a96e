//! The tables of METHOD 3.4 and 3.14, degenerate cases, and how often intervals hold the truth.

mod coverage;

use super::*;
