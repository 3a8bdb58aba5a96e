use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;
use crate::toml_file::read_toml;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct What {
    name: String,
    base: Base,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Base {
    url: String,
    headers: Vec<Header>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Header {
    name: String,
    value: String,
}

fn what() -> What {
    let header = Header { name: "x-key".to_owned(), value: "hunter22".to_owned() };
    let url = "https://me:hunter22@h/v1?key=hunter22&hunter22".to_owned();
    What { name: "chat".to_owned(), base: Base { url, headers: vec![header] } }
}

fn sweep() -> (tempfile::TempDir, PathBuf, CampaignFolder) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sweep");
    let sweep = CampaignFolder::create(Campaign::Sweep, &path, &what()).unwrap();
    (folder, path, sweep)
}

#[test]
fn what_was_asked_comes_back_without_secrets() {
    let (_folder, path, sweep) = sweep();
    let text = fs::read_to_string(path.join("sweep.toml")).unwrap();
    assert!(!text.contains("hunter22"), "{text}");
    let found: What = sweep.read_asked().unwrap();
    assert_eq!(found.base.url, "https://[redacted]@h/v1?key=[redacted]&[redacted]");
    assert_eq!((found.base.headers[0].name.as_str(), found.name.as_str()), ("x-key", "chat"));
    assert_eq!(url_without_secrets("mock:chat?slots=4"), "mock:chat?slots=4");
    assert_eq!(url_without_secrets("h:8000/v1?"), "h:8000/v1");
    assert!(matches!(
        CampaignFolder::create(Campaign::Sweep, &path, &what()),
        Err(FolderError::Occupied(_))
    ));
    assert!(sweep.read_asked::<u32>().is_err());
}

#[test]
fn queries_of_pages_are_hidden_too() {
    let text = r#"
        [plan.observe]
        metrics_urls = ["http://a/metrics?token=hunter22", "http://b/metrics"]
        gpu = { exporters = ["http://c/metrics?hunter22"] }
    "#;
    let mut table: toml::Table = toml::from_str(text).unwrap();
    redact_plans(&mut table);
    let observe = &table["plan"]["observe"];
    assert_eq!(observe["metrics_urls"][0].as_str(), Some("http://a/metrics?token=[redacted]"));
    assert_eq!(observe["metrics_urls"][1].as_str(), Some("http://b/metrics"));
    assert_eq!(observe["gpu"]["exporters"][0].as_str(), Some("http://c/metrics?[redacted]"));
}

#[test]
fn only_a_sweep_is_one() {
    let folder = tempfile::tempdir().unwrap();
    assert!(CampaignFolder::open(Campaign::Sweep, folder.path()).is_none());
    let error = CampaignFolder::resume(Campaign::Sweep, folder.path()).unwrap_err();
    assert!(error.to_string().ends_with("is not a sweep folder: it has no sweep.toml"), "{error}");
    assert!(
        !folder.path().join("lock").exists(),
        "nothing is left in a folder that is not a \
                                                   sweep"
    );
}

#[test]
fn only_one_process_goes_on_with_it() {
    let (_folder, path, sweep) = sweep();
    assert!(matches!(CampaignFolder::resume(Campaign::Sweep, &path), Err(FolderError::Locked(_))));
    assert!(CampaignFolder::open(Campaign::Sweep, &path).is_some(), "anyone may read");
    drop(sweep);
    let again = CampaignFolder::resume(Campaign::Sweep, &path).unwrap();
    assert!(matches!(CampaignFolder::resume(Campaign::Sweep, &path), Err(FolderError::Locked(_))));
    assert_eq!(again.path(), path);
}

#[test]
fn points_come_in_the_order_of_their_numbers() {
    let (_folder, path, sweep) = sweep();
    assert!(sweep.list_points().is_empty());
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(sweep.point_path(1, "rate-22.4"), path.join("points/001-rate-22.4"));
    for (number, label) in [(1000, "rate-3"), (2, "users-16"), (1, "users-4"), (12, "rate-1")] {
        fs::create_dir_all(sweep.point_path(number, label)).unwrap();
    }
    for other in ["x", "x-1", "-1", "3"] {
        fs::create_dir(path.join("points").join(other)).unwrap();
    }
    fs::write(path.join("points/004-rate-2"), "a file").unwrap();
    let found: Vec<_> = sweep.list_points().into_iter().map(|(n, path)| (n, name(path))).collect();
    let expected = ["001-users-4", "002-users-16", "012-rate-1", "1000-rate-3"];
    assert_eq!(found.iter().map(|point| point.0).collect::<Vec<_>>(), [1, 2, 12, 1000]);
    assert_eq!(found.iter().map(|point| point.1.as_str()).collect::<Vec<_>>(), expected);
}

#[test]
fn what_was_set_aside_is_kept() {
    let (_folder, path, sweep) = sweep();
    for text in ["first", "second"] {
        fs::create_dir_all(sweep.point_path(7, "rate-5")).unwrap();
        fs::write(sweep.point_path(7, "rate-5").join("log"), text).unwrap();
        fs::create_dir_all(sweep.point_path(8, "rate-6")).unwrap();
        sweep.set_aside(7).unwrap();
    }
    let kept = |k: u32| {
        fs::read_to_string(path.join(format!("points/007-rate-5.unfinished-{k}/log"))).unwrap()
    };
    assert_eq!((kept(1).as_str(), kept(2).as_str()), ("first", "second"));
    assert_eq!(sweep.list_points(), [(8, sweep.point_path(8, "rate-6"))]);
    sweep.set_aside(9).unwrap();
}

#[test]
fn asks_say_which_points_are_whole() {
    let (_folder, path, sweep) = sweep();
    assert_eq!(sweep.read_asks::<String>().unwrap(), []);
    sweep.note_begin(1, &"warm up").unwrap();
    sweep.note_end(1, 2.5).unwrap();
    sweep.note_begin(2, &"rate 4\n").unwrap();
    let asked = |number, ask: &str, took_s| BegunPoint { number, ask: ask.to_owned(), took_s };
    let found: Vec<BegunPoint<String>> = sweep.read_asks().unwrap();
    assert_eq!(found, [asked(1, "warm up", Some(2.5)), asked(2, "rate 4\n", None)]);
    // Begun again: it counts from there.
    sweep.note_end(2, 9.0).unwrap();
    sweep.note_begin(2, &"rate 5").unwrap();
    assert_eq!(sweep.read_asks().unwrap()[1], asked(2, "rate 5", None));
    // Cut off anywhere, the lines before it stand, and the next one is not lost.
    let whole = fs::read(path.join("asks.jsonl")).unwrap();
    let last = whole_lines_length(&whole[..whole.len() - 1]);
    drop(sweep);
    for cut in last..whole.len() {
        fs::write(path.join("asks.jsonl"), &whole[..cut]).unwrap();
        let sweep = CampaignFolder::resume(Campaign::Sweep, &path).unwrap();
        assert_eq!(sweep.read_asks().unwrap()[1], asked(2, "rate 4\n", Some(9.0)), "{cut}");
        sweep.note_begin(3, &"rate 6").unwrap();
        assert_eq!(sweep.read_asks().unwrap()[2], asked(3, "rate 6", None));
    }
    fs::write(path.join("asks.jsonl"), "{}\n").unwrap();
    let error = CampaignFolder::open(Campaign::Sweep, &path)
        .unwrap()
        .read_asks::<String>()
        .unwrap_err()
        .to_string();
    assert!(error.contains("asks.jsonl`: line 1: "), "{error}");
}

#[test]
fn configurations_have_safe_names() {
    let (_folder, path, sweep) = sweep();
    let values = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let two = values(&[("isl", "512"), ("model", "org/m 7b")]);
    let expected = path.join("configurations/03-isl=512,model=org_m_7b");
    assert_eq!(sweep.configuration_path(3, &two), expected);
    let long = values(&[("x", &"é/../".repeat(100))]);
    let name =
        sweep.configuration_path(12, &long).file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.len() <= 63 && name.starts_with("12-x=__.._"), "{name}");
    // Each is a sweep of its own.
    let each = CampaignFolder::create(Campaign::Sweep, &expected, &what()).unwrap();
    fs::create_dir_all(each.point_path(1, "rate-1")).unwrap();
    assert_eq!(sweep.list_configurations(), [(3, expected)]);
    assert_eq!(each.list_points().len(), 1);
}

