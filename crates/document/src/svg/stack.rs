//! Bars that lie on their side, made of parts that add up.

use std::fmt::Write;

use super::TONES;
use super::draw::draw_x_ticks;
use super::frame::{CHARACTER, ChartFrame, Key, WIDTH};
use super::shape::PlotArea;
use crate::markup::escape_text;
use crate::scale::Scale;

/// A bar with the line above that names it.
const BAR: f64 = 34.0;
const NAME: f64 = 24.0;
const GAP: f64 = 14.0;
const BOTTOM: f64 = 48.0;
const SIDE: f64 = 14.0;

/// Bars of parts. Its texts may be foreign.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// Its id in a page and its name as a file: letters, digits and dashes.
    pub name: &'static str,
    /// Above it.
    pub title: String,
    /// What it shows, in a sentence or two, for who cannot see it.
    pub says: String,
    /// Of all values.
    pub unit: &'static str,
    /// Names of the parts, in their order.
    pub parts: Vec<String>,
    /// Each bar: its name with its total, and the size of each part.
    pub bars: Vec<(String, Vec<f64>)>,
}

impl Stack {
    /// Whether there is anything to draw.
    pub fn is_empty(&self) -> bool {
        !self.bars.iter().any(|(_, parts)| parts.iter().any(|size| visible_size(*size) > 0.0))
    }

    /// Parts in the legend: those that some bar has.
    pub fn legend_keys(&self) -> Vec<Key<'_>> {
        let has = |place: usize| {
            self.bars
                .iter()
                .any(|(_, parts)| parts.get(place).copied().map(visible_size) > Some(0.0))
        };
        let parts = self.parts.iter().enumerate().filter(|(place, _)| has(*place));
        parts.map(|(place, name)| Key::from_part(name, place)).collect()
    }

    fn height(&self) -> f64 {
        self.bars.len() as f64 * (BAR + NAME + GAP) + BOTTOM
    }
}

/// What cannot be shown takes no room.
fn visible_size(size: f64) -> f64 {
    if size.is_finite() { size.max(0.0) } else { 0.0 }
}

/// The picture for a page.
pub fn inline_stack(stack: &Stack) -> String {
    stack_frame(stack).inline_svg(&draw_stack(stack), stack.height())
}

/// The picture as a file of its own.
pub fn standalone_stack(stack: &Stack) -> String {
    stack_frame(stack).standalone_svg(&stack.legend_keys(), &draw_stack(stack), stack.height())
}

fn stack_frame(stack: &Stack) -> ChartFrame<'_> {
    ChartFrame { name: stack.name, title: &stack.title, says: &stack.says, data: String::new() }
}

fn draw_stack(stack: &Stack) -> String {
    let mut out = String::new();
    let totals =
        stack.bars.iter().map(|(_, parts)| parts.iter().copied().map(visible_size).sum::<f64>());
    let Some(scale) = Scale::from_values(totals.chain([0.0]), false).filter(|_| !stack.is_empty())
    else {
        return out;
    };
    let bottom = stack.height() - BOTTOM;
    let (left, right) = (SIDE, WIDTH - SIDE);
    let plot = PlotArea { x: scale, y: scale, left, right, top: 0.0, bottom, is_alone: true };
    for (index, (name, parts)) in stack.bars.iter().enumerate() {
        let top = index as f64 * (BAR + NAME + GAP);
        let _ = write!(
            out,
            "<text class=\"name\" x=\"{SIDE}\" y=\"{:.1}\">{}</text>",
            top + 17.0,
            escape_text(name)
        );
        draw_bar(&mut out, stack, parts, &plot, top + NAME);
    }
    draw_x_ticks(&mut out, &plot, bottom);
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{SIDE} {bottom:.1}H{:.1}\"/>\
         <text class=\"label end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        WIDTH - SIDE,
        WIDTH - SIDE,
        bottom + 42.0,
        stack.unit
    );
    out
}

fn draw_bar(out: &mut String, stack: &Stack, parts: &[f64], plot: &PlotArea, top: f64) {
    let total: f64 = parts.iter().copied().map(visible_size).sum();
    let mut from = 0.0;
    for (place, (size, name)) in parts.iter().zip(&stack.parts).enumerate() {
        let size = visible_size(*size);
        let ends = plot.x_of(from).zip(plot.x_of((from + size).min(total)));
        from += size;
        let Some((left, right)) = ends.filter(|_| size > 0.0) else { continue };
        let (width, name) = (right - left, escape_text(name));
        let share = size / total * 100.0;
        let _ = write!(
            out,
            "<g class=\"part\"><title>{name}: {size:.2} {} ({share:.1} %)</title>\
             <rect class=\"t{} mark\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR}\"/>",
            stack.unit,
            place % TONES,
            (width - 1.0).max(0.6)
        );
        if width > name.chars().count() as f64 * (CHARACTER + 1.5) + 10.0 {
            let _ = write!(
                out,
                "<text class=\"inside middle\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
                f64::midpoint(left, right),
                top + BAR / 2.0 + 5.0
            );
        }
        out.push_str("</g>");
    }
}
