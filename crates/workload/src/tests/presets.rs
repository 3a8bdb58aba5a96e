use goodput_model::SourcePlan;
use goodput_model::random::{Domain, RandomStream};

use super::*;

/// The complementary error function (Abramowitz and Stegun 7.1.26), to 1.5e-7.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t) * (-x * x).exp()
}

/// Mean, standard deviation and the shares at both clips of a log-normal length that is cut to
/// whole tokens: sums over P(X ≥ k), which need no approximation of the cutting.
fn closed_form(median: f64, sigma: f64, clip: Clip) -> (f64, f64, f64, f64) {
    let above = |k: u32| 0.5 * erfc((f64::from(k) / median).ln() / sigma / 2f64.sqrt());
    let low = f64::from(clip.low);
    let (mut mean, mut square) = (low, low * low);
    for k in clip.low + 1..=clip.high {
        let p = above(k);
        mean += p;
        square += (2.0 * f64::from(k) - 1.0) * p;
    }
    (mean, (square - mean * mean).sqrt(), 1.0 - above(clip.low + 1), above(clip.high))
}
use goodput_model::Clip;

#[test]
fn lengths_have_the_moments_of_the_clipped_log_normal() {
    let n = 40_000u64;
    for name in PRESETS {
        let SourcePlan::Synthetic { input, output } = find_preset(name).unwrap().source else {
            panic!("{name}")
        };
        let drawn: Vec<(u32, u32)> = (0..n)
            .map(|number| {
                let mut stream = RandomStream::new(11, Domain::Lengths, number);
                (input.draw(&mut stream), output.draw(&mut stream))
            })
            .collect();
        let inputs = drawn.iter().map(|(input, _)| *input).collect::<Vec<_>>();
        let outputs = drawn.iter().map(|(_, output)| *output).collect::<Vec<_>>();
        for (lengths, values) in [(input, inputs), (output, outputs)] {
            let LengthDistribution::LogNormal(median, sigma, clip) = lengths else {
                panic!("{name}")
            };
            let (mean, sd, at_low, at_high) = closed_form(median, sigma, clip);
            // Four standard errors: of a mean, and of a share, with one count next to it for
            // shares of almost nothing.
            let n = n as f64;
            let sampled = values.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
            let tolerance = 4.0 * sd / n.sqrt();
            assert!((sampled - mean).abs() < tolerance, "{name}: {sampled}, not {mean}");
            for (end, p) in [(clip.low, at_low), (clip.high, at_high)] {
                let share = values.iter().filter(|v| **v == end).count() as f64 / n;
                let tolerance = 4.0 * (p * (1.0 - p) / n).sqrt() + 1.0 / n;
                assert!((share - p).abs() < tolerance, "{name} at {end}: {share}, not {p}");
            }
        }
    }
}

#[test]
fn a_session_has_the_lengths_of_its_stream_and_they_are_pinned() {
    let workload = build(find_preset("chat").unwrap());
    let lengths: Vec<(u32, u32)> = (0..6)
        .map(|number| {
            let planned = first(&workload, number).planned;
            (planned.input_tokens, planned.output_tokens.unwrap())
        })
        .collect();
    assert_eq!(lengths, GOLDEN_CHAT);
    let SourcePlan::Synthetic { input, output } = find_preset("chat").unwrap().source else {
        panic!()
    };
    for (number, lengths) in (0..).zip(lengths) {
        let mut stream = RandomStream::new(42, Domain::Lengths, number);
        assert_eq!((input.draw(&mut stream), output.draw(&mut stream)), lengths);
    }
}
const GOLDEN_CHAT: [(u32, u32); 6] =
    [(909, 62), (299, 194), (242, 577), (1312, 274), (437, 115), (1671, 55)];

#[test]
fn prompts_have_exactly_their_tokens() {
    for name in ["chat", "code_generation", "summarization"] {
        let workload = build(find_preset(name).unwrap());
        for number in 0..20 {
            let request = first(&workload, number);
            assert_eq!(count(&whole(&request)), request.planned.input_tokens);
        }
    }
}

#[test]
fn pairs_are_drawn_together() {
    let class =
        ClassPlan { source: SourcePlan::Pairs { file: "pairs.csv".to_owned() }, ..fixed(1, 1) };
    let pairs = vec![(10, 1), (20, 2), (30, 3)];
    let plan = WorkloadPlan::new(class);
    let workload =
        Workload::build(&plan, &Setting::new(1), vec![Material::Pairs(pairs.clone())]).unwrap();
    let mut seen = [0u32; 3];
    for number in 0..300 {
        let planned = first(&workload, number).planned;
        let pair = (planned.input_tokens, planned.output_tokens.unwrap());
        seen[pairs.iter().position(|known| *known == pair).unwrap()] += 1;
    }
    // Six standard deviations of a binomial of 300 and a third.
    assert!(seen.iter().all(|count| (51..150).contains(count)), "{seen:?}");
}

#[test]
fn every_preset_describes_itself() {
    for name in PRESETS {
        let line = describe_workload(&WorkloadPlan::new(find_preset(name).unwrap()));
        assert!(line.starts_with(&format!("{name}: input lognormal:")), "{line}");
    }
    assert!(find_preset("chatt").is_none());
    let line = describe_workload(&WorkloadPlan::new(find_preset("agent").unwrap()));
    assert!(line.contains("uniform:1:6 tool calls per turn with 1 in parallel"), "{line}");
}
