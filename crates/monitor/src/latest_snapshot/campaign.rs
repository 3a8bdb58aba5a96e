//! Sweeps and comparisons as the screen shows them.

use goodput_campaign::compare::{Comparison, FigureOutcome};
use goodput_campaign::curve::is_on_curve;
use goodput_campaign::sweep::{Goodput, PointStanding, PointSummary, SweepPlan, TimeEstimate};
use goodput_lab::ExpectedEnd;

use super::{LatestSnapshot, lock_ignoring_poison};
use crate::view::{
    CampaignView, ComparisonView, DifferenceView, LevelView, LivePointView, LiveSweepView,
    StatusColor as StandingView,
};

impl LatestSnapshot {
    /// The points of a sweep, and what is known of its answer.
    pub fn set_sweep(
        &self,
        points: &[PointSummary],
        plan: &SweepPlan,
        answer: Option<&Goodput>,
        left: Option<&TimeEstimate>,
    ) {
        let axes = goodput_report::sweep_axes(points, plan);
        let point = |point: &PointSummary| {
            let figures = &point.point.figures;
            let spread = axes.spread_of(figures);
            let words = goodput_report::point_words(point);
            LivePointView {
                number: point.point.ask.number,
                level: point.point.ask.level.value(),
                purpose: words.0.to_owned(),
                p50: spread.p50.map(|found| found.value),
                p99: spread.p99.map(|found| found.value),
                ok_per_s: figures.requests_per_s,
                tokens_per_s: figures.output_tps,
                standing: match point.standing {
                    PointStanding::Met => StandingView::Good,
                    PointStanding::Missed(_) => StandingView::Bad,
                    PointStanding::Unclear(_) => StandingView::Open,
                },
                words: match (figures.attainment, &point.standing) {
                    // Without a promise there is nothing to keep.
                    (None, PointStanding::Met | PointStanding::Unclear(_)) => words.0.to_owned(),
                    _ => words.1,
                },
                is_on_curve: is_on_curve(point),
            }
        };
        let end = left.map(|left| ExpectedEnd::new(left.seconds, left.most_seconds));
        let sweep = LiveSweepView {
            unit: axes.unit.to_owned(),
            latency: axes.latency.to_owned(),
            limit: axes.limit.clone(),
            points: points.iter().map(point).collect(),
            answer: goodput_report::sweep_so_far(answer, plan),
            left: String::new(),
        };
        let mut state = lock_ignoring_poison(&self.0.state);
        (state.campaign, state.end) = (Some(CampaignView::Sweep(sweep)), end);
    }

    /// The blocks of a comparison, and what differs so far.
    pub fn set_comparison(&self, comparison: &Comparison, left_s: f64) {
        let standing = |outcome: FigureOutcome| match outcome {
            FigureOutcome::Better => StandingView::Good,
            FigureOutcome::Worse => StandingView::Bad,
            FigureOutcome::Equivalent
            | FigureOutcome::Inconclusive
            | FigureOutcome::NoVerdict
            | FigureOutcome::Described => StandingView::Open,
        };
        let levels = goodput_report::compare_so_far(comparison).into_iter().map(|one| LevelView {
            title: one.title,
            differences: one
                .rows
                .into_iter()
                .map(|row| DifferenceView {
                    figure: row.figure,
                    reference: row.reference,
                    candidate: row.candidate,
                    change: row.change,
                    words: row.words.to_owned(),
                    standing: standing(row.outcome),
                })
                .collect(),
        });
        self.set_campaign(CampaignView::Comparison(ComparisonView {
            sides: comparison
                .sides
                .iter()
                .map(|side| goodput_report::escape_control(&side.name))
                .collect(),
            blocks: comparison.comparison.blocks,
            most: comparison.design.looks.last().copied(),
            left_s: (left_s > 0.0).then_some(left_s),
            levels: levels.collect(),
        }));
    }
}
