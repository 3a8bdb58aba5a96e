//! What holds for all values.

use proptest::prelude::*;

use super::super::*;

/// Halves between −4 and 4: many ties, many zeros, and no rounding.
fn coarse(most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-8i32..=8).prop_map(|half| f64::from(half) / 2.0), 2..=most)
}

fn any_values(most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![coarse(most), prop::collection::vec(-1.0f64..1.0, 2..=most)]
}

/// The share of all patterns of signs whose positive ranks lie as far from the middle or farther.
fn by_all_signs(values: &[f64]) -> Option<f64> {
    let sizes: Vec<f64> = values.iter().map(|v| v.abs()).filter(|v| *v > 0.0).collect();
    // Twice the rank: those below count two, the tied ones (itself among them) one, and one more.
    let rank = |size: f64| -> usize {
        let below = sizes.iter().filter(|other| **other < size).count();
        2 * below + sizes.iter().filter(|other| **other == size).count() + 1
    };
    let ranks: Vec<usize> = sizes.iter().map(|size| rank(*size)).collect();
    let total: usize = ranks.iter().sum();
    let positive = values.iter().filter(|v| **v > 0.0).map(|v| rank(*v)).sum::<usize>();
    let distance = |sum: usize| (2 * sum).abs_diff(total);
    let patterns = 1u32 << ranks.len();
    let as_far = (0..patterns).filter(|pattern| {
        let up = ranks.iter().enumerate().filter(|(place, _)| pattern >> place & 1 == 1);
        distance(up.map(|(_, rank)| rank).sum()) >= distance(positive)
    });
    (!ranks.is_empty()).then(|| as_far.count() as f64 / f64::from(patterns))
}

fn is_near(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) + 1e-12
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn signed_ranks_are_those_of_all_patterns(values in any_values(12)) {
        let (actual, expected) = (wilcoxon::p_value(&values), by_all_signs(&values));
        prop_assert_eq!(actual.is_some(), expected.is_some());
        // Powers of two and their sums.
        prop_assert_eq!(actual, expected);
    }

    #[test]
    fn other_signs_give_the_mirror_image(values in any_values(20), alpha in 0.001f64..0.5) {
        let flipped: Vec<f64> = values.iter().map(|value| -value).collect();
        let (one, other) = (test_paired(&values, alpha).unwrap(), test_paired(&flipped, alpha).unwrap());
        prop_assert_eq!((one.mean, one.low, one.high), (-other.mean, -other.high, -other.low));
        prop_assert_eq!((one.sd, one.p, one.wilcoxon_p), (other.sd, other.p, other.wilcoxon_p));
        prop_assert_eq!(one.hodges_lehmann, -other.hodges_lehmann);
    }

    #[test]
    fn the_order_of_blocks_does_not_matter(
        (values, mixed) in any_values(20).prop_flat_map(|v| (Just(v.clone()), Just(v).prop_shuffle())),
    ) {
        let (one, other) = (test_paired(&values, 0.05).unwrap(), test_paired(&mixed, 0.05).unwrap());
        prop_assert_eq!(one.wilcoxon_p, other.wilcoxon_p);
        prop_assert_eq!(one.hodges_lehmann, other.hodges_lehmann);
        let pairs = [(one.mean, other.mean), (one.low, other.low), (one.p, other.p)];
        prop_assert!(pairs.iter().all(|(a, b)| is_near(*a, *b)), "{:?}", pairs);
    }

    #[test]
    fn an_interval_excludes_zero_where_p_is_below_alpha(
        a in any_values(12), b in any_values(12), alpha in 0.001f64..0.5,
    ) {
        let (one, two) = (test_paired(&a, alpha).unwrap(), test_unpaired(&a, &b, alpha).unwrap());
        for (low, high, p) in [(one.low, one.high, one.p), (two.low, two.high, two.p)] {
            // An end at zero itself is a matter of rounding.
            let excludes = low > 0.0 || high < 0.0;
            prop_assert!(is_near(p, alpha) || excludes == (p < alpha), "{low} {high} {p}");
            prop_assert!(low <= high && (0.0..=1.0).contains(&p));
        }
    }

    #[test]
    fn groups_that_change_places_change_the_sign(a in any_values(9), b in any_values(9)) {
        let (one, other) = (test_unpaired(&a, &b, 0.05).unwrap(), test_unpaired(&b, &a, 0.05).unwrap());
        prop_assert!(one.mean == -other.mean && is_near(one.low, -other.high));
        prop_assert!(is_near(one.p, other.p) && is_near(one.degrees, other.degrees));
        let (fewer, more) = (a.len().min(b.len()) - 1, a.len() + b.len() - 2);
        prop_assert!(one.degrees >= fewer as f64 - 1e-9 && one.degrees <= more as f64 + 1e-9);
    }

    #[test]
    fn nothing_panics(
        values in prop::collection::vec(any::<f64>(), 0..8),
        looks in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..30], 0..5),
        (a, b, alpha) in any::<(f64, f64, f64)>(),
    ) {
        for alpha in [alpha, 0.05, f64::MIN_POSITIVE] {
            let half = values.len() / 2;
            let found = test_paired(&values, alpha);
            prop_assert!(found.is_none_or(|found| !found.low.is_nan() && !found.p.is_nan()));
            let _ = test_unpaired(&values[..half], &values[half..], alpha);
            for blocks in [blocks_to_find(a, b, alpha), blocks_to_narrow(a, b, alpha)] {
                prop_assert!((2..=10_000).contains(&blocks));
            }
        }
        let level = nominal_alpha(&looks, 0.05);
        prop_assert!((0.01..=0.05).contains(&level), "{}", level);
    }
}
