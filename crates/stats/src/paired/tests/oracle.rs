//! Against SciPy: `tests/oracle/paired.json`, written by `make_paired.py` next to it.

use serde_json::Value;

use super::super::*;

fn fixture() -> Value {
    serde_json::from_str(include_str!("../../../tests/oracle/paired.json")).unwrap()
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    rows(value).iter().map(|number| number.as_f64().unwrap()).collect()
}

/// To nine digits: sums in another order, and other approximations of the same functions, differ in
/// the last ones. Below this share of one nothing is told apart.
#[track_caller]
fn agrees(what: &str, actual: f64, expected: f64) {
    let error = (actual - expected).abs();
    assert!(error <= 1e-9 * expected.abs() + 1e-15, "{what}: {actual} is not {expected}");
}

#[test]
fn paired_differences() {
    for case in rows(&fixture()["paired"]) {
        let (name, values) = (case["name"].as_str().unwrap(), numbers(&case["values"]));
        let is = |what: &str, actual: f64| {
            agrees(&format!("{name}, {what}"), actual, case[what].as_f64().unwrap());
        };
        for interval in rows(&case["intervals"]).iter().map(numbers) {
            let found = test_paired(&values, interval[0]).unwrap();
            agrees(&format!("{name}, low"), found.low, interval[1]);
            agrees(&format!("{name}, high"), found.high, interval[2]);
            is("mean", found.mean);
            is("sd", found.sd);
            is("p", found.p);
            is("wilcoxon_p", found.wilcoxon_p.unwrap());
            is("hodges_lehmann", found.hodges_lehmann);
            assert_eq!(found.n as usize, values.len());
        }
    }
}

#[test]
fn unpaired_groups() {
    for case in rows(&fixture()["unpaired"]) {
        let (a, b) = (numbers(&case["reference"]), numbers(&case["candidate"]));
        for interval in rows(&case["intervals"]).iter().map(numbers) {
            let found = test_unpaired(&a, &b, interval[0]).unwrap();
            agrees("low", found.low, interval[1]);
            agrees("high", found.high, interval[2]);
            agrees("mean", found.mean, case["mean"].as_f64().unwrap());
            agrees("p", found.p, case["p"].as_f64().unwrap());
            agrees("degrees", found.degrees, case["degrees"].as_f64().unwrap());
        }
    }
}

#[test]
fn students_t() {
    let fixture = fixture();
    // Above 100,000 degrees it is the normal distribution, which is this near. Far out only its
    // smallness is told.
    let near = |degrees: f64| if degrees > 1e5 { 2e-4 } else { 1e-9 };
    for row in rows(&fixture["student"]["chances"]).iter().map(numbers) {
        let (actual, expected) = (student::two_sided_p(row[0], row[1]), row[2]);
        let is_near = (actual / expected - 1.0).abs() < near(row[1]);
        assert!(is_near || expected < 1e-100 && actual < 1e-100, "{row:?}: {actual}");
    }
    for row in rows(&fixture["student"]["critical"]).iter().map(numbers) {
        let actual = student::t_critical(row[0], row[1]);
        assert!((actual / row[2] - 1.0).abs() < near(row[1]), "{row:?}: {actual}");
    }
}

#[test]
fn levels_of_looks() {
    for row in rows(&fixture()["levels"]) {
        let actual = looks::alpha_for_information(&numbers(&row[0]), row[1].as_f64().unwrap());
        // The search halves an interval of less than one thirty times.
        assert!((actual / row[2].as_f64().unwrap() - 1.0).abs() < 1e-7, "{row}: {actual}");
    }
}

#[test]
fn numbers_of_blocks() {
    let fixture = fixture();
    let blocks = &fixture["blocks"];
    let nodes = quadrature::gauss_legendre_nodes(100);
    for row in rows(&blocks["power"]).iter().map(numbers) {
        let actual = power::t_test_power(row[0], row[1], row[2], &nodes);
        assert!((actual - row[3]).abs() < 1e-8, "{row:?}: {actual}");
    }
    for row in rows(&blocks["find"]).iter().map(numbers) {
        assert_eq!(f64::from(blocks_to_find(row[0], 1.0, row[1])), row[2], "{row:?}");
    }
    for row in rows(&blocks["narrow"]).iter().map(numbers) {
        assert_eq!(f64::from(blocks_to_narrow(row[0], 1.0, row[1])), row[2], "{row:?}");
    }
}
