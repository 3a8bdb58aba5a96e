use std::fs;
use std::path::Path;

use super::*;

/// The cycles of a crate made of these files.
fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        fs::write(path, text).unwrap();
    }
    cycles_below(folder.path()).unwrap()
}

#[test]
fn no_crate_has_a_cycle_that_is_not_listed() {
    assert_eq!(breaches().unwrap(), Vec::<String>::new());
}

#[test]
fn allowed_cycles_are_small_and_have_a_reason() {
    for allowed in &ALLOWED {
        assert!((2..=3).contains(&allowed.modules.len()), "{:?}", allowed.modules);
        assert!(allowed.modules.is_sorted(), "{:?}", allowed.modules);
        assert!(allowed.reason.len() > 20, "{:?}", allowed.modules);
    }
}

#[test]
fn a_cycle_of_three_files_is_found() {
    let found = cycles_of(&[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "pub struct B; fn f() { super::c::g(); }"),
        ("c.rs", "use crate::{a::{A, Other}, d};"),
        ("d.rs", "pub struct D;"),
    ]);
    assert_eq!(found, [["a", "b", "c"]]);
}

#[test]
fn files_below_a_module_count_as_the_module() {
    let found = cycles_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod inner;"),
        ("a/inner.rs", "mod deep { use super::super::super::b::B; }"),
        ("b.rs", "mod part;"),
        ("b/part.rs", "use super::super::a;"),
    ]);
    assert_eq!(found, [["a", "b"]]);
}

#[test]
fn a_name_that_the_root_offers_is_of_its_module() {
    let found = cycles_of(&[
        ("lib.rs", "mod a; mod b; pub use a::{inner::Thing as Named, Other}; pub use b::B;"),
        ("a.rs", "use crate::B;"),
        ("b.rs", "use crate::Named;"),
    ]);
    assert_eq!(found, [["a", "b"]]);
}

#[test]
fn a_module_may_use_its_own_parts() {
    let found = cycles_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod b; mod c;"),
        ("a/b.rs", "use super::c; use crate::a::c::C; use crate::b::B;"),
        ("a/c.rs", "use super::b;"),
        ("b.rs", "pub(in crate::a) struct B;"),
    ]);
    assert_eq!(found, Vec::<Vec<String>>::new());
}

#[test]
fn tests_comments_and_texts_do_not_count() {
    let found = cycles_of(&[
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod support;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        (
            "b.rs",
            "//! See [`crate::a`].
            /// Like [`crate::a::A`].
            pub struct B;
            // use crate::a::A;
            const TEXT: &str = \"use crate::a::A\";
            #[cfg(test)]
            use crate::a::{A, Other};
            #[cfg(test)]
            fn helper<T, U>() -> crate::a::A { crate::a::A }
            #[cfg(all(test, unix))]
            mod more { use crate::a::A; }
            #[cfg(test)]
            mod tests;",
        ),
        ("b/tests.rs", "use crate::a::A;"),
        ("support.rs", "use crate::a::A;"),
    ]);
    assert_eq!(found, Vec::<Vec<String>>::new());
}

#[test]
fn what_is_built_without_tests_counts() {
    let found = cycles_of(&[
        ("main.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "#[cfg(test)] fn f() {} #[cfg(not(test))] use crate::a::A;"),
    ]);
    assert_eq!(found, [["a", "b"]]);
}
