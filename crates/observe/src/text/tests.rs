use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const VLLM: &str = include_str!("../../tests/pages/vllm.txt");

/// Name, labels and value of each series.
fn read(text: &str) -> (Vec<String>, u32) {
    let page = ParsedPage::parse(text);
    let series = page.series.iter().map(|series| {
        let labels: Vec<String> =
            series.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        format!("{} [{}] {}", series.name, labels.join(";"), series.value)
    });
    (series.collect(), page.malformed)
}

#[test]
fn both_formats_are_read() {
    let page = "# HELP a:b_total Some \\n text with {braces} 7\r\n# TYPE a:b_total counter\r\n\
        a:b_total 1027 1395066363000\r\n\t a_b { x = \"1\" , y=\"2\", }\t -3.5e-2 \r\n\
        _no_labels{} +Inf\nminus{q=\"0\"}-Inf\nnan{} NaN 12\n# just a word\n#no space\n\n   \n\
        # UNIT a seconds\nexemplar_bucket{le=\"0.1\"} 8 1.5 # {id=\"} 9\"} 0.067 1520879607.789\n\
        bare 7 # {} 1\n{\"name.with.dots\", \"label key\"=\"v\",l=\"v\"} 1\n{ \"a \\\"b\\\" \\\\ c\" } 2\n\
        # EOF\nlast 4";
    let (series, malformed) = read(page);
    assert_eq!(malformed, 0);
    assert_eq!(
        series,
        [
            "a:b_total [] 1027",
            "a_b [x=1;y=2] -0.035",
            "_no_labels [] inf",
            "minus [q=0] -inf",
            "nan [] NaN",
            "exemplar_bucket [le=0.1] 8",
            "bare [] 7",
            "name.with.dots [l=v;label key=v] 1",
            "a \"b\" \\ c [] 2",
            "last [] 4",
        ]
    );
}

#[test]
fn label_values_hold_anything() {
    let (series, malformed) = read(
        "a{x=\"} 9\",y=\"a,b=\\\"c\\\"\",z=\"one\\ntwo\\\\n\\t\",e=\"\",u=\"ü\\\\\"} 1\n\
         a{x=\"\\\\\"} 2\n",
    );
    assert_eq!(malformed, 0);
    assert_eq!(series[0], "a [e=;u=ü\\;x=} 9;y=a,b=\"c\";z=one\ntwo\\n\\t] 1");
    assert_eq!(series[1], "a [x=\\] 2");
}

#[test]
fn what_cannot_be_read_is_counted() {
    let lines = [
        "a",
        "a ",
        "a{",
        "a{}",
        "a{} x",
        "a{x} 1",
        "a{x=1} 1",
        "a{x=\"1} 1",
        "a{x=\"1\" y=\"2\"} 1",
        "a{,} 1",
        "a{x=\"1\",,} 1",
        "a{x=\"1\",x=\"2\"} 1",
        "a{\"b\"} 1",
        "{\"a\",\"b\"} 1",
        "{x=\"1\"} 1",
        "{} 1",
        "{\"\"} 1",
        "a{\"\"=\"1\"} 1",
        "a{x=\"1\"",
        "1a 1",
        "a-1",
        "a.b 1",
        "ü 1",
        "a 0x10",
        "a 1_000",
        "a 1e999",
        "a +nan",
        "a 1 2 3",
        "a 1 x",
        "a 1x",
        "a{x=\"\\\"} 1",
        "a{x:y=\"1\"} 1",
        "a 1#{}",
    ];
    for line in lines {
        assert_eq!(read(line), (vec![], 1), "{line}");
    }
    // The lines around are read.
    let page = lines.join("\nok 1\nok{n=\"2\"} 2\n");
    assert_eq!(read(&page).1, u32::try_from(lines.len()).unwrap());
    assert_eq!(read(&page).0, ["ok [] 1", "ok [n=2] 2"]);
}

#[test]
fn of_a_series_that_is_there_twice_the_last_counts() {
    let (series, malformed) =
        read("a{x=\"1\",y=\"2\"} 1\nb 2\na{y=\"2\",x=\"1\"} 3\na{x=\"1\"} 4\nb 5\n{\"b\"} 6\n");
    assert_eq!(series, ["a [x=1;y=2] 3", "a [x=1] 4", "b [] 6"]);
    assert_eq!(malformed, 0);
}

