//! Fits the step times of a simulated engine's profile to measured ones.
//!
//! The form is that of `goodput_sim::StepCost`. It is linear in what is looked for, namely the values of
//! the tables at their knots and the two prices per KV token and per attended pair, so weighted least
//! squares has one answer. Weights make it the *relative* error that is small.

use std::fmt::Write;

use goodput_sim::{StepCost, StepShape};

/// Where the measurements are.
const MEASURED: &str = "docs/profiles/llama-8b-1xh200.csv";

/// Context at which the decode table is taken.
const REFERENCE: u32 = 128;

/// Knots of the prefill table: where its slope changes, and one far out.
const PREFILL_KNOTS: [u32; 6] = [16, 64, 128, 256, 512, 8192];

/// One measured step.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    decodes: bool,
    batch: u32,
    tokens: u32,
    ms: f64,
}

impl Row {
    fn shape(&self) -> StepShape {
        let mut shape = StepShape::default();
        for _ in 0..self.batch {
            if self.decodes {
                shape.add_decode(1, self.tokens);
            } else {
                shape.add_prefill(self.tokens, 0);
            }
        }
        shape
    }
}

/// Prints the fitted `[step]` and the error of each point as Markdown.
#[expect(clippy::print_stdout, reason = "the fit is this task's result")]
pub(crate) fn fit(arguments: &[String]) -> Result<(), String> {
    let path = arguments.first().map_or(MEASURED, String::as_str);
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let rows = read(&text)?;
    let step = solve(&rows)?;
    println!("{}\n{}", as_toml(&step), errors(&step, &rows));
    Ok(())
}

fn read(text: &str) -> Result<Vec<Row>, String> {
    let row = |line: &str| {
        let mut fields = line.split(',');
        let decodes = match fields.next()? {
            "decode" => true,
            "prefill" => false,
            _ => return None,
        };
        let batch = fields.next()?.parse().ok()?;
        let tokens = fields.next()?.parse().ok()?;
        let ms = fields.next()?.parse().ok().filter(|ms| *ms > 0.0)?;
        Some(Row { decodes, batch, tokens, ms })
    };
    let lines = text.lines().skip(1).filter(|line| !line.is_empty());
    lines.map(|line| row(line).ok_or_else(|| format!("cannot read `{line}`"))).collect()
}

fn solve(rows: &[Row]) -> Result<StepCost, String> {
    let (decode, prefill): (Vec<Row>, Vec<Row>) = rows.iter().partition(|row| row.decodes);
    let mut batches: Vec<u32> = decode.iter().map(|row| row.batch).collect();
    batches.sort_unstable();
    batches.dedup();
    let beyond =
        |row: &Row| f64::from(row.batch) * (f64::from(row.tokens) - f64::from(REFERENCE)) * 1e-6;
    let by_batch = least_squares(&decode, &batches, |row| row.batch, beyond)?;
    let pairs = |row: &Row| {
        0.5 * f64::from(row.batch) * f64::from(row.tokens) * f64::from(row.tokens) * 1e-6
    };
    let all_tokens = |row: &Row| row.batch.saturating_mul(row.tokens);
    let by_tokens = least_squares(&prefill, &PREFILL_KNOTS, all_tokens, pairs)?;
    let table = |knots: &[u32], values: &[f64]| {
        knots.iter().zip(values).map(|(knot, ms)| (*knot, round(*ms, 1e3))).collect::<Vec<_>>()
    };
    let decode_ms = table(&batches, &by_batch);
    Ok(StepCost {
        base_ms: decode_ms.first().map_or(0.0, |(_, ms)| *ms),
        // Both are arithmetic on the same units, so nothing hides behind the other.
        overlap: 0.0,
        reference_context: REFERENCE,
        decode_ms,
        kv_ns: round(by_batch.last().copied().unwrap_or_default(), 1e2),
        prefill_ms: table(&PREFILL_KNOTS, &by_tokens),
        attention_ns: round(by_tokens.last().copied().unwrap_or_default(), 1e3),
    })
}

