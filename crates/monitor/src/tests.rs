//! Screens of views that are written down here.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use crate::*;

/// The screen as text, without what stands empty at the ends of lines.
fn screen(view: &ScreenView, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw_screen(view, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| -> String {
        let line: String = (0..columns).map(|x| buffer[(x, y)].symbol()).collect();
        line.trim_end().to_owned() + "\n"
    };
    (0..rows).map(row).collect()
}

fn percentiles(values: [f64; 5], n: u64) -> Percentiles {
    let [p50, p90, p95, p99, max] = values.map(Some);
    Percentiles { n, p50, p90, p95, p99, max }
}

fn run() -> LiveRunView {
    let latency = |name: &str, now: [f64; 5], so_far: [f64; 5]| LatencyView {
        name: name.to_owned(),
        now: percentiles(now, 200),
        so_far: percentiles(so_far, 1_240),
    };
    LiveRunView {
        phase: RunPhase::Measured,
        elapsed_s: 42.3,
        total_s: Some(70.0),
        done: Some(0.604),
        left_s: Some(27.7),
        offered: OfferedView::PerSecond(20.0),
        sent_per_s: Some(19.8),
        ok_per_s: Some(19.1),
        tokens_per_s: Some(4_812.0),
        in_flight: 31,
        sent: 1_271,
        ok: 1_229,
        failed: 11,
        confidence: " · p95 TTFT 212 ms ±14 % · ±10 % in about 2 min".to_owned(),
        latencies: vec![
            latency("TTFT", [51.2, 80.4, 93.9, 140.0, 212.0], [50.1, 78.8, 91.2, 133.0, 412.0]),
            latency("ITL", [10.1, 12.2, 13.4, 26.0, 61.0], [10.1, 12.0, 13.1, 24.9, 71.3]),
            latency("TPOT", [10.1, 10.2, 10.4, 11.0, 12.2], [10.1, 10.2, 10.4, 11.2, 12.9]),
            latency(
                "E2E",
                [1_694.0, 4_001.0, 5_167.0, 9_838.0, 11_000.0],
                [1_700.0, 4_100.0, 5_200.0, 9_900.0, f64::INFINITY],
            ),
        ],
        tokens: (0..60).map(|n| 1_000 + n * 70).collect(),
        under_way: (0..60).map(|n| 10 + n % 20).collect(),
        errors: vec![("http_503".to_owned(), 8), ("timeout".to_owned(), 3)],
        client: ClientView {
            slip: percentiles([0.05, 0.1, 0.3, 1.2, 8.4], 1_240),
            slip_now: percentiles([0.05, 0.1, 0.3, 1.1, 2.5], 200),
            lag: percentiles([0.1, 0.2, 0.4, 2.1, 10.5], 4_000),
            lag_now: percentiles([0.1, 0.2, 0.4, 2.0, 3.0], 500),
            lost: 0,
        },
        server: Some(ServerView {
            running: Some(24.0),
            waiting: Some(7.0),
            kv: Some(0.81),
            queue: (0..40).map(|n| n % 8).collect(),
            kvs: (0..40).map(|n| 40 + n).collect(),
            gpu: Some(0.97),
            watts: Some(1_320.0),
            silent: (0, 1),
        }),
        ..LiveRunView::default()
    }
}

fn one() -> ScreenView {
    ScreenView {
        title: "goodput run · http://host:8000 · llama".to_owned(),
        run: Some(run()),
        notes: vec!["warning: the clock is odd".to_owned()],
        ..ScreenView::default()
    }
}

fn swept() -> ScreenView {
    let point = |number: u32, level: f64, p99: f64, standing: StatusColor| LivePointView {
        number,
        level,
        purpose: "grid".to_owned(),
        p50: Some(p99 / 3.0),
        p99: Some(p99),
        ok_per_s: Some(level * 0.99),
        tokens_per_s: Some(level * 250.0),
        standing,
        words: if standing == StatusColor::Good { "kept" } else { "missed: queue grows" }
            .to_owned(),
        is_on_curve: true,
    };
    let points = vec![
        LivePointView {
            is_on_curve: false,
            words: "warm-up".to_owned(),
            ..point(1, 16.0, 900.0, StatusColor::Open)
        },
        point(2, 5.0, 90.0, StatusColor::Good),
        point(3, 10.0, 120.0, StatusColor::Good),
        point(4, 20.0, 310.0, StatusColor::Good),
        point(5, 40.0, 4_200.0, StatusColor::Bad),
    ];
    let sweep = LiveSweepView {
        unit: "req/s".to_owned(),
        latency: "TTFT".to_owned(),
        limit: Some((500.0, "SLO p99 ttft < 500ms".to_owned())),
        points,
        answer: "20.0 req/s kept, 40.0 too much".to_owned(),
        left: "about 3 min left".to_owned(),
    };
    ScreenView {
        title: "goodput sweep · http://host:8000 · llama".to_owned(),
        run: Some(LiveRunView { label: "6 search 28/s".to_owned(), ..run() }),
        campaign: Some(CampaignView::Sweep(sweep)),
        ..ScreenView::default()
    }
}

fn compared() -> ScreenView {
    let row = |figure: &str, change: &str, words: &str, standing| DifferenceView {
        figure: figure.to_owned(),
        reference: "212.0".to_owned(),
        candidate: "190.1".to_owned(),
        change: change.to_owned(),
        words: words.to_owned(),
        standing,
    };
    let level = LevelView {
        title: "B against A, 8 req/s".to_owned(),
        differences: vec![
            row("TPOT p50", "-10.3 % (-12.1 to -8.4)", "better", StatusColor::Good),
            row("TTFT p99", "+7.0 % (+4.4 to +9.6)", "WORSE", StatusColor::Bad),
            row("E2E p50", "+0.2 % (-3.1 to +3.5)", "inconclusive", StatusColor::Open),
        ],
    };
    ScreenView {
        title: "goodput compare · http://host:8001 · llama".to_owned(),
        run: Some(LiveRunView { label: "block 4 B 8/s".to_owned(), ..run() }),
        campaign: Some(CampaignView::Comparison(ComparisonView {
            sides: vec!["A".to_owned(), "B".to_owned()],
            blocks: 3,
            most: Some(16),
            left_s: Some(400.0),
            levels: vec![level],
        })),
        ..ScreenView::default()
    }
}

/// The view gives this screen; empty rows at its end may be left out.
fn is(view: &ScreenView, (columns, rows): (u16, u16), expected: &str) {
    let found = screen(view, columns, rows);
    assert_eq!(found.lines().count(), usize::from(rows));
    let (found, expected) = (found.trim_end(), expected.trim_start_matches('\n').trim_end());
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

#[test]
fn a_run_at_a_glance() {
    is(
        &one(),
        (80, 24),
        "
 goodput run · http://host:8000 · llama
 measured ━━━━━━━━━━━━━━━━━━━━━────────────── 42.3 s of 70.0 s · about 28 s left
 p95 TTFT 212 ms ±14 % · ±10 % in about 2 min
┌ load ──────────────────────┐┌ latency, ms, within 2 % ───────────────────────┐
│ offered             20.0/s ││           last 10 s             so far         │
│ sent                19.8/s ││         p50    p95    p99    p50    p95    p99 │
│ answered            19.1/s ││ TTFT   51.2   93.9    140   50.1   91.2    133 │
│ in flight               31 ││ ITL    10.1   13.4   26.0   10.1   13.1   24.9 │
│ completed            1,229 ││ TPOT   10.1   10.4   11.0   10.1   10.4   11.2 │
│ failed                  11 ││ E2E    1694   5167   9838   1700   5200   9900 │
└────────────────────────────┘└────────────────────────────────────────────────┘
┌ output tokens/s of ended answers: 4812 now, 5130 at most ────────────────────┐
│                                                        ▁▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇█│
│                                ▁▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇█████████████████████████│
│                  ▄▅▅▅▅▆▆▆▇▇▇█████████████████████████████████████████████████│
└──────────────────────────────────────────────────────────────────────────────┘
┌ failed: 11 ────────────────┐┌ client, ms, and server ────────────────────────┐
│ 8 × http_503               ││ slip     p99 1.20, max 8.40, now 2.50          │
│ 3 × timeout                ││ loop lag p99 2.10, max 10.5, now 3.00          │
│                            ││ server   7 waiting, 24 running, KV 81 %        │
│                            ││ GPUs 97 % busy, 1320 W                         │
└────────────────────────────┘└────────────────────────────────────────────────┘
 warning: the clock is odd
 1 overview  2 latency  3 server, client  4 notes   Tab next  ? help  q stop
",
    );
}

#[test]
fn latencies() {
    is(
        &ScreenView { pane: Pane::Latency, ..one() },
        (80, 24),
        "
 goodput run · http://host:8000 · llama
 measured ━━━━━━━━━━━━━━━━━━━━━────────────── 42.3 s of 70.0 s · about 28 s left
 p95 TTFT 212 ms ±14 % · ±10 % in about 2 min
┌ latency from the scheduled instant, ms ──────────────────────────────────────┐
│                          n     p50     p90     p95     p99     max           │
│ TTFT  last 10 s        200    51.2    80.4    93.9     140     212           │
│ TTFT  so far         1,240    50.1    78.8    91.2     133     412           │
│                                                                              │
│ ITL   last 10 s        200    10.1    12.2    13.4    26.0    61.0           │
│ ITL   so far         1,240    10.1    12.0    13.1    24.9    71.3           │
│                                                                              │
│ TPOT  last 10 s        200    10.1    10.2    10.4    11.0    12.2           │
│ TPOT  so far         1,240    10.1    10.2    10.4    11.2    12.9           │
│                                                                              │
│ E2E   last 10 s        200    1694    4001    5167    9838   11000           │
│ E2E   so far         1,240    1700    4100    5200    9900  >limit           │
│                                                                              │
│ slip  last 10 s        200    0.05    0.10    0.30    1.10    2.50           │
│ slip  so far         1,240    0.05    0.10    0.30    1.20    8.40           │
│ lag   last 10 s        500    0.10    0.20    0.40    2.00    3.00           │
│ lag   so far         4,000    0.10    0.20    0.40    2.10    10.5           │
└ of all that ended, within 2 %; the report is exact ──────────────────────────┘
 warning: the clock is odd
 1 overview  2 latency  3 server, client  4 notes   Tab next  ? help  q stop
",
    );
}

#[test]
fn the_server_and_the_client() {
    is(
        &ScreenView { pane: Pane::Health, ..one() },
        (80, 24),
        "
 goodput run · http://host:8000 · llama
 measured ━━━━━━━━━━━━━━━━━━━━━────────────── 42.3 s of 70.0 s · about 28 s left
 p95 TTFT 212 ms ±14 % · ±10 % in about 2 min
┌ server ──────────────────────────────┐┌ client, ms ──────────────────────────┐
│ 7 waiting, 24 running, KV 81 %       ││ slip     p99 1.20, max 8.40, now 2.50│
│ GPUs 97 % busy, 1320 W               ││ loop lag p99 2.10, max 10.5, now 3.00│
│                                      ││ 0 records lost                       │
│                                      ││                                      │
└──────────────────────────────────────┘└──────────────────────────────────────┘
┌ queue: 7 ────────────────────────────┐┌ KV cache: 81 % ──────────────────────┐
│    ▃█      ▃█      ▃█      ▃█      ▃█││                    ▁▁▁▂▂▃▃▃▄▄▅▅▅▆▆▇▇█│
│  ▂▆██    ▂▆██    ▂▆██    ▂▆██    ▂▆██││▁▁▁▂▂▃▃▃▄▄▅▅▅▆▆▇▇▇████████████████████│
│▁▅████  ▁▅████  ▁▅████  ▁▅████  ▁▅████││██████████████████████████████████████│
│██████ ▄██████ ▄██████ ▄██████ ▄██████││██████████████████████████████████████│
└──────────────────────────────────────┘└──────────────────────────────────────┘
┌ failed: 11 ──────────────────────────────────────────────────────────────────┐
│ 8 × http_503                                                                 │
│ 3 × timeout                                                                  │
│                                                                              │
│                                                                              │
│                                                                              │
└──────────────────────────────────────────────────────────────────────────────┘
 warning: the clock is odd
 1 overview  2 latency  3 server, client  4 notes   Tab next  ? help  q stop
",
    );
}

#[test]
fn a_sweep() {
    is(
        &swept(),
        (80, 24),
        "
 6 search 28/s · goodput sweep · http://host:8000 · llama
 measured ━━━━━━━━━━━━━━━━━━━━━────────────── 42.3 s of 70.0 s · about 28 s left
 sweep: about 3 min left · p95 TTFT 212 ms ±14 % · ±10 % in about 2 min
┌ TTFT in ms (logarithmic) over req/s ─────────────────────────────────────────┐
│5933│                                                                 x       │
│    │                                                                 ·       │
│    │┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄│
│355 │                o                o                                       │
│    │        o       ·                ·                                       │
│21.2│        ·                                                                │
│    └─────────────────────────────────────────────────────────────────────────│
│ 0.00                                  22.0                               44.0│
└ ┄ SLO p99 ttft < 500ms  · p50  p99: o kept  x missed  ? open ────────────────┘
┌ 20.0 req/s kept, 40.0 too much ──────────────────────────────────────────────┐
│      req/s    p50    p99   ok/s  tok/s                                       │
│   4   20.0    103    310   19.8   5000 kept                                  │
│   5   40.0   1400   4200   39.6  10.0k missed: queue grows                   │
└──────────────────────────────────────────────────────────────────────────────┘
┌ 6 search 28/s ───────────────────────────────────────────────────────────────┐
│ offered 20.0/s · sent 19.8/s · answered 19.1/s · 31 in flight · 11 failed    │
│ TTFT p50 51.2 p99 140 · ITL p50 10.1 p99 26.0 · E2E p50 1694 p99 9838 ms     │
└──────────────────────────────────────────────────────────────────────────────┘

 1 overview  2 latency  3 server, client  4 notes   Tab next  ? help  q stop
",
    );
}

#[test]
fn a_sweep_with_room() {
    is(
        &swept(),
        (120, 40),
        "
 6 search 28/s · goodput sweep · http://host:8000 · llama
 measured ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━────────────────────────────── 42.3 s of 70.0 s · about 28 s left
 sweep: about 3 min left · p95 TTFT 212 ms ±14 % · ±10 % in about 2 min
┌ TTFT in ms (logarithmic) over req/s ─────────────────┐┌ 20.0 req/s kept, 40.0 too much ──────────────────────────────┐
│5933│                                                 ││      req/s    p50    p99   ok/s  tok/s                       │
│    │                                                 ││   1   16.0    300    900   15.8   4000 warm-up               │
│    │                                            x    ││   2   5.00   30.0   90.0   4.95   1250 kept                  │
│    │                                                 ││   3   10.0   40.0    120   9.90   2500 kept                  │
│    │                                                 ││   4   20.0    103    310   19.8   5000 kept                  │
│    │                                                 ││   5   40.0   1400   4200   39.6  10.0k missed: queue grows   │
│    │                                                 ││                                                              │
│    │                                            ·    ││                                                              │
│    │                                                 ││                                                              │
│    │                                                 ││                                                              │
│    │                                                 ││                                                              │
│    │┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄││                                                              │
│    │                                                 ││                                                              │
│355 │                                                 ││                                                              │
│    │                      o                          ││                                                              │
│    │                                                 ││                                                              │
│    │                                                 ││                                                              │
│    │                                                 ││                                                              │
│    │           o                                     ││                                                              │
│    │     o                ·                          ││                                                              │
│    │                                                 ││                                                              │
│    │                                                 ││                                                              │
│    │                                                 ││                                                              │
│    │           ·                                     ││                                                              │
│    │     ·                                           ││                                                              │
│    │                                                 ││                                                              │
│21.2│                                                 ││                                                              │
│    └─────────────────────────────────────────────────││                                                              │
│ 0.00                      22.0                   44.0││                                                              │
└ ┄ SLO p99 ttft < 500ms  · p50  p99: o kept  x missed ┘└──────────────────────────────────────────────────────────────┘
┌ 6 search 28/s ───────────────────────────────────────────────────────────────────────────────────────────────────────┐
│ offered 20.0/s · sent 19.8/s · answered 19.1/s · 31 in flight · 11 failed                                            │
│ TTFT p50 51.2 p99 140 · ITL p50 10.1 p99 26.0 · E2E p50 1694 p99 9838 ms                                             │
└──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘

 1 overview  2 latency  3 server, client  4 notes   Tab next  ? help  q stop
",
    );
}

#[test]
fn a_sweep_without_room() {
    is(
        &swept(),
        (40, 10),
        "
goodput sweep · http://host:8000 · llama
measured 42.3 s of 70.0 s · about 28 s l
20.0/s offered, 19.1/s answered
31 in flight, 1,229 ok, 11 failed
6 search 28/s
20.0 req/s kept, 40.0 too much
TTFT p50 51.2 p95 93.9 ms
ITL  p50 10.1 p95 13.4 ms
TPOT p50 10.1 p95 10.4 ms
q stop  ? help  4 notes  1 back
",
    );
}

#[test]
fn a_comparison() {
    is(
        &compared(),
        (80, 24),
        "
 block 4 B 8/s · goodput compare · http://host:8001 · llama
 measured ━━━━━━━━━━━━━━━━━━━━━────────────── 42.3 s of 70.0 s · about 28 s left
 next test in about 7 min · p95 TTFT 212 ms ±14 % · ±10 % in about 2 min
┌ A, B · 3 blocks of at most 16 ───────────────────────────────────────────────┐
│ B against A, 8 req/s                                                         │
│ TPOT p50           212.0     190.1  -10.3 % (-12.1 to -8.4) better           │
│ TTFT p99           212.0     190.1  +7.0 % (+4.4 to +9.6)   WORSE            │
│ E2E p50            212.0     190.1  +0.2 % (-3.1 to +3.5)   inconclusive     │
│                                                                              │
│                                                                              │
│                                                                              │
│                                                                              │
│                                                                              │
│                                                                              │
│                                                                              │
│                                                                              │
│                                                                              │
└──────────────────────────────────────────────────────────────────────────────┘
┌ block 4 B 8/s ───────────────────────────────────────────────────────────────┐
│ offered 20.0/s · sent 19.8/s · answered 19.1/s · 31 in flight · 11 failed    │
│ TTFT p50 51.2 p99 140 · ITL p50 10.1 p99 26.0 · E2E p50 1694 p99 9838 ms     │
└──────────────────────────────────────────────────────────────────────────────┘

 1 overview  2 latency  3 server, client  4 notes   Tab next  ? help  q stop
",
    );
}

#[test]
fn help_stands_on_top() {
    let found = screen(&ScreenView { help: true, ..one() }, 80, 24);
    assert!(
        found.contains("│ q Ctrl-C  stop: no more requests, wait for answers, report │"),
        "{found}"
    );
    assert!(found.contains("│ complet┌ keys ─"), "{found}");
}

#[test]
fn notes_are_the_latest_that_fit() {
    let notes: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
    let found = screen(&ScreenView { pane: Pane::Notes, notes, ..one() }, 80, 24);
    assert!(found.contains("│line 83 ") && found.contains("│line 99 "), "{found}");
    assert!(!found.contains("line 82"), "{found}");
}

/// Colors repeat what words say, and are nowhere where they are not wanted.
#[test]
fn no_color_is_used_when_it_is_off() {
    use ratatui::style::Color;
    let colored = |color: bool| {
        let view = ScreenView { color, ..swept() };
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw_screen(&view, frame)).unwrap();
        let cells = terminal.backend().buffer().content().iter();
        cells.filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert_eq!(colored(false), 0);
    assert!(colored(true) > 0);
}

/// Nothing panics, whatever the room and the numbers.
#[test]
fn every_size_and_every_number() {
    let mut odd = run();
    for value in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
        odd.done = Some(value);
        odd.elapsed_s = value;
        odd.left_s = Some(value);
        odd.offered = OfferedView::PerSecond(value);
        odd.sent_per_s = Some(value);
        odd.latencies =
            vec![LatencyView { now: percentiles([value; 5], u64::MAX), ..LatencyView::default() }];
        odd.tokens = vec![u64::MAX; 3];
        if let Some(server) = &mut odd.server {
            (server.kv, server.waiting) = (Some(value), Some(value));
        }
        let mut views = vec![one(), swept(), compared(), ScreenView::default()];
        for view in &mut views {
            view.run = Some(odd.clone());
            if let Some(CampaignView::Sweep(sweep)) = &mut view.campaign {
                sweep.limit = Some((value, "x".repeat(300)));
                for point in &mut sweep.points {
                    (point.level, point.p99) = (value, Some(value));
                }
            }
        }
        for pane in Pane::ALL.map(|pane| pane.0) {
            for view in &views {
                let view = ScreenView { pane, help: pane == Pane::Notes, ..view.clone() };
                for (columns, rows) in [
                    (1, 1),
                    (3, 2),
                    (10, 5),
                    (40, 10),
                    (60, 16),
                    (61, 17),
                    (80, 24),
                    (200, 9),
                    (30, 60),
                ] {
                    screen(&view, columns, rows);
                }
            }
        }
    }
}
