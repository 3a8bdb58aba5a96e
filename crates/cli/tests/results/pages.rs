//! Pages for a browser: left behind by a run, made again from its folder, and harmless whatever the
//! server says.

use crate::support::{Session, ms, outcome_of};
use goodput_clock::{now, pause};
use goodput_model::{CaveatCode, Nanos};
use goodput_testkit::{ArrivedRequest, Server, answer, timed_stream};

const SHORT: [&str; 8] =
    ["--rate", "60", "--num-requests", "40", "--max-tokens", "4", "--out", "out"];

fn read(session: &Session, name: &str) -> String {
    std::fs::read_to_string(session.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_run_leaves_its_page_and_charts_come_from_its_folder() {
    let session = Session::new();
    let run = session.run(&[&["run", "mock:ttft=20ms,itl=2ms"], &SHORT[..]].concat());
    run.assert_finished("a run");
    assert!(run.stderr.contains("report: out/report.html"), "{}", run.stderr);
    let kept = read(&session, "out/report.html");
    assert!(kept.starts_with("<!doctype html>") && kept.ends_with("</html>\n"));
    // The same from disk, whatever the folder is called by then.
    std::fs::rename(session.path("out"), session.path("moved")).unwrap();
    let page = session.run(&["report", "moved", "--format", "html"]);
    assert_eq!((page.code, page.stdout == kept), (Some(0), true), "{}", page.stderr);
    let file = session.run(&["report", "moved", "--format", "html", "--output", "page.html"]);
    assert_eq!((file.code, file.stdout.as_str()), (Some(0), ""), "{}", file.stderr);
    assert!(read(&session, "page.html") == kept);
    let nowhere = session.run(&["report", "moved", "--format", "html", "--output", "no/page.html"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.stderr.contains("the folder `no` does not exist"), "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("hint: "), "{}", nowhere.stderr);

    let drawn = session.run(&["report", "moved", "--format", "svg"]);
    assert_eq!(drawn.code, Some(0), "{}", drawn.stderr);
    let charts: Vec<_> =
        std::fs::read_dir(session.path("moved/charts")).unwrap().flatten().collect();
    assert!(!charts.is_empty());
    for chart in charts {
        let path = chart.path();
        assert!(path.extension().is_some_and(|extension| extension == "svg"), "{}", path.display());
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(svg.contains("<svg") && svg.contains("xmlns="), "{}", path.display());
    }
    let elsewhere = session.run(&["report", "moved", "--format", "svg", "--output", "new/charts"]);
    assert_eq!(elsewhere.code, Some(0), "{}", elsewhere.stderr);
    assert!(std::fs::read_dir(session.path("new/charts")).unwrap().count() > 0);
}

#[test]
fn several_runs_have_a_page_each_and_one_of_all() {
    let session = Session::new();
    let all = [&["run", "mock:ttft=5ms,itl=1ms"], &SHORT[..], &["--repeat", "2"]].concat();
    session.run(&all).assert_finished_despite(&[CaveatCode::NothingMeasured], "two runs");
    let kept = read(&session, "out/report.html");
    assert!(read(&session, "out/repeat-2/report.html") != kept);
    let page = session.run(&["report", "out", "--format", "html"]);
    assert_eq!((page.code, page.stdout == kept), (Some(0), true), "{}", page.stderr);
    // A comparison of what is saved, too.
    let args = ["compare", "out/repeat-1", "out/repeat-2", "--out", "both", "--quiet"];
    session.run(&args);
    assert!(read(&session, "both/report.html").starts_with("<!doctype html>"));
}

#[test]
fn a_run_that_was_killed_has_a_page_on_request() {
    let session = Session::new();
    let mut child = session.spawn(&[
        "run",
        "mock:ttft=5ms,itl=1ms",
        "--rate",
        "100",
        "--duration",
        "300s",
        "--max-tokens",
        "4",
        "--out",
        "out",
    ]);
    let deadline = now() + Nanos::from_millis(60_000);
    let size = || std::fs::metadata(session.path("out/requests.log")).map_or(0, |meta| meta.len());
    while size() < 2_000 {
        assert!(now() < deadline, "no records after 60 s");
        pause(Nanos::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!session.path("out/report.html").exists());
    let page = session.run(&["report", "out", "--format", "html", "--output", "page.html"]);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(read(&session, "page.html").ends_with("</html>\n"));
}

#[test]
fn what_a_server_says_is_only_ever_text() {
    let evil = "</script><img src=x onerror=alert(1)>\u{1b}[31m\u{202e}\"'`";
    let server = Server::start(move |request: &ArrivedRequest| {
        if request.number.is_multiple_of(2) {
            vec![answer("500 Oops", "text/plain", evil)]
        } else {
            timed_stream(ms(5), ms(1), 3)
        }
    });
    let session = Session::new();
    let url = server.url();
    let name = "</title><script>alert(2)</script>";
    let meta = format!("engine={evil}");
    let flags = ["--no-probe", "--model", name, "--meta", &meta, "--metrics", "off"];
    let run = session.run(&[&["run", &url], &flags[..], &SHORT[..]].concat());
    assert!(matches!(run.code, Some(0 | 3 | 5)), "{:?} {}", run.code, run.stderr);
    let page = read(&session, "out/report.html");
    for raw in ["<script>alert", "<img src=x", "\u{1b}", "\u{202e}"] {
        assert!(!page.contains(raw), "{raw:?} stands in the page as it came");
    }
    assert!(page.contains("&lt;/title&gt;&lt;script&gt;alert(2)"), "the model's name is not shown");
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"), "the error's text is not shown");
    // One script, and it is ours.
    assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
}

/// A browser that writes down what it was asked to show.
fn browser(session: &Session) -> String {
    let script = session.path("browser");
    let seen = session.path("seen");
    std::fs::write(&script, format!("#!/bin/sh\necho \"$1\" > '{}'\n", seen.display())).unwrap();
    let owner = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&script, owner).unwrap();
    script.display().to_string()
}

#[test]
fn without_a_folder_the_newest_result_is_meant() {
    let session = Session::new();
    let none = session.run(&["report"]);
    assert_eq!(none.code, Some(2), "{}", none.stdout);
    assert!(none.stderr.contains("no results found under runs/"), "{}", none.stderr);
    assert!(none.stderr.contains("hint: "), "{}", none.stderr);

    session.run_shortly("mock:ttft=5ms,itl=1ms", &[], "runs/older");
    pause(Nanos::from_millis(1_100));
    session.run_shortly("mock:ttft=5ms,itl=1ms", &["--meta", "engine=newer"], "runs/newer");
    let newest = session.run(&["report"]);
    let named = session.run(&["report", "runs/newer"]);
    assert_eq!((newest.code, &newest.stdout), (Some(0), &named.stdout), "{}", newest.stderr);
    assert!(
        newest.stderr.contains("runs/newer (the newest of 2 under runs/)"),
        "{}",
        newest.stderr
    );

    let list = session.run(&["report", "runs"]);
    let (newer, older) = (list.stdout.find("runs/newer"), list.stdout.find("runs/older"));
    assert!(newer.is_some() && newer < older, "{}{}", list.stdout, list.stderr);
    let all = session.run(&["report", "runs", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!((&all[0]["path"], &all[1]["kind"]), (&"runs/newer".into(), &"run".into()));
    for flags in [&["--open"][..], &["--format", "html"], &["--output", "x"]] {
        let refused = session.run(&[&["report", "runs"], flags].concat());
        assert_eq!(refused.code, Some(2), "{}", refused.stdout);
        assert!(refused.stderr.contains("`runs` holds 2 results"), "{}", refused.stderr);
    }
    let nothing = session.run(&["report", "none"]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stdout);
}

#[test]
fn open_shows_the_page_in_a_browser() {
    let session = Session::new();
    session.run_shortly("mock:ttft=5ms,itl=1ms", &[], "runs/one");
    let page = session.path("runs/one/report.html");
    std::fs::remove_file(&page).unwrap();
    let mut command = session.command(&["report", "--open"]);
    let opened = outcome_of(command.env("BROWSER", browser(&session)));
    let expected = (Some(0), "runs/one/report.html\n");
    assert_eq!((opened.code, opened.stdout.as_str()), expected, "{}", opened.stderr);
    assert!(read(&session, "runs/one/report.html").ends_with("</html>\n"));
    let deadline = now() + Nanos::from_millis(20_000);
    let shown = || std::fs::read_to_string(session.path("seen")).unwrap_or_default();
    while !shown().ends_with('\n') && now() < deadline {
        pause(Nanos::from_millis(20));
    }
    assert_eq!(shown().trim_end(), page.canonicalize().unwrap().display().to_string());

    let mut command = session.command(&["report", "runs/one", "--open", "--output", "p.html"]);
    for name in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(name);
    }
    let without = outcome_of(&mut command);
    assert_eq!((without.code, without.stdout.as_str()), (Some(0), "p.html\n"));
    assert!(without.stderr.contains("this machine has no display"), "{}", without.stderr);
    assert!(read(&session, "p.html").starts_with("<!doctype html>"));
}