#[test]
fn numbers_and_page_are_replaced() {
    let (_folder, path, sweep) = sweep();
    sweep.write_summary(&[1]).unwrap();
    sweep.write_report("page\n").unwrap();
    sweep.write_report("other\n").unwrap();
    assert_eq!(fs::read_to_string(path.join("summary.json")).unwrap(), "[\n  1\n]\n");
    assert_eq!(fs::read_to_string(path.join("report.txt")).unwrap(), "other\n");
}

proptest! {
    /// No label leaves its folder, and every point is found by its number.
    #[test]
    fn any_label_is_a_name(number in 0u32.., label in "\\PC*") {
        let sweep = CampaignFolder { kind: Campaign::Sweep, path: PathBuf::from("/s"), _lock: None };
        let path = sweep.point_path(number, &label);
        prop_assert_eq!(path.parent(), Some(Path::new("/s/points")));
        let name = path.file_name().unwrap().to_str().unwrap();
        prop_assert!(name.len() <= 10 + 1 + LONGEST && !name.contains(ASIDE), "{}", name);
        prop_assert_eq!(name.split_once('-').unwrap().0.parse::<u32>(), Ok(number));
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_without_its_text() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct One {
        url: String,
        headers: BTreeMap<String, String>,
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("targets.toml");
    for (text, says) in [
        ("url = 'x'\napi_key = 'sk-live-1'\n", "line 2: unknown field `api_key`"),
        ("url = 'x'\n\nheaders = { Authorization = 'Bearer sk-live-1' \n", "line 3: "),
        ("headers = 'Authorization: Bearer sk-live-1'", "line 1: invalid type: string \"…\", "),
    ] {
        fs::write(&path, text).unwrap();
        let said = read_toml::<One>(&path).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
        assert!(!said.contains("sk-live"), "{said}");
    }
}