#[test]
fn a_real_page_is_read_whole() {
    let page = ParsedPage::parse(VLLM);
    assert_eq!(page.malformed, 0);
    let lines = VLLM.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
    assert_eq!(page.series.len(), lines);
    let info = page.series.iter().find(|series| series.name == "vllm:cache_config_info").unwrap();
    assert_eq!(info.label("num_gpu_blocks"), "2048");
    assert_eq!(info.label("nothing"), "");
}

/// A page as it should be: by name and labels, the value.
type Model = BTreeMap<(String, BTreeMap<String, String>), f64>;

fn model() -> impl Strategy<Value = Model> {
    let name = prop_oneof!["[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", "\\PC{1,6}", "[a\"\\\\\n{},=#]{1,6}"];
    let key = prop_oneof!["[a-zA-Z_][a-zA-Z0-9_]{0,4}", "\\PC{1,3}"];
    let value = prop_oneof!["\\PC{0,6}", "[\"\\\\\n}{,= \r]{0,6}"];
    let labels = prop::collection::btree_map(key, value, 0..4);
    let number = prop_oneof![any::<f64>(), (-9.0..9e15_f64), Just(0.0)];
    prop::collection::btree_map((name, labels), number, 0..12)
}

fn escaped(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The model as a page, with blanks where they may stand.
fn render(model: &Model, blank: &str, end: &str) -> String {
    let mut page = String::new();
    for ((name, labels), value) in model {
        let is_plain = |text: &str, more: &str| {
            !text.starts_with(|first: char| first.is_ascii_digit())
                && text.chars().all(|char| char.is_ascii_alphanumeric() || more.contains(char))
        };
        let mut inside = Vec::new();
        if is_plain(name, "_:") {
            page.push_str(name);
        } else {
            inside.push(escaped(name));
        }
        inside.extend(labels.iter().map(|(key, value)| {
            let key = if is_plain(key, "_") { key.clone() } else { escaped(key) };
            format!("{key}{blank}={blank}{}", escaped(value))
        }));
        let inside = inside.join(&format!("{blank},{blank}"));
        page.extend([blank, "{", &inside, "}", blank]);
        let value = match value {
            infinite if infinite.is_infinite() && infinite.is_sign_positive() => "+Inf".to_owned(),
            number if number.is_infinite() => "-Inf".to_owned(),
            number => number.to_string(),
        };
        page.extend([value.as_str(), blank, end]);
    }
    page
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(model in model(), blank in "[ \t]{0,2}", crlf in any::<bool>()) {
        let text = render(&model, &blank, if crlf { "\r\n" } else { "\n" });
        let page = ParsedPage::parse(&text);
        prop_assert_eq!(page.malformed, 0, "{}", text);
        let read: Model = page.series.iter().map(|series| {
            let labels = series.labels.iter().map(|(key, value)| (key.to_string(), value.to_string()));
            ((series.name.to_string(), labels.collect()), series.value)
        }).collect();
        // Not a number is equal to nothing: by its text.
        prop_assert_eq!(format!("{read:?}"), format!("{model:?}"));
        prop_assert_eq!(page.series.len(), model.len());
    }

    #[test]
    fn nothing_breaks_it(bytes in prop::collection::vec(any::<u8>(), 0..400), text in "[a-c{}\"\\\\=, \t\n\r#0-9.+:ü]{0,200}") {
        for text in [String::from_utf8_lossy(&bytes).as_ref(), &text] {
            let page = ParsedPage::parse(text);
            let lines = text.split('\n').count();
            prop_assert!(page.series.len() + page.malformed as usize <= lines);
        }
    }

    #[test]
    fn broken_pages_lose_only_what_is_broken(
        cuts in prop::collection::vec((0..VLLM.len(), any::<u8>()), 1..20),
    ) {
        let mut bytes = VLLM.as_bytes().to_vec();
        let whole = ParsedPage::parse(VLLM).series.len();
        for (at, byte) in &cuts {
            bytes[*at] = *byte;
        }
        let text = String::from_utf8_lossy(&bytes);
        let page = ParsedPage::parse(&text);
        // A new line in the middle of a line breaks two, and a lost one joins two.
        prop_assert!(page.series.len() + 2 * cuts.len() >= whole);
        let half = ParsedPage::parse(text.get(..text.len() / 2).unwrap_or(&text));
        prop_assert!(half.series.len() <= page.series.len() + 1);
    }
}
