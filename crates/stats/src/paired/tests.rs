//! Values known by construction.

use super::*;

mod family;
mod oracle;
mod properties;
mod study;

fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{actual}, {expected}");
}

#[test]
fn blocks_that_are_all_alike() {
    // Adding up three times 0.1 rounds.
    let alike = test_paired(&[0.1; 3], 0.05).unwrap();
    assert_eq!((alike.mean, alike.sd, alike.low, alike.high), (0.1, 0.0, 0.1, 0.1));
    // Three signs of eight patterns: 2/8.
    assert_eq!((alike.p, alike.wilcoxon_p, alike.hodges_lehmann), (0.0, Some(0.25), 0.1));
    let zero = test_paired(&[0.0, -0.0, 0.0], 0.05).unwrap();
    assert_eq!((zero.p, zero.wilcoxon_p), (1.0, None));
    assert_eq!((zero.mean, zero.low, zero.high, zero.hodges_lehmann), (0.0, 0.0, 0.0, 0.0));
    let apart = test_unpaired(&[2.0; 3], &[3.0; 2], 0.05).unwrap();
    let exact = Unpaired { mean: 1.0, low: 1.0, high: 1.0, p: 0.0, sd: 0.0, degrees: 3.0 };
    assert_eq!(apart, exact);
    // Only one side spreads: its degrees and its spread alone.
    let one = test_unpaired(&[2.0; 9], &[1.0, 2.0, 4.0], 0.05).unwrap();
    near(one.degrees, 2.0);
    near(one.sd, (7.0f64 / 3.0).sqrt());
}

#[test]
fn a_spread_from_elsewhere() {
    // With one degree of freedom the distribution is Cauchy's: half lies within one error.
    let found = test_with_spread([3.0, 5.0, 2.0], 1.0, 0.5).unwrap();
    near(found.low, 1.0);
    near(found.high, 5.0);
    near(found.p, 1.0 - 2.0 / std::f64::consts::PI * 1.5f64.atan());
    assert_eq!((found.mean, found.sd, found.degrees), (3.0, 5.0, 1.0));
    assert_eq!(test_with_spread([f64::NAN, 5.0, 2.0], 1.0, 0.5), None);
    assert_eq!(test_with_spread([3.0, 5.0, f64::INFINITY], 1.0, 0.5), None);
}

#[test]
fn what_says_nothing() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
        for values in [vec![odd, 0.1], vec![0.1, 0.2, odd]] {
            assert_eq!(test_paired(&values, 0.05), None, "{values:?}");
            assert_eq!(test_unpaired(&values, &[1.0, 2.0], 0.05), None, "{values:?}");
            assert_eq!(test_unpaired(&[1.0, 2.0], &values, 0.05), None, "{values:?}");
        }
    }
    for few in [&[][..], &[1.0]] {
        assert_eq!(test_paired(few, 0.05), None);
        assert_eq!(test_unpaired(few, &[1.0, 2.0], 0.05), None);
        assert_eq!(test_unpaired(&[1.0, 2.0], few, 0.05), None);
    }
    for alpha in [0.0, 1.0, -0.1, 2.0, f64::NAN, f64::INFINITY] {
        assert_eq!(test_paired(&[1.0, 2.0, 4.0], alpha), None, "{alpha}");
        assert_eq!(test_unpaired(&[1.0, 2.0], &[1.0, 2.0], alpha), None, "{alpha}");
    }
    assert_eq!(test_paired(&[f64::NAN; 3], 0.05), None);
    assert_eq!(test_paired(&[f64::INFINITY; 3], 0.05), None);
}

#[test]
fn an_interval_that_no_number_holds_is_infinite() {
    let sure = test_paired(&[1.0, 2.0], 1e-300).unwrap();
    assert_eq!((sure.low, sure.high), (f64::NEG_INFINITY, f64::INFINITY));
    // With one degree of freedom the distribution is Cauchy's.
    near(student::t_critical(0.5, 1.0), 1.0);
    near(student::two_sided_p(1.0, 1.0), 0.5);
}

#[test]
fn one_sided_ranks_reach_five_percent_with_six_blocks() {
    let p = |n: u32| test_paired(&(1..=n).map(f64::from).collect::<Vec<_>>(), 0.05)?.wilcoxon_p;
    assert_eq!(p(5), Some(2.0 / 32.0));
    assert_eq!(p(6), Some(2.0 / 64.0));
    assert_eq!(p(100), Some(2.0 / 2f64.powi(100)));
}

