//! `--vary`: sides that are one baseline under other settings.

use super::targets::TargetSpec;
use crate::compare::names::{LONGEST, side_letter};
use crate::error::Failed;

/// The baseline, and a side for each variant of it.
pub(super) fn variants(all: &[TargetSpec], vary: &[String]) -> Result<Vec<TargetSpec>, Failed> {
    let [baseline] = all else {
        return Err(Failed::usage(format!("--vary takes one target, not {}", all.len()))
            .hint("name the baseline alone: each --vary adds a side"));
    };
    let mut sides = vec![baseline.clone()];
    for varied in vary.iter().map(|text| variations(text)).collect::<Result<Vec<_>, _>>()?.concat()
    {
        let place = sides.len();
        let is_short = varied.chars().count() <= LONGEST;
        let name = if is_short { varied.clone() } else { side_letter(place) };
        let url = match baseline.url.as_str() {
            url @ "mock" => format!("{url}:{varied}"),
            url if is_mock(url) => format!("{url},{varied}"),
            url => url.to_owned(),
        };
        sides.push(TargetSpec { name, url, varied, ..baseline.clone() });
    }
    if let Some(first) = sides.first_mut().filter(|first| first.name == side_letter(0)) {
        BASELINE.clone_into(&mut first.name);
    }
    Ok(sides)
}

/// What the baseline of a comparison with `--vary` is called where it has no name.
const BASELINE: &str = "baseline";

/// Whether goodput starts this target itself.
pub(super) fn is_mock(url: &str) -> bool {
    url == "mock" || url.starts_with("mock:")
}

/// The variants of one `--vary`: `tp=2` and `tp=4` of `tp=2,4`, and one of `precision=fp8,tp=2`.
fn variations(text: &str) -> Result<Vec<String>, Failed> {
    let wrong = |what: &str| {
        Err(Failed::usage(format!("--vary '{text}' {what}")).hint(
            "write KEY=VALUE, KEY=VALUE,VALUE for one side each, or KEY=VALUE,KEY=VALUE for both \
             settings at once",
        ))
    };
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let is_pair = |part: &&str| part.split_once('=').is_some_and(|(key, _)| !key.is_empty());
    let Some((first, rest)) = parts.split_first().filter(|(first, _)| is_pair(first)) else {
        return wrong("does not set anything");
    };
    if rest.iter().any(|part| part.is_empty()) || first.ends_with('=') {
        return wrong("has an empty value");
    }
    match rest.iter().filter(|part| is_pair(part)).count() {
        0 => {
            let key = first.split('=').next().unwrap_or_default();
            let others = rest.iter().map(|value| format!("{key}={value}"));
            Ok(std::iter::once((*first).to_owned()).chain(others).collect())
        }
        pairs if pairs == rest.len() => Ok(vec![parts.join(",")]),
        _ => wrong("mixes several values of one setting with other settings"),
    }
}
