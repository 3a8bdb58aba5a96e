//! What differs, how much that matters, and what it does to the figures.

use std::collections::BTreeSet;

use goodput_model::safe_excerpt;

use super::facts::{BETWEEN, WORDS, percent_text};
use super::texts::{AROUND, ASKED, PATH, Text};
use super::{Difference, Matter, SideFacts};

/// Shares of prompts from a cache further apart than this are two states of it.
const CACHE_REFUSE: f64 = 0.05;
const CACHE_WARN: f64 = 0.02;

/// Answers that differ more than this in length are other work.
const LENGTH_REFUSE: f64 = 0.05;
const LENGTH_WARN: f64 = 0.01;

/// Answers this close to their plan are so by constraint, not by chance.
const AS_PLANNED: f64 = 0.005;

/// The same prompts counted this far apart are counted by two tokenizers.
const COUNT_REFUSE: f64 = 0.02;
const COUNT_WARN: f64 = 0.005;

/// Templates of one tokenizer may differ by this many tokens.
const TEMPLATE: f64 = 4.0;

/// Shares of failures further apart than this leave other requests on either side.
const FAILED_REFUSE: f64 = 0.05;
const FAILED_WARN: f64 = 0.01;

/// Paths that differ by more than these shares of TTFT, and by more than this where TTFT is unknown.
const PATH_REFUSE: f64 = 0.5;
const PATH_WARN: f64 = 0.05;
const PATH_MS: f64 = 1.0;

/// Windows further apart than these factors.
const WINDOW_WARN: f64 = 1.5;
const WINDOW_INFO: f64 = 1.1;

/// Metrics that count tokens.
const TOKENS: &[&str] =
    &["tpot", "itl", "output_tokens_per_s", "total_tokens_per_s", "goodput_tokens_per_s"];

/// Metrics that depend on how long answers are. Who writes less is done sooner and takes more.
const LENGTHS: &[&str] = &[
    "e2e",
    "requests_per_s",
    "output_tokens_per_s",
    "total_tokens_per_s",
    "recounted_tokens_per_s",
    "characters_per_s",
    "goodput_rps",
    "goodput_tokens_per_s",
    "attainment",
];

/// Of them, those that count all answers alike, by any tokenizer.
const ALIKE: [&str; 2] = ["recounted_tokens_per_s", "characters_per_s"];

/// Metrics of good requests only. Attainment and goodput count a failure as a miss.
const OF_GOOD: &[&str] = &[
    "ttft",
    "tpot",
    "itl",
    "e2e",
    "requests_per_s",
    "output_tokens_per_s",
    "total_tokens_per_s",
    "recounted_tokens_per_s",
    "characters_per_s",
];

const PROMISES: &[&str] = &["goodput_rps", "goodput_tokens_per_s", "attainment"];

const TOKENIZER_ADVICE: &str = "count the answers of both with one tokenizer (--count-with), and \
                                compare those tokens or characters per second";

/// Who counts every token for itself.
const EXACT: [&str; 2] = ["usage", "token_ids"];

/// Everything that should be the same on both and is not; `side` is the candidate's place.
/// `is_live`: both were measured here in turn, with one plan.
pub fn find_differences(
    reference: &SideFacts,
    candidate: &SideFacts,
    side: u32,
    is_live: bool,
) -> Vec<Difference> {
    let mut check = ComparabilityCheck { reference, candidate, side, found: Vec::new() };
    check.check_workload(is_live);
    check.check_asked();
    if !is_live {
        check.check_surroundings();
    }
    check.check_cache();
    check.check_token_source();
    check.check_tokenizer();
    check.check_output_length();
    check.check_failures();
    check.check_path(is_live);
    check.found.sort_by_key(|difference| std::cmp::Reverse(difference.matter));
    // Each once, as it matters most.
    let mut codes = BTreeSet::new();
    check.found.retain(|difference| codes.insert(difference.code.clone()));
    check.found
}

struct ComparabilityCheck<'a> {
    reference: &'a SideFacts,
    candidate: &'a SideFacts,
    side: u32,
    found: Vec<Difference>,
}

/// What is said of a difference.
struct Words<'a> {
    message: String,
    /// What to do about it.
    advice: &'a str,
}

