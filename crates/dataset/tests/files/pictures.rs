//! Pictures in Parquet, as data sets for vision models have them.

use std::path::Path;

use goodput_dataset::{Picture, has_pictures, matching_files, pictures};
use parquet::basic::Compression;

use crate::common::message;
use crate::tables::{Column, scratch, write};

/// The columns of COCO's captions: a picture, what is asked about it, and several answers.
const COCO: &str = "message schema { OPTIONAL BYTE_ARRAY question_id (UTF8);
    OPTIONAL GROUP image { OPTIONAL BYTE_ARRAY bytes; OPTIONAL BYTE_ARRAY path (UTF8); }
    OPTIONAL BYTE_ARRAY question (UTF8);
    OPTIONAL GROUP answer (LIST) { REPEATED GROUP list { OPTIONAL BYTE_ARRAY element (UTF8); } } }";

/// Four rows: whole; without a question; without bytes; without a picture at all.
fn coco(path: &Path) {
    let columns = [
        Column::Texts(&["a", "b", "c", "d"], &[1; 4], &[]),
        Column::Binary(&[b"\xff\xd8one", b"\x89PNG"], &[2, 2, 1, 0]),
        Column::Texts(&["1.jpg", "2.png", "3.jpg"], &[2, 2, 2, 0], &[]),
        Column::Texts(&["What is it?", "And this?", "x"], &[1, 0, 1, 1], &[]),
        Column::Texts(&["A dog.", " ", "A cat."], &[3, 3, 3, 0, 0], &[0, 0, 1, 0, 0]),
    ];
    write(path, COCO, &columns, Compression::SNAPPY);
}

/// All rows, whatever is wrong with them.
fn all(path: &Path) -> Vec<Result<Picture, String>> {
    let mut found = Vec::new();
    let visit = &mut |picture| {
        found.push(picture);
        Ok(true)
    };
    pictures(path, visit).unwrap();
    found
}

#[test]
fn rows_have_a_picture_and_a_text() {
    let (_folder, path) = scratch();
    coco(&path);
    assert!(has_pictures(&path));
    let picture = |bytes: &[u8], text: &str| {
        Ok(Picture { bytes: bytes.to_vec(), text: Some(text.to_owned()) })
    };
    let expected = [
        picture(b"\xff\xd8one", "What is it?"),
        // The first of its answers that is not blank.
        picture(b"\x89PNG", "A cat."),
        Err("field `image.bytes` is `null`, expected the file of a picture".to_owned()),
        Err("field `image` is `null`, expected a group with the `bytes` of a picture".to_owned()),
    ];
    assert_eq!(all(&path), expected);
}

#[test]
fn what_is_wrong_has_its_row_and_enough_is_enough() {
    let (_folder, path) = scratch();
    coco(&path);
    let mut rows = 0;
    let refuse = &mut |picture: Result<Picture, String>| {
        rows += 1;
        picture.map(|_| true)
    };
    let error = message(&pictures(&path, refuse).unwrap_err());
    assert!(error.starts_with("t.parquet, row 3: field `image.bytes` is `null`"), "{error}");
    assert_eq!(rows, 3);
    let mut rows = 0;
    let one = &mut |_| {
        rows += 1;
        Ok(false)
    };
    pictures(&path, one).unwrap();
    assert_eq!(rows, 1);
}

#[test]
fn tables_of_text_have_no_pictures() {
    let (folder, path) = scratch();
    let text = "message schema { OPTIONAL BYTE_ARRAY prompt (UTF8); }";
    write(&path, text, &[Column::Texts(&["a"], &[1], &[])], Compression::UNCOMPRESSED);
    assert!(!has_pictures(&path));
    let error = message(&pictures(&path, &mut |_| Ok(true)).unwrap_err());
    assert_eq!(error, "t.parquet: no column with pictures; columns there: `prompt`");
    std::fs::write(folder.path().join("t.jsonl"), "{}").unwrap();
    assert!(!has_pictures(&folder.path().join("t.jsonl")));
    assert!(!has_pictures(&folder.path().join("none.parquet")));
}

#[test]
fn a_pattern_names_several_tables_in_order() {
    let (folder, _) = scratch();
    for name in ["test-1.parquet", "test-0.parquet", "val-0.parquet"] {
        coco(&folder.path().join(name));
    }
    let pattern = folder.path().join("test-*.parquet");
    assert!(has_pictures(&pattern));
    let names = ["test-0.parquet", "test-1.parquet"].map(|name| folder.path().join(name));
    assert_eq!(matching_files(&pattern).unwrap(), names);
    let none = message(&matching_files(&folder.path().join("x*")).unwrap_err());
    assert_eq!(none, "x*: no file has such a name");
    assert!(!has_pictures(&folder.path().join("x*")));
}
