//! The screen: a head, one pane, a foot.

mod campaign;
mod curve;
mod frame;
mod health;
mod ink;
mod latency;
mod run;
mod small;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use crate::view::{CampaignView, Pane, ScreenView};
use ink::Ink;

/// Below this a screen is a list of lines.
const NARROW: u16 = 60;
const LOW: u16 = 16;

/// Draws the whole screen.
pub fn draw_screen(view: &ScreenView, frame: &mut Frame) {
    let (ink, area) = (Ink(view.color), frame.area());
    if area.width < NARROW || area.height < LOW {
        small::draw_small(view, frame, area);
    } else {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(3), Constraint::Min(0), Constraint::Length(2)])
                .areas(area);
        frame::draw_head(view, frame, head);
        draw_pane(view, frame, body);
        frame::draw_foot(view, frame, foot);
    }
    if view.help {
        frame::draw_help(ink, frame, area);
    }
}

fn draw_pane(view: &ScreenView, frame: &mut Frame, area: Rect) {
    let ink = Ink(view.color);
    match (view.pane, &view.run, &view.campaign) {
        (Pane::Notes, ..) => frame::draw_notes(&view.notes, frame, area),
        (Pane::Overview, run, Some(CampaignView::Sweep(sweep))) => {
            campaign::draw_sweep(ink, sweep, run.as_ref(), frame, area);
        }
        (Pane::Overview, run, Some(CampaignView::Comparison(comparison))) => {
            campaign::draw_comparison(ink, comparison, run.as_ref(), frame, area);
        }
        (Pane::Overview, Some(run), None) => run::draw_run(ink, run, frame, area),
        (Pane::Latency, Some(run), _) => latency::draw_latency(ink, run, frame, area),
        (Pane::Health, Some(run), _) => health::draw_health(ink, run, frame, area),
        (_, None, _) => {}
    }
}
