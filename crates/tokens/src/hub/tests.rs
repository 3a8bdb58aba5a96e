use std::time::Duration;

use super::*;

fn written(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn vars<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    move |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn the_cache_is_where_the_first_variable_says() {
    let all = [
        ("HF_HUB_CACHE", "/a"),
        ("HUGGINGFACE_HUB_CACHE", "/b"),
        ("HF_HOME", "~/c"),
        ("XDG_CACHE_HOME", "/d"),
        ("HOME", "/home"),
    ];
    let expected =
        ["/a", "/b", "/home/c/hub", "/d/huggingface/hub", "/home/.cache/huggingface/hub"];
    for (index, path) in expected.iter().enumerate() {
        let cache = HubCache::from_vars(vars(&all[index..])).unwrap();
        assert_eq!(cache.root(), Path::new(path));
    }
    assert_eq!(HubCache::from_vars(vars(&[])), None);
    let empty = [("HF_HUB_CACHE", ""), ("HOME", "/h")];
    let cache = HubCache::from_vars(vars(&empty)).unwrap();
    assert_eq!(cache.root(), Path::new("/h/.cache/huggingface/hub"));
}

#[test]
fn ids_are_told_from_paths() {
    for id in ["gpt2", "org/name", "Org-1/Name_2.5-7B", "a/b.json"] {
        assert!(is_id(id), "{id}");
        assert!(looks_like_id(id), "{id}");
    }
    let wrong = [
        "", "/", "a/", "/a", "a/b/c", "..", "../a", "a/..", "a/../b", ".a", "a.", "a--b", "-a",
        "a b", "a\\b", "a\n", "ä/b", "a/b?x", "~/a", "a:b", "./a",
    ];
    for id in wrong {
        assert!(!is_id(id), "{id:?}");
        assert!(!looks_like_id(id), "{id:?}");
    }
    assert!(!is_id(&"a".repeat(97)));
    assert!(is_id("prompts.json") && !looks_like_id("prompts.json"));
    // Tests run in the folder of the crate.
    assert!(is_id("src") && !looks_like_id("src"));
    assert!(is_id("src/hub") && !looks_like_id("src/hub"));
}

#[test]
fn the_main_line_comes_before_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let cache = HubCache::new(folder.path().to_owned());
    let model = folder.path().join("models--org--name/snapshots");
    for (age, commit) in [(30, "aaa"), (20, "bbb"), (10, "ccc")] {
        written(&model.join(commit).join("tokenizer.json"), commit);
        let then = SystemTime::now() - Duration::from_secs(age);
        fs::File::open(model.join(commit)).unwrap().set_modified(then).unwrap();
    }
    let find = |file: &str| cache.find(RepoKind::Model, "org/name", file);
    let commit = |commit: &str| Some(model.join(commit).join("tokenizer.json"));
    assert_eq!(find("tokenizer.json"), commit("ccc"), "the newest without a main line");
    cache.write_ref(RepoKind::Model, "org/name", "bbb").unwrap();
    assert_eq!(find("tokenizer.json"), commit("bbb"), "the main line");
    fs::remove_file(model.join("bbb/tokenizer.json")).unwrap();
    assert_eq!(find("tokenizer.json"), commit("ccc"), "the newest that has it");
    assert_eq!(find("config.json"), None);
    assert_eq!(find("../aaa/tokenizer.json"), None);
    assert_eq!(cache.find(RepoKind::Dataset, "org/name", "tokenizer.json"), None);
    assert_eq!(cache.find(RepoKind::Model, "org/other", "tokenizer.json"), None);
}

#[test]
fn a_downloaded_file_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = HubCache::new(folder.path().join("hub"));
    let place = |file| cache.file_path(RepoKind::Dataset, "name", "0123abc", file);
    let places = ["data/train-0.parquet", "README.md", "data/deep/er/x.json"].map(|file| {
        let path = place(file).unwrap();
        written(&path, file);
        path
    });
    cache.write_ref(RepoKind::Dataset, "name", "0123abc").unwrap();
    let [train, readme, deep] = places;
    assert_eq!(
        cache.find(RepoKind::Dataset, "name", "data/train-0.parquet").as_ref(),
        Some(&train)
    );
    assert_eq!(cache.list_files(RepoKind::Dataset, "name"), [readme, deep, train]);
    assert!(cache.list_files(RepoKind::Model, "name").is_empty());
    assert_eq!(place("../x"), None);
    assert_eq!(place("/etc/x"), None);
    assert_eq!(place(""), None);
    assert_eq!(cache.file_path(RepoKind::Model, "../a", "abc", "x"), None);
    assert_eq!(cache.file_path(RepoKind::Model, "a", "../../x", "x"), None);
    assert!(cache.write_ref(RepoKind::Model, "a", "..").is_err());
}

#[cfg(unix)]
#[test]
fn links_to_files_count_and_links_to_folders_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let cache = HubCache::new(folder.path().to_owned());
    let snapshot = folder.path().join("models--m/snapshots/abc");
    written(&folder.path().join("models--m/blobs/1"), "x");
    fs::create_dir_all(&snapshot).unwrap();
    std::os::unix::fs::symlink("../../blobs/1", snapshot.join("tokenizer.json")).unwrap();
    std::os::unix::fs::symlink(".", snapshot.join("circle")).unwrap();
    std::os::unix::fs::symlink("../../blobs/2", snapshot.join("gone")).unwrap();
    assert_eq!(cache.list_files(RepoKind::Model, "m"), [snapshot.join("tokenizer.json")]);
    assert_eq!(cache.find(RepoKind::Model, "m", "gone"), None);
}

#[test]
fn paths_at_the_hub() {
    let path = |kind, file| download_path(kind, "org/name", file).unwrap();
    assert_eq!(path(RepoKind::Model, "tokenizer.json"), "/org/name/resolve/main/tokenizer.json");
    assert_eq!(
        path(RepoKind::Dataset, "data/a b#1.csv"),
        "/datasets/org/name/resolve/main/data/a%20b%231.csv"
    );
    assert_eq!(listing_path(RepoKind::Model, "gpt2").unwrap(), "/api/models/gpt2");
    assert_eq!(listing_path(RepoKind::Dataset, "a/b").unwrap(), "/api/datasets/a/b");
    assert_eq!(listing_path(RepoKind::Dataset, "a/b?c"), None);
    assert_eq!(download_path(RepoKind::Model, "a/b", "../c"), None);
    assert_eq!(download_path(RepoKind::Model, "..", "c"), None);
}

#[test]
fn a_listing_is_read_and_a_wrong_one_refused() {
    let answer = br#"{"id":"a/b","sha":"0123456789abcdef0123456789abcdef01234567","private":false,
        "siblings":[{"rfilename":"README.md"},{"rfilename":"data/x.parquet","size":3}]}"#;
    let listing = Listing::parse(answer).unwrap();
    assert_eq!(listing.commit, "0123456789abcdef0123456789abcdef01234567");
    assert_eq!(listing.files, ["README.md", "data/x.parquet"]);
    let error = |answer: &str| Listing::parse(answer.as_bytes()).unwrap_err().to_string();
    assert!(error("<html>").contains("line 1 column 1"));
    assert!(error(r#"{"error":"Repository not found"}"#).contains("missing field `sha`"));
    assert!(error(r#"{"sha":"../x"}"#).contains("`sha` is `../x`"));
    let outside = error(r#"{"sha":"a","siblings":[{"rfilename":"../../x"}]}"#);
    assert!(outside.contains("`rfilename` is `../../x`"));
}
