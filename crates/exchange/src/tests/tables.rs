//! CSV and Parquet.

use std::collections::BTreeMap;

use goodput_model::{
    Buckets, GpuSample, HealthSample, MetricsSource, Nanos, Scrape, ServerReading, Signal,
    SignalValue,
};
use goodput_stats::Each;
use parquet::basic::LogicalType;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field as Read, Row};

use super::{plan, records, summary};
use crate::numbers::{Gaps, Ranked, Values};
use crate::table::{ColumnType, RowCell, RowColumn};
use crate::{
    ConvertedRun, Field, RequestRow, chunks, chunks_parquet, requests, requests_csv,
    requests_parquet, rows, server, server_parquet, write_csv,
};

fn all_rows() -> Vec<RequestRow> {
    let (plan, summary) = (plan(), summary(&plan()));
    let each = Each::new(&plan, &summary, &[], std::iter::empty());
    records().into_iter().map(|record| RequestRow::from_record(record, &each)).collect()
}

fn reader(bytes: Vec<u8>) -> SerializedFileReader<bytes::Bytes> {
    SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap()
}

/// The values of each row by the name of their column.
fn named(reader: &SerializedFileReader<bytes::Bytes>) -> Vec<BTreeMap<String, Read>> {
    let named = |row: Row| row.into_columns().into_iter().collect();
    reader.get_row_iter(None).unwrap().map(|row| named(row.unwrap())).collect()
}

#[test]
fn every_request_has_its_line() {
    let mut out = Vec::new();
    requests_csv(&mut out, all_rows().into_iter()).unwrap();
    let mut lines = ::csv::Reader::from_reader(out.as_slice());
    let names = lines.headers().unwrap().clone();
    let found: Vec<BTreeMap<String, String>> = lines
        .records()
        .map(|line| {
            let line = line.unwrap();
            names.iter().map(str::to_owned).zip(line.iter().map(str::to_owned)).collect()
        })
        .collect();
    assert_eq!(found.len(), 4);
    for (column, expected) in [
        ("phase", ["warmup", "measured", "measured", "measured"]),
        ("ttft_ms", ["900", "101", "200", ""]),
        ("e2e_sent_ms", ["900", "160", "210", ""]),
        ("tpot_ms", ["", "30", "10", ""]),
        ("slo_kept", ["", "false", "false", "false"]),
        ("dispatched_ms", ["5", "1", "1000", "1200"]),
        ("done_ms", ["915", "171", "1220", ""]),
        ("output_tokens", ["1", "3", "2", ""]),
        ("output_tokens_source", ["usage", "usage", "usage", ""]),
        ("status", ["200", "200", "200", "500"]),
        ("error_class", ["", "", "", "http_500"]),
        ("error_stage", ["", "", "", "headers"]),
        ("error_message", ["", "", "", "'=1+1, \"said\" the server"]),
    ] {
        let values: Vec<&str> = found.iter().map(|line| line[column].as_str()).collect();
        assert_eq!(values, expected, "{column}");
    }
}

#[test]
fn a_spreadsheet_sees_no_formula() {
    let mut out = Vec::new();
    let texts = ["=1", "+1", "-1", "@x", "\tx", "\rx", "x=1", "", "'x", "\x1b[2J"];
    let lines = texts.iter().map(|text| vec![Field::Text((*text).to_owned()), Field::Number(-1.5)]);
    write_csv(&mut out, &["text", "number"], lines).unwrap();
    let mut lines = ::csv::Reader::from_reader(out.as_slice());
    let found: Vec<String> =
        lines.records().map(|line| line.unwrap().get(0).unwrap().to_owned()).collect();
    // Nor does a terminal see a control character.
    let plain = ["'=1", "'+1", "'-1", "'@x", "'\\tx", "'\\rx", "x=1", "", "'x", "\\u{1b}[2J"];
    assert_eq!(found, plain);
    // A number below zero is a number.
    assert!(String::from_utf8(out).unwrap().lines().nth(1).unwrap().ends_with(",-1.5"));
}

#[test]
fn parquet_holds_the_same_with_types() {
    let (plan, summary) = (plan(), summary(&plan()));
    let run = ConvertedRun { plan: &plan, summary: &summary };
    let mut out = Vec::new();
    requests_parquet(&mut out, &run, all_rows().into_iter()).unwrap();
    let reader = reader(out);
    let facts = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let fact = |name: &str| facts.iter().find(|fact| fact.key == name)?.value.clone();
    assert_eq!(fact("goodput.model").as_deref(), Some("m"));
    assert_eq!(fact("goodput.schema").as_deref(), Some("goodput.requests/1"));
    let schema = reader.metadata().file_metadata().schema_descr();
    assert_eq!(schema.num_columns(), requests::COLUMNS.len());
    for (place, column) in requests::COLUMNS.iter().enumerate() {
        let is_text = schema.column(place).logical_type_ref() == Some(&LogicalType::String);
        assert_eq!(
            (schema.column(place).name(), is_text),
            (column.name, column.kind == ColumnType::Text)
        );
    }
    let rows = named(&reader);
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[1]["ttft_ms"], Read::Double(101.0));
    assert_eq!(rows[1]["index"], Read::Long(0));
    assert_eq!(rows[3]["ttft_ms"], Read::Null);
    assert_eq!(rows[3]["ok"], Read::Bool(false));
    // Only spreadsheets need the apostrophe.
    assert_eq!(rows[3]["error_message"], Read::Str("=1+1, \"said\" the server".to_owned()));
}

