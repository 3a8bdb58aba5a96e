//! What pages are written with, format by format. Nothing here knows what a page is about.

pub(crate) mod html;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod page;
pub(crate) mod pieces;
pub(crate) mod text;