#[test]
fn an_outlier_moves_the_mean_and_not_the_median_of_pairs() {
    let mut values = [0.01, 0.02, 0.03, 0.04, 0.05];
    near(test_paired(&values, 0.05).unwrap().hodges_lehmann, 0.03);
    values[4] = 100.0;
    let moved = test_paired(&values, 0.05).unwrap();
    // The fifteen means in order: .01 .015 .02 .02 .025 .025 .03 .03 …: the eighth.
    near(moved.hodges_lehmann, 0.03);
    assert!(moved.mean > 20.0);
}

#[test]
fn levels_as_published() {
    // Pocock 1977, equal distances.
    let table = [(1, 0.05), (2, 0.0294), (3, 0.0221), (4, 0.0182), (5, 0.0158)];
    for (looks, published) in table {
        let information: Vec<f64> = (1..=looks).map(f64::from).collect();
        let actual = looks::alpha_for_information(&information, 0.05);
        assert!((actual - published).abs() < 0.000_051, "{looks}: {actual}");
        // The t of many blocks is as good as normal.
        let blocks: Vec<u32> = (1..=looks).map(|look| look * 10_000).collect();
        assert!((nominal_alpha(&blocks, 0.05) - published).abs() < 0.000_051, "{looks}");
    }
}

#[test]
fn levels_of_odd_looks() {
    assert_eq!(nominal_alpha(&[], 0.05), 0.05);
    assert_eq!(nominal_alpha(&[8], 0.05), 0.05);
    assert_eq!(nominal_alpha(&[8, 8, 0, 1], 0.05), 0.05);
    assert_eq!(nominal_alpha(&[16, 6, 12, 8, 8], 0.05), nominal_alpha(&[6, 8, 12, 16], 0.05));
    for alpha in [0.0, 1.0, -1.0, 2.0, f64::INFINITY] {
        assert_eq!(nominal_alpha(&[6, 8], alpha), alpha);
    }
    assert!(nominal_alpha(&[6, 8], f64::NAN).is_nan());
    // As one look, or as two that have nothing to do with each other.
    let (joined, apart) =
        (nominal_alpha(&[u32::MAX - 1, u32::MAX], 0.05), nominal_alpha(&[2, u32::MAX], 0.05));
    assert!(joined > 0.0499 && joined <= 0.05, "{joined}");
    assert!((apart - (1.0 - 0.95f64.sqrt())).abs() < 1e-6, "{apart}");
    assert!(nominal_alpha(&[6, 8, 12, 16], 1e-12) > 2.4e-13);
}

#[test]
fn looks_of_the_default_design() {
    // Pocock's constant at 4, 6, 10 and 14: `levels` of the oracle.
    assert!((nominal_alpha(&[6, 8, 12, 16], 0.05) - 0.018_482).abs() < 1e-6);
    assert!((nominal_alpha(&[6, 8], 0.05) - 0.031_820).abs() < 1e-6);
}

/// The tests by simulation: what this many blocks find, in standard deviations of a block.
#[test]
fn blocks_that_find_what_the_method_says() {
    let table = [(4, 2.13), (6, 1.43), (8, 1.16), (10, 1.00), (16, 0.75), (20, 0.66)];
    for (blocks, difference) in table {
        // Its last digit is rounded.
        assert_eq!(blocks_to_find(difference + 0.01, 1.0, 0.05), blocks);
        assert_eq!(blocks_to_find(difference - 0.01, 1.0, 0.05), blocks + 1);
        let (same, sd) = (-(difference + 0.01) * 0.02, 0.02);
        assert_eq!(blocks_to_find(same, sd, 0.05), blocks, "in another unit, downwards");
    }
}

#[test]
fn blocks_at_the_ends() {
    for of in [blocks_to_find, blocks_to_narrow] {
        assert_eq!(of(0.01, 0.0, 0.05), 2, "nothing spreads");
        assert_eq!(of(1e9, 1.0, 0.05), 2);
        assert_eq!(of(0.0, 1.0, 0.05), 10_000);
        assert_eq!(of(1e-9, 1.0, 0.05), 10_000);
        assert_eq!(of(0.0, 0.0, 0.05), 10_000);
        for odd in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(of(0.01, odd, 0.05), 10_000, "{odd}");
        }
        assert_eq!(of(f64::NAN, 1.0, 0.05), 10_000);
        for alpha in [0.0, -1.0, f64::NAN] {
            assert_eq!(of(0.01, 1.0, alpha), 10_000, "{alpha}");
        }
    }
    assert_eq!(blocks_to_find(-0.01, 0.0, 0.05), 2);
    assert_eq!(blocks_to_narrow(-0.01, 0.02, 0.05), 10_000);
    // 2.776 · 0.02 / √5 = 0.0248, and with four 3.182 · 0.02 / 2 = 0.0318.
    assert_eq!(blocks_to_narrow(0.03, 0.02, 0.05), 5);
}
