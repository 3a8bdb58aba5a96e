//! How often several looks at blocks that differ by nothing find something.

use goodput_model::random::{Domain, RandomStream};

use super::super::*;

/// The share of sequences in which a t-test at one of the looks is below the level, for each level.
fn family_errors(looks: &[u32], levels: &[f64], sequences: u64) -> Vec<f64> {
    let limits: Vec<Vec<f64>> = levels
        .iter()
        .map(|level| {
            looks.iter().map(|n| student::t_critical(*level, f64::from(*n) - 1.0)).collect()
        })
        .collect();
    let mut hits = vec![0u32; levels.len()];
    for index in 0..sequences {
        let mut stream = RandomStream::new(20_261_115, Domain::Service, index);
        let (mut sum, mut squares, mut drawn) = (0.0, 0.0, 0);
        let tests: Vec<f64> = looks
            .iter()
            .map(|look| {
                while drawn < *look {
                    let value = stream.draw_normal();
                    sum += value;
                    squares += value * value;
                    drawn += 1;
                }
                let n = f64::from(*look);
                let variance = (squares - sum * sum / n) / (n - 1.0);
                (sum / n / (variance / n).sqrt()).abs()
            })
            .collect();
        for (hits, limits) in hits.iter_mut().zip(&limits) {
            *hits += u32::from(tests.iter().zip(limits).any(|(t, limit)| t > limit));
        }
    }
    hits.into_iter().map(|hits| f64::from(hits) / sequences as f64).collect()
}

#[test]
fn looks_are_wrong_together_as_often_as_said() {
    let looks = [6, 8, 12, 16];
    let errors = family_errors(&looks, &[nominal_alpha(&looks, 0.05), 0.05], 20_000);
    // Three standard errors of 20,000.
    assert!((errors[0] - 0.05).abs() < 3.0 * (0.05f64 * 0.95 / 20_000.0).sqrt(), "{errors:?}");
    // Without any correction it would be as often as this.
    assert!(errors[1] > 0.11, "{errors:?}");
}

#[test]
#[ignore = "a study of some minutes: half a million sequences for each design"]
fn study() {
    let sequences = 500_000;
    println!("looks; family error at 5 % and at 1 % by Pocock's constant as it is; by ours");
    let designs: [&[u32]; 9] = [
        &[6, 8, 12, 16],
        &[6, 8, 12],
        &[6, 8],
        &[3, 4, 5, 6],
        &[2, 3, 4],
        &[4, 8],
        &[6, 16, 64],
        &[6, 7, 8, 9, 10],
        &[10, 20, 30],
    ];
    for looks in designs {
        let blocks: Vec<f64> = looks.iter().map(|blocks| f64::from(*blocks)).collect();
        let plain = |alpha| looks::alpha_for_information(&blocks, alpha);
        let levels =
            [plain(0.05), plain(0.01), nominal_alpha(looks, 0.05), nominal_alpha(looks, 0.01)];
        println!("{looks:?}; {:.4?}", family_errors(looks, &levels, sequences));
    }
    println!("tests; all of them together at most, by 5 % divided after and before the looks");
    let looks = [6, 8, 12, 16];
    for tests in [1.0, 2.0, 5.0, 7.0] {
        let levels = [nominal_alpha(&looks, 0.05) / tests, nominal_alpha(&looks, 0.05 / tests)];
        let errors = family_errors(&looks, &levels, 4 * sequences);
        println!("{tests}; {:.4}; {:.4}", errors[0] * tests, errors[1] * tests);
    }
}
