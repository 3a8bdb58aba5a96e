use super::*;

fn odd(text: &str) -> Vec<String> {
    let build = |word: &BannedWord| {
        let pattern = RegexBuilder::new(word.pattern).case_insensitive(true).build().unwrap();
        (pattern, word.instead)
    };
    let patterns: Vec<_> = WORDS.iter().map(build).collect();
    odd_words(&patterns, text).collect()
}

#[test]
fn odd_words_are_found_and_plain_ones_pass() {
    assert_eq!(odd("Nobody answers\nfine\nthis is no number").len(), 2);
    assert!(odd("this is no number")[0].starts_with("1: `is no number`"));
    assert_eq!(odd("the server is no longer there; there is no server"), [""; 0]);
    assert_eq!(odd("besides, some bodies are fine"), [""; 0]);
    assert_eq!(odd("pub fn of(text: &str)").len(), 1);
    assert_eq!(odd("struct Clerk;").len(), 1);
    assert_eq!(odd("the centre\na colour\nlabelled by\nanalysed, normalised").len(), 4);
    assert_eq!(odd("aria-labelledby, an optimist, two analyses"), [""; 0]);
}

#[test]
fn only_prose_is_wrapped() {
    let long = "x".repeat(121);
    let text = format!("{long}\n| {long}\n```\n{long}\n```\n{}", "y".repeat(120));
    let found: Vec<_> = long_lines(&text).collect();
    assert_eq!(found, ["1: 121 columns: wrap prose at 100"]);
}

#[test]
fn links_lead_to_files_and_headings() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("a.md");
    fs::write(folder.path().join("b.md"), "# One `two`: three\n\n## Again\n\n## Again\n").unwrap();
    let text = "[x](b.md) [x](b.md#one-two-three) [x](b.md#again-1) [x](#here) [x](c.md) \
                [x](b.md#no) [x](https://example.com/none) `[x](d.md)`\n\n# Here\n";
    fs::write(&page, text).unwrap();
    let found: Vec<_> = dead_links(&page, text).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("`c.md`") && found[1].contains("`b.md#no`"));
}

#[test]
fn named_files_exist() {
    let root = tempfile::tempdir().unwrap();
    let tests = root.path().join("crates/a/tests/b");
    fs::create_dir_all(&tests).unwrap();
    fs::create_dir_all(root.path().join("crates/a/src")).unwrap();
    fs::write(tests.join("c.rs"), "").unwrap();
    fs::write(root.path().join("crates/a/src/e.rs"), "").unwrap();
    let text =
        "`a/tests/b/{c,d}.rs` `a/tests` `a/e.rs` `crates/a/src/e.rs` `z/tests/b` `a/b` a/f.rs";
    let found = paths::missing(root.path(), "README.md", text);
    assert_eq!(found, ["`a/tests/b/d.rs` does not exist", "`z/tests/b` does not exist"]);
    assert_eq!(paths::missing(root.path(), "docs/design/020-house.md", text), [""; 0]);
}
