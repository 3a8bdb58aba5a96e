//! Colors with a meaning, and pieces that all panes are made of.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use crate::view::{RunPhase, StatusColor};

/// Whether colors are used. Color never carries a meaning alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink(pub(super) bool);

impl Ink {
    fn color_style(self, color: Color) -> Style {
        if self.0 { Style::new().fg(color) } else { Style::new() }
    }

    pub(super) fn good_style(self) -> Style {
        self.color_style(Color::Green)
    }

    pub(super) fn bad_style(self) -> Style {
        self.color_style(Color::Red)
    }

    pub(super) fn doubt_style(self) -> Style {
        self.color_style(Color::Yellow)
    }

    pub(super) fn status_style(self, standing: StatusColor) -> Style {
        match standing {
            StatusColor::Good => self.good_style(),
            StatusColor::Bad => self.bad_style(),
            StatusColor::Open => Style::new(),
        }
    }

    pub(super) fn phase_style(self, phase: RunPhase) -> Style {
        let style = match phase {
            RunPhase::Measured => self.good_style(),
            RunPhase::Stopping => self.doubt_style(),
            _ => Style::new(),
        };
        style.add_modifier(Modifier::BOLD)
    }

    /// Of a number that should be none.
    pub(super) fn zero_is_good_style(self, n: u64) -> Style {
        if n == 0 { Style::new() } else { self.bad_style() }
    }
}

pub(super) fn strong_style() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub(super) fn faint_style() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// A frame with a title.
pub(super) fn framed_block(title: impl Into<String>) -> Block<'static> {
    Block::bordered()
        .border_style(faint_style())
        .title(Line::from(Span::styled(format!(" {} ", title.into()), strong_style())))
}

/// A name at the left, and a value at the right of this many columns.
pub(super) fn name_value_line(
    name: &str,
    value: &str,
    columns: u16,
    style: Style,
) -> Line<'static> {
    let room = usize::from(columns).saturating_sub(name.chars().count() + 1);
    Line::from(vec![Span::raw(format!("{name} ")), Span::styled(format!("{value:>room$}"), style)])
}