impl ComparabilityCheck<'_> {
    fn add_difference(&mut self, code: &str, matter: Matter, spoils: &[&str], words: Words<'_>) {
        let Words { message, advice } = words;
        self.found.push(Difference {
            code: code.to_owned(),
            matter,
            side: self.side,
            message,
            advice: advice.to_owned(),
            spoils: spoils.iter().map(|name| (*name).to_owned()).collect(),
        });
    }

    /// Two texts, both named, where they differ.
    fn differing_texts(&self, what: &str, of: fn(&SideFacts) -> &str) -> Option<String> {
        let (one, other) = (of(self.reference), of(self.candidate));
        let named = |text: &str| match text {
            "" => "nothing".to_owned(),
            text => format!("`{}`", safe_excerpt(text)),
        };
        (one != other).then(|| {
            format!("{what}: {} on the reference, {} on this side", named(one), named(other))
        })
    }

    fn both_values(&self, of: fn(&SideFacts) -> Option<f64>) -> Option<(f64, f64)> {
        of(self.reference).zip(of(self.candidate))
    }

    fn has_tokenizers(&self) -> bool {
        self.found.iter().any(|difference| difference.code == "tokenizer")
    }

    fn check_workload(&mut self, is_live: bool) {
        let (one, other) = (self.reference, self.candidate);
        let (ours, theirs) = (workload_hashes(one), workload_hashes(other));
        let advice = "measure both with the same workload, seed, and files; `goodput workload \
                      make` freezes a workload in a file";
        if ours.is_empty() || theirs.is_empty() {
            if !is_live {
                let message = "a run has no workload hash: whether both servers received the same \
                               requests is unknown";
                self.add_difference(
                    "workload_hash",
                    Matter::Warn,
                    &[],
                    Words { message: message.to_owned(), advice },
                );
            }
            return;
        }
        let is_alike = one.workload == other.workload && one.shape == other.shape;
        let has_seeds = one.seed != other.seed;
        if has_seeds && is_alike && !is_live {
            let message = format!(
                "the seeds differ: {} on the reference, {} on this side; prompts and instants are \
                 different random draws, and chance is part of every difference",
                one.seed, other.seed
            );
            self.add_difference(
                "seed",
                Matter::Info,
                &[],
                Words { message, advice: "measure both with the same --seed" },
            );
        }
        if !ours.is_disjoint(&theirs) {
            return;
        }
        if is_alike && one.calibration != other.calibration {
            let found = self
                .differing_texts("prompts were calibrated differently", |facts| &facts.calibration);
            let message = found.unwrap_or_default()
                + "; prompts have the same length in each server's tokens, but not the same text";
            // A template is not a tokenizer; and what was not counted may be either.
            let (ours, theirs) = (calibration_fingerprints(one), calibration_fingerprints(other));
            let is_known = !ours.is_empty() && !theirs.is_empty();
            let matter = if is_known && ours != theirs { Matter::Refuse } else { Matter::Warn };
            self.add_difference(
                "tokenizer",
                matter,
                TOKENS,
                Words { message, advice: TOKENIZER_ADVICE },
            );
        } else if !(is_alike && has_seeds) {
            let short = |hashes: &BTreeSet<&str>| {
                let hash = hashes.first().copied().unwrap_or_default();
                hash.chars().take(12).collect::<String>()
            };
            let what = self.differing_texts("the workloads differ", |facts| &facts.workload);
            let message = format!(
                "{} (hash {} against {}): different prompts give different figures, whatever the \
                 servers do",
                what.unwrap_or_else(|| "the workloads differ".to_owned()),
                safe_excerpt(&short(&ours)),
                safe_excerpt(&short(&theirs)),
            );
            self.add_difference("workload_hash", Matter::Refuse, &[], Words { message, advice });
        }
    }

    fn check_texts(&mut self, all: &[Text]) {
        for text in all {
            if let Some(found) = self.differing_texts(text.what, text.of) {
                let message = format!("{found}; {}", text.effect);
                self.add_difference(
                    text.code,
                    text.matter,
                    text.spoils,
                    Words { message, advice: text.advice },
                );
            }
        }
    }

    /// What every run was asked, also of targets that are measured in turn.
    fn check_asked(&mut self) {
        self.check_texts(&ASKED);
        let Some(found) = self.differing_texts("the SLOs differ", |facts| &facts.slo) else {
            return;
        };
        // Without an SLO there is nothing to compare on that side, and nothing to spoil.
        let is_on_both = !self.reference.slo.is_empty() && !self.candidate.slo.is_empty();
        let matter = if is_on_both { Matter::Refuse } else { Matter::Info };
        let message = format!("{found}; goodput and attainment measure different SLOs");
        self.add_difference(
            "slo",
            matter,
            PROMISES,
            Words { message, advice: "measure both with the same --slo" },
        );
    }

    /// What only runs of different times and places can differ in.
    fn check_surroundings(&mut self) {
        self.check_texts(&AROUND);
        let (one, other) = (self.reference.window_s, self.candidate.window_s);
        let factor = one.max(other) / one.min(other);
        if one > 0.0 && other > 0.0 && factor > WINDOW_INFO {
            let matter = if factor > WINDOW_WARN { Matter::Warn } else { Matter::Info };
            let message = format!(
                "the windows differ in length: {one:.1} s on the reference, {other:.1} s on this \
                 side; a shorter one sees fewer of the rare slow requests, and less of a growing \
                 queue"
            );
            self.add_difference(
                "window",
                matter,
                &[],
                Words { message, advice: "measure both for the same --duration" },
            );
        }
    }

    fn check_cache(&mut self) {
        const ADVICE: &str = "bring both to the same state before each run: --cache reset, a \
                              restart, or the same warm-up on both";
        let code = "cache_state";
        if let Some(found) =
            self.differing_texts("the prefix caches were treated differently", |facts| &facts.cache)
        {
            let message = format!("{found}; cached tokens are not computed");
            self.add_difference(code, Matter::Warn, &[], Words { message, advice: ADVICE });
        }
        match (self.reference.cached_share, self.candidate.cached_share) {
            (Some(one), Some(other)) => {
                let Some(matter) = matter_beyond((one - other).abs(), CACHE_WARN, CACHE_REFUSE)
                else {
                    return;
                };
                let message = format!(
                    "the prefix caches were not in the same state: {} of prompt tokens were cached \
                     on the reference, {} on this side; cached tokens are not computed, which \
                     shortens TTFT and leaves room for other requests",
                    percent_text(one),
                    percent_text(other)
                );
                self.add_difference(code, matter, &[], Words { message, advice: ADVICE });
            }
            (Some(share), None) | (None, Some(share)) if share > CACHE_WARN => {
                let is_reference = self.reference.cached_share.is_some();
                let (who, other) = if is_reference {
                    ("the reference", "this server")
                } else {
                    ("this server", "the reference")
                };
                let message = format!(
                    "{who} took {} of prompt tokens from its prefix cache, and {other} does not \
                     report its share: whether both did the same work is unknown",
                    percent_text(share)
                );
                self.add_difference(code, Matter::Warn, &[], Words { message, advice: ADVICE });
            }
            _ => {}
        }
    }

    fn check_token_source(&mut self) {
        let found = self.differing_texts("output tokens were counted differently", |facts| {
            &facts.output_source
        });
        let Some(found) = found else { return };
        let is_exact = |facts: &SideFacts| {
            facts.output_source.split(BETWEEN).all(|source| EXACT.contains(&source))
        };
        let matter = if is_exact(self.reference) && is_exact(self.candidate) {
            Matter::Info
        } else {
            Matter::Refuse
        };
        let message = format!("{found}; a chunk may hold several tokens, so rates differ");
        let advice = "count both with one tokenizer: --count-with, or have both servers send usage";
        self.add_difference("token_source", matter, TOKENS, Words { message, advice });
    }

    fn check_tokenizer(&mut self) {
        let Some((one, other)) = self.both_values(|facts| facts.input_mean) else { return };
        let planned = self.both_values(|facts| facts.planned_input_mean);
        let is_same =
            !workload_hashes(self.reference).is_disjoint(&workload_hashes(self.candidate));
        // Against the plan, where there is one: sides may have got to other parts of a workload.
        let (ours, theirs) = match planned {
            Some((ours, theirs)) if ours > 0.0 && theirs > 0.0 => (one / ours, other / theirs),
            _ if is_same => (one, other),
            _ => return,
        };
        let apart = relative_difference(ours, theirs);
        let Some(matter) = matter_beyond(apart, COUNT_WARN, COUNT_REFUSE) else { return };
        let tokens = apart * one.min(other);
        let matter = if tokens > TEMPLATE { matter } else { Matter::Warn };
        let message = format!(
            "the servers count the same prompts differently: {one:.1} tokens on average on the \
             reference, {other:.1} on this side, {} apart relative to what was sent; their \
             tokenizers (or chat templates) differ, so their tokens are different units",
            percent_text(apart)
        );
        self.add_difference(
            "tokenizer",
            matter,
            TOKENS,
            Words { message, advice: TOKENIZER_ADVICE },
        );
    }

    fn check_output_length(&mut self) {
        // Tokens of two tokenizers do not compare lengths.
        let characters = self.both_values(|facts| facts.characters_mean);
        let by_characters = characters.filter(|_| self.has_tokenizers());
        let Some((one, other)) =
            by_characters.or_else(|| self.both_values(|facts| facts.output_mean))
        else {
            return;
        };
        let planned = self.both_values(|facts| facts.planned_output_mean);
        let planned = planned.filter(|(ours, theirs)| *ours > 0.0 && *theirs > 0.0);
        let (ours, theirs) = match planned.filter(|_| by_characters.is_none()) {
            Some((ours, theirs)) => (one / ours, other / theirs),
            None => (one, other),
        };
        let apart = relative_difference(ours, theirs);
        let Some(mut matter) = matter_beyond(apart, LENGTH_WARN, LENGTH_REFUSE) else { return };
        let is_as_planned = |ratio: f64| planned.is_some() && (ratio - 1.0).abs() <= AS_PLANNED;
        let is_free = by_characters.is_some() || !(is_as_planned(ours) || is_as_planned(theirs));
        if is_free && apart <= self.chance_of_lengths() {
            matter = if matter == Matter::Refuse { Matter::Warn } else { Matter::Info };
        }
        let unit = if by_characters.is_some() { "characters" } else { "tokens" };
        let message = format!(
            "answers differ in length: {one:.1} {unit} on average on the reference and {other:.1} on \
             this side, a difference of {} of the requested lengths; a server that writes less \
             finishes sooner and takes more requests",
            percent_text(apart)
        );
        let advice = "request exact lengths on both (--output-length exact), or compare TTFT and \
                      TPOT only";
        // Rates in one unit are what two tokenizers can be compared by, however much is said.
        let is_left = |name: &&&str| !(self.has_tokenizers() && ALIKE.contains(name));
        let spoils: Vec<&str> = LENGTHS.iter().filter(is_left).copied().collect();
        self.add_difference("output_length", matter, &spoils, Words { message, advice });
    }

    /// How far means of as many free answers lie apart by chance: two standard errors, with a
    /// standard deviation as large as the mean.
    fn chance_of_lengths(&self) -> f64 {
        let each = |facts: &SideFacts| 1.0 / facts.ok.max(1) as f64;
        2.0 * (each(self.reference) + each(self.candidate)).sqrt()
    }

    fn check_failures(&mut self) {
        let (one, other) = (self.reference.failed_share, self.candidate.failed_share);
        let Some(matter) = matter_beyond((one - other).abs(), FAILED_WARN, FAILED_REFUSE) else {
            return;
        };
        let message = format!(
            "requests failed more often on one side: {} on the reference, {} on this side; \
             latencies cover only completed requests, and a server that refuses work has less to \
             do",
            percent_text(one),
            percent_text(other)
        );
        let advice = "check the errors first; goodput and attainment count a failure as a miss";
        self.add_difference("failed_share", matter, OF_GOOD, Words { message, advice });
    }

    fn check_path(&mut self, is_live: bool) {
        let Some((one, other)) = self.both_values(|facts| facts.min_rtt_ms) else { return };
        let apart = (one - other).abs();
        let ttft = self.both_values(|facts| facts.ttft_ms).map(|(one, other)| one.min(other));
        let ttft = ttft.filter(|ttft| *ttft > 0.0);
        let share = ttft.map(|ttft| apart / ttft);
        let matter = match share.and_then(|share| matter_beyond(share, PATH_WARN, PATH_REFUSE)) {
            Some(Matter::Refuse) if !is_live => Matter::Refuse,
            Some(_) => Matter::Warn,
            None if apart <= PATH_MS || apart.is_nan() => return,
            None if share.is_none() => Matter::Warn,
            None => Matter::Info,
        };
        let of_ttft =
            share.map(|share| format!(", {} of the shorter median TTFT", percent_text(share)));
        let message = format!(
            "the paths differ: a round trip takes {one:.2} ms to the reference, {other:.2} ms to \
             this server{}; it is part of TTFT and E2E, but not caused by either server",
            of_ttft.unwrap_or_default()
        );
        let advice = "measure from a machine equally close to both, or compare TPOT";
        self.add_difference("path_rtt", matter, PATH, Words { message, advice });
    }
}

/// Warns beyond the first limit, refuses beyond the second.
fn matter_beyond(apart: f64, warn: f64, refuse: f64) -> Option<Matter> {
    // What comes of rounding lies on neither side of a limit.
    const ROUNDING: f64 = 1e-9;
    if apart > refuse + ROUNDING {
        Some(Matter::Refuse)
    } else {
        (apart > warn + ROUNDING).then_some(Matter::Warn)
    }
}

/// How far apart two positive values are, in proportion to the smaller.
fn relative_difference(one: f64, other: f64) -> f64 {
    match one.min(other) {
        least if least > 0.0 => one.max(other) / least - 1.0,
        _ if one == other => 0.0,
        _ => f64::INFINITY,
    }
}

fn workload_hashes(facts: &SideFacts) -> BTreeSet<&str> {
    facts.workload_hash.split(BETWEEN).filter(|hash| !hash.is_empty()).collect()
}

/// Fingerprints of how the words of workloads were counted.
fn calibration_fingerprints(facts: &SideFacts) -> BTreeSet<&str> {
    let all = facts.calibration.split(BETWEEN);
    all.filter_map(|counted| counted.rsplit_once(WORDS)).map(|(_, words)| words).collect()
}
