//! What pages are written with, format by format. Nothing here knows what a page is about.

pub mod html;
pub mod junit;
pub mod markdown;
pub mod page;
pub mod pieces;
pub mod text;
