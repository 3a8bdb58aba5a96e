//! Whether answers came as they were asked for: token by token.

use goodput_model::{Exchange, Slo};

use crate::summary::{Requests, SloState, SloSummary};

/// Fewer tokens than this may well share a packet.
const MANY: u32 = 16;
/// Milliseconds for each token below which an answer was held back and then sent at once.
const AT_ONCE: f64 = 0.1;
/// The share of answers above which those that came whole are the rule, and the share from which
/// on they are the rule.
const SOME: f64 = 0.1;
const NEARLY_ALL: f64 = 0.9;

/// Whether an answer that was asked for as a stream came in one piece: as one object, or as events that
/// a proxy held back to the end.
pub(crate) fn arrived_in_one_piece(exchange: &Exchange) -> bool {
    let tokens = exchange.output_tokens.map_or(0, |count| count.n);
    match (exchange.stamps.first_token, exchange.stamps.last_token) {
        (None, Some(_)) => exchange.chunks.is_empty(),
        (Some(first), Some(last)) => {
            tokens >= MANY && (last - first).as_ms() < AT_ONCE * f64::from(tokens)
        }
        _ => false,
    }
}

impl Requests {
    fn one_piece_share(&self) -> f64 {
        self.whole as f64 / self.ok.max(1) as f64
    }

    /// Whether this many answers came in one piece that nothing is known of when tokens came.
    pub fn is_partly_whole(&self) -> bool {
        self.one_piece_share() > SOME
    }

    /// Whether nearly all did.
    pub fn is_whole(&self) -> bool {
        self.one_piece_share() >= NEARLY_ALL
    }
}

/// An SLO about when tokens came is not kept by answers that came in one piece, though none of them
/// speaks against it.
pub(crate) fn mark_undecided(found: &mut SloSummary, asked: &Slo) {
    if !asked.terms.iter().any(|term| term.metric.needs_stream()) {
        return;
    }
    let undecided = |state: &mut SloState| {
        if *state != SloState::Missed {
            *state = SloState::Undecided;
        }
    };
    let terms = found.terms.iter_mut().zip(&asked.terms);
    for (term, _) in terms.filter(|(_, asked)| asked.metric.needs_stream()) {
        undecided(&mut term.state);
        (term.attainment, term.attainment_low, term.attainment_high) = (None, None, None);
        (term.value, term.low, term.high, term.kept) = (None, None, None, None);
    }
    undecided(&mut found.state);
    if found.target.is_some() {
        undecided(&mut found.attainment_state);
    }
    found.kept = None;
    (found.attainment, found.attainment_low, found.attainment_high) = (None, None, None);
    (found.goodput_rps, found.goodput_rps_low, found.goodput_rps_high) = (None, None, None);
    (found.n_eff, found.goodput_output_tps) = (None, None);
}