fn round(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// Values at the knots, and then the price of `extra`, that make the squared relative errors least.
fn least_squares(
    rows: &[Row],
    knots: &[u32],
    at: impl Fn(&Row) -> u32,
    extra: impl Fn(&Row) -> f64,
) -> Result<Vec<f64>, String> {
    if knots.len() < 2 {
        return Err("the measurements need at least two batch sizes".to_owned());
    }
    let unknowns = knots.len() + 1;
    let mut system = vec![vec![0.0; unknowns + 1]; unknowns];
    for row in rows {
        let mut terms = hats(knots, f64::from(at(row)));
        terms.push(extra(row));
        terms.push(row.ms);
        for term in &mut terms {
            *term /= row.ms;
        }
        for (i, line) in system.iter_mut().enumerate() {
            for (cell, term) in line.iter_mut().zip(&terms) {
                *cell += terms[i] * term;
            }
        }
    }
    eliminate(system).ok_or_else(|| "the measurements do not determine the parameters".to_owned())
}

/// How much the value at each knot counts at `x`; the outer segments go on.
fn hats(knots: &[u32], x: f64) -> Vec<f64> {
    let mut weights = vec![0.0; knots.len()];
    let above = knots.partition_point(|knot| f64::from(*knot) < x).clamp(1, knots.len() - 1);
    let (low, high) = (f64::from(knots[above - 1]), f64::from(knots[above]));
    weights[above] = (x - low) / (high - low);
    weights[above - 1] = 1.0 - weights[above];
    weights
}

/// Gauss and Jordan with the largest pivot.
fn eliminate(mut system: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = system.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|a, b| system[*a][column].abs().total_cmp(&system[*b][column].abs()))?;
        system.swap(column, pivot);
        let line = system[column].clone();
        if line[column].abs() < 1e-12 {
            return None;
        }
        for (i, other) in system.iter_mut().enumerate() {
            let factor = if i == column { 0.0 } else { other[column] / line[column] };
            for (cell, value) in other.iter_mut().zip(&line) {
                *cell -= factor * value;
            }
        }
    }
    Some((0..size).map(|i| system[i][size] / system[i][i]).collect())
}

fn as_toml(step: &StepCost) -> String {
    let table = |points: &[(u32, f64)]| {
        let points: Vec<String> = points.iter().map(|(x, ms)| format!("[{x}, {ms:?}]")).collect();
        points.join(", ")
    };
    format!(
        "[step]\nbase_ms = {:?}\noverlap = {:?}\nreference_context = {}\ndecode_ms = [{}]\n\
         kv_ns = {:?}\nprefill_ms = [{}]\nattention_ns = {:?}\n",
        step.base_ms,
        step.overlap,
        step.reference_context,
        table(&step.decode_ms),
        step.kv_ns,
        table(&step.prefill_ms),
        step.attention_ns,
    )
}

fn errors(step: &StepCost, rows: &[Row]) -> String {
    let mut out = String::from("| phase | batch | tokens | measured ms | model ms | error |\n");
    out.push_str("|---|---:|---:|---:|---:|---:|\n");
    let mut all = Vec::new();
    for row in rows {
        let ms = step.step_ms(&row.shape());
        let error = 100.0 * (ms / row.ms - 1.0);
        all.push(error.abs());
        let phase = if row.decodes { "decode" } else { "prefill" };
        let Row { batch, tokens, ms: measured, .. } = row;
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "| {phase} | {batch} | {tokens} | {measured:.2} | {ms:.2} | {error:+.1} % |"
        );
    }
    all.sort_by(f64::total_cmp);
    let within = all.iter().filter(|error| **error <= 10.0).count();
    let (median, worst) = (all.get(all.len() / 2), all.last());
    let _ = writeln!(
        out,
        "\n{within} of {} points within 10 %; median error {:.1} %, largest {:.1} %.",
        all.len(),
        median.copied().unwrap_or_default(),
        worst.copied().unwrap_or_default()
    );
    out
}

#[cfg(test)]
mod tests {
    use goodput_sim::{EngineProfile, Profile};

    use super::*;

    #[test]
    fn what_was_put_in_comes_out() {
        let step = StepCost {
            base_ms: 5.0,
            overlap: 0.0,
            reference_context: REFERENCE,
            decode_ms: vec![(1, 5.0), (8, 6.0), (64, 9.5)],
            kv_ns: 30.0,
            prefill_ms: PREFILL_KNOTS.iter().map(|n| (*n, 5.0 + f64::from(*n) / 40.0)).collect(),
            attention_ns: 1.5,
        };
        let decode =
            [1, 8, 64].into_iter().flat_map(|batch| [(true, batch, 128), (true, batch, 4096)]);
        let prefill = PREFILL_KNOTS.into_iter().chain([4096]).map(|tokens| (false, 1, tokens));
        let row = |(decodes, batch, tokens)| {
            let row = Row { decodes, batch, tokens, ms: 1.0 };
            Row { ms: step.step_ms(&row.shape()), ..row }
        };
        let rows: Vec<Row> = decode.chain(prefill).map(row).collect();
        assert_eq!(solve(&rows).unwrap(), step);
        assert!(solve(&rows[..3]).is_err());
        assert!(read("phase,batch,tokens,ms\nnap,1,1,1").is_err());
    }

    #[test]
    fn the_profile_is_the_fit() {
        let rows = read(include_str!("../../docs/profiles/llama-8b-1xh200.csv")).unwrap();
        let profile = Profile::builtin("llama-8b-1xh200").unwrap();
        let EngineProfile::Batching(batching) = profile.engine else {
            panic!("not a batching profile")
        };
        assert_eq!(batching.step, solve(&rows).unwrap());
    }
}
