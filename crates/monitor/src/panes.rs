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
pub fn draw(view: &ScreenView, frame: &mut Frame) {
    let (ink, area) = (Ink(view.color), frame.area());
    if area.width < NARROW || area.height < LOW {
        small::draw(view, frame, area);
    } else {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(3), Constraint::Min(0), Constraint::Length(2)])
                .areas(area);
        frame::head(view, frame, head);
        pane(view, frame, body);
        frame::foot(view, frame, foot);
    }
    if view.help {
        frame::help(ink, frame, area);
    }
}

fn pane(view: &ScreenView, frame: &mut Frame, area: Rect) {
    let ink = Ink(view.color);
    match (view.pane, &view.run, &view.campaign) {
        (Pane::Notes, ..) => frame::notes(&view.notes, frame, area),
        (Pane::Overview, run, Some(CampaignView::Sweep(sweep))) => {
            campaign::sweep(ink, sweep, run.as_ref(), frame, area);
        }
        (Pane::Overview, run, Some(CampaignView::Comparison(comparison))) => {
            campaign::comparison(ink, comparison, run.as_ref(), frame, area);
        }
        (Pane::Overview, Some(run), None) => run::draw(ink, run, frame, area),
        (Pane::Latency, Some(run), _) => latency::draw(ink, run, frame, area),
        (Pane::Health, Some(run), _) => health::draw(ink, run, frame, area),
        (_, None, _) => {}
    }
}
