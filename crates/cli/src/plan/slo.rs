//! The SLO.

use goodput_model::{Measure, Slo, SloError, SloQuestion};

use crate::args::{SavedSloArgs, SloArgs};
use crate::error::Failed;

/// Applies the flags that were typed; the rest stays as it is.
pub(crate) fn apply_slo_flags(args: &SloArgs, measure: &mut Measure) -> Result<(), Failed> {
    if let Some(text) = &args.slo {
        measure.slo = Some(parse_slo(text)?);
    } else if !args.goodput.is_empty() {
        measure.slo = Some(parse_slo(&args.goodput.join(","))?);
    }
    if let Some(text) = &args.attainment {
        measure.attainment = Some(parse_attainment(text)?);
    }
    Ok(())
}

/// What saved results are judged by.
pub(crate) fn slo_question(args: &SavedSloArgs) -> Result<SloQuestion, Failed> {
    Ok(SloQuestion {
        slo: args.slo.as_deref().map(parse_slo).transpose()?,
        attainment: args.attainment.as_deref().map(parse_attainment).transpose()?,
    })
}

fn parse_slo(text: &str) -> Result<Slo, Failed> {
    const HINT: &str =
        "write --slo 'p99 ttft < 500ms, tpot < 50ms, errors < 1%'; docs/slo.md has the grammar";
    text.parse().map_err(|error: SloError| Failed::usage(error.to_string()).hint(HINT))
}

/// `99%` or `0.99`.
fn parse_attainment(text: &str) -> Result<f64, Failed> {
    let text = text.trim();
    let (number, power) =
        text.strip_suffix('%').map_or((text, 0), |percent| (percent.trim_end(), -2));
    let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
    // By its digits, so that 99.9 % is 0.999 to the last bit.
    let share = format!("{number}e{power}").parse::<f64>().ok().filter(|_| is_plain);
    share.filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Failed::usage(format!("--attainment `{shown}` is not a share of requests"))
            .hint("write --attainment 99% or --attainment 0.99")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        for (text, expected) in
            [("99%", 0.99), ("99.9 %", 0.999), ("0.5", 0.5), ("1", 1.0), ("100%", 1.0)]
        {
            assert_eq!(parse_attainment(text).unwrap(), expected, "{text}");
        }
        for text in ["", "%", "0", "0%", "99", "101%", "-1%", "nan", "inf", "1e-2", "half"] {
            assert!(parse_attainment(text).is_err(), "{text}");
        }
    }
}