#[test]
fn every_chunk_has_its_row() {
    let (plan, summary) = (plan(), summary(&plan()));
    let mut out = Vec::new();
    chunks_parquet(
        &mut out,
        &ConvertedRun { plan: &plan, summary: &summary },
        records().into_iter(),
    )
    .unwrap();
    let rows = named(&reader(out));
    let seen: Vec<_> =
        rows.iter().map(|row| (&row["request"], &row["chunk"], &row["at_ms"])).collect();
    assert_eq!(seen.len(), 1 + 3 + 2);
    assert_eq!(seen[3], (&Read::Long(0), &Read::Long(2), &Read::Double(161.0)));
    assert_eq!((&rows[3]["bytes"], &rows[3]["tokens"]), (&Read::Long(3), &Read::Null));
}

#[test]
fn the_servers_figures_stand_one_below_the_other() {
    let (plan, mut summary) = (plan(), summary(&plan()));
    let source = MetricsSource { url: "http://x/metrics".to_owned(), engine: "vllm".to_owned() };
    summary.run.system.metrics = vec![source];
    let buckets = Buckets {
        bounds: vec![0.5, f64::INFINITY],
        cumulative: vec![3.0, 4.0],
        sum: 2.5,
        count: 4.0,
    };
    let values = BTreeMap::from([
        (Signal::Running, SignalValue::Number(7.0)),
        (Signal::Ttft, SignalValue::Buckets(buckets)),
    ]);
    let scrape =
        |outcome| Scrape { at: Nanos(1_500_000_000), took: Nanos(1), endpoint: 0, outcome };
    let gpu = GpuSample { at: Nanos(2_000_000_000), power_w: Some(350.0), ..GpuSample::default() };
    let sample = HealthSample {
        scrapes: vec![
            scrape(Ok(ServerReading { values, ..ServerReading::default() })),
            scrape(Err("gone".to_owned())),
        ],
        gpus: vec![gpu],
        ..HealthSample::default()
    };
    let mut out = Vec::new();
    let run = ConvertedRun { plan: &plan, summary: &summary };
    server_parquet(&mut out, &run, std::iter::once(sample)).unwrap();
    let rows = named(&reader(out));
    let text = |field: &Read| match field {
        Read::Str(text) => text.clone(),
        other => other.to_string(),
    };
    let lines: Vec<String> = rows
        .iter()
        .map(|row| {
            ["at_s", "endpoint", "signal", "le", "value"].map(|name| text(&row[name])).join(" ")
        })
        .collect();
    assert_eq!(
        lines,
        [
            "1.5 http://x/metrics running null 7.0",
            "1.5 http://x/metrics ttft_sum null 2.5",
            "1.5 http://x/metrics ttft_count null 4.0",
            "1.5 http://x/metrics ttft_bucket 0.5 3.0",
            "1.5 http://x/metrics ttft_bucket null 4.0",
            "1.5 http://x/metrics scrape_failed null 1.0",
            "2.0 0 power_w null 350.0",
        ]
    );
}

#[test]
fn memory_holds_one_row_group() {
    let columns = [RowColumn {
        name: "n",
        kind: ColumnType::Whole,
        about: "",
        get: |n: &u64| RowCell::Whole(*n),
    }];
    for (n, expected) in [(0u64, vec![0i64]), (100_000, vec![100_000]), (100_001, vec![100_000, 1])]
    {
        let mut out = Vec::new();
        rows::write_parquet(&mut out, &columns, &[], 0..n).unwrap();
        let reader = reader(out);
        let groups = reader.metadata().row_groups();
        let rows: Vec<i64> = groups.iter().map(RowGroupMetaData::num_rows).collect();
        assert_eq!(rows, expected);
    }
}

#[test]
fn every_column_is_explained() {
    let page = include_str!("../../../../docs/exports.md");
    let tables: [Vec<(&str, &str)>; 3] = [
        requests::COLUMNS.iter().map(|column| (column.name, column.about)).collect(),
        chunks::COLUMNS.iter().map(|column| (column.name, column.about)).collect(),
        server::COLUMNS.iter().map(|column| (column.name, column.about)).collect(),
    ];
    for (name, about) in tables.concat() {
        let line = format!("| `{name}` | {about} |");
        assert!(page.contains(&line), "docs/exports.md lacks: {line}");
    }
}

#[test]
fn statistics_are_those_of_numpy() {
    let mut values = Values::default();
    for value in [15.0, 20.0, 35.0, 40.0, 50.0] {
        values.push(value);
    }
    values.sort();
    assert_eq!((values.percentile(30.0), values.percentile(40.0)), (Some(23.0), Some(29.0)));
    assert_eq!(values.percentile(50.0), Some(35.0));
    assert_eq!((values.min(), values.max()), (Some(15.0), Some(50.0)));
    assert!((values.standard_deviation().unwrap() - 166.0f64.sqrt()).abs() < 1e-12);
    assert_eq!(Values::default().percentile(50.0), None);
    let mut gaps = Gaps::default();
    for micros in [3_000, 1_000, 2_000_000, 1_000] {
        gaps.push(micros);
    }
    assert_eq!(
        (gaps.value_at_rank(0), gaps.value_at_rank(1), gaps.value_at_rank(3)),
        (Some(1.0), Some(1.0), Some(2000.0))
    );
    assert_eq!(gaps.mean(), Some(2005.0 / 4.0));
    assert_eq!(gaps.percentile(50.0), Some(2.0));
}
