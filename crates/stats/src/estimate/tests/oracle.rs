//! Estimates against NumPy and SciPy: `tests/oracle/estimate.json`, written by `make.py` next to it.

use crate::sample::Wanted;
use serde_json::Value;

use super::super::binomial::{binomial_cdf, enclosing_ranks};
use super::super::{early_stopping_rank, normal_quantile, student_quantile};
use crate::Sample;

fn fixture() -> Value {
    serde_json::from_str(include_str!("../../../tests/oracle/estimate.json")).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Sums in another order differ in the last digits.
fn agrees(what: &str, actual: Option<f64>, expected: &Value) {
    let (actual, expected) = (actual.unwrap(), number(expected));
    let error = (actual - expected).abs() / expected.abs().max(1e-300);
    assert!(error < 1e-10, "{what}: {actual} is not {expected}");
}

#[test]
fn quantiles_of_distributions() {
    for row in fixture()["student"].as_array().unwrap() {
        let actual = student_quantile(number(&row[0]), row[1].as_u64().unwrap());
        // The inverse is found by a search that stops at some eight digits.
        assert!((actual / number(&row[2]) - 1.0).abs() < 1e-7, "t {row}: {actual}");
    }
    for row in fixture()["normal"].as_array().unwrap() {
        let (actual, expected) = (normal_quantile(number(&row[0])), number(&row[1]));
        assert!((actual - expected).abs() < 1e-10, "normal {row}: {actual}");
    }
}

#[test]
fn binomial_ranks() {
    for row in fixture()["binomial_ranks"].as_array().unwrap() {
        let actual = enclosing_ranks(row[0].as_u64().unwrap(), number(&row[1]));
        let expected = row[2][0].as_u64().zip(row[2][1].as_u64());
        assert_eq!(actual, expected, "{row}");
    }
    for row in fixture()["binomial_cdf"].as_array().unwrap() {
        let (k, n) = (row[0].as_u64().unwrap(), row[1].as_u64().unwrap());
        let (actual, expected) = (binomial_cdf(k, n, number(&row[2])), number(&row[3]));
        // Logarithms of factorials of 10^7 are 10^8: eight digits are left of their sixteen.
        assert!((actual / expected - 1.0).abs() < 1e-7, "{row}: {actual}");
    }
}

#[test]
fn early_stopping() {
    for row in fixture()["early_stopping"].as_array().unwrap() {
        let actual = early_stopping_rank(row[0].as_u64().unwrap(), number(&row[1]));
        assert_eq!(actual, row[2].as_u64(), "{row}");
    }
}

#[test]
fn samples() {
    for case in fixture()["samples"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let mut sample = Sample::default();
        let mut values = case["values"].as_array().unwrap().iter().map(number);
        for (batch, size) in case["sizes"].as_array().unwrap().iter().enumerate() {
            let batch_values = values.by_ref().take(size.as_u64().unwrap() as usize);
            batch_values.for_each(|value| sample.push_in(value, batch as u8));
        }
        for row in case["percentiles"].as_array().unwrap() {
            let percent = number(&row["percent"]);
            let what = format!("{name}, p{percent}");
            let estimate = sample.estimate(percent);
            // Order statistics: to the last bit.
            assert_eq!(estimate.value, row["value"].as_f64(), "{what}");
            agrees(&format!("{what}, n_eff"), estimate.n_eff, &row["n_eff"]);
            assert_eq!(estimate.low, row["interval"][0].as_f64(), "{what}, low");
            assert_eq!(estimate.high, row["interval"][1].as_f64(), "{what}, high");
            let early = sample.early_stopping(percent);
            assert_eq!(early, row["early_stopping"].as_f64(), "{what}, MLPerf");
        }
        let metric = sample.into_metric("ms", Wanted::new(&[]));
        agrees(&format!("{name}, mean"), metric.mean, &case["mean"]);
        agrees(&format!("{name}, std"), metric.std, &case["std"]);
        agrees(&format!("{name}, mean low"), metric.mean_low, &case["mean_interval"][0]);
        agrees(&format!("{name}, mean high"), metric.mean_high, &case["mean_interval"][1]);
    }
}
