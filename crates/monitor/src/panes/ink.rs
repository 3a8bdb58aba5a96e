//! Colors with a meaning, and pieces that all panes are made of.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use crate::view::{RunPhase, StatusColor};

/// Whether colors are used. Color never carries a meaning alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink(pub(super) bool);

impl Ink {
    fn colored(self, color: Color) -> Style {
        if self.0 { Style::new().fg(color) } else { Style::new() }
    }

    pub(super) fn good(self) -> Style {
        self.colored(Color::Green)
    }

    pub(super) fn bad(self) -> Style {
        self.colored(Color::Red)
    }

    pub(super) fn doubt(self) -> Style {
        self.colored(Color::Yellow)
    }

    pub(super) fn standing(self, standing: StatusColor) -> Style {
        match standing {
            StatusColor::Good => self.good(),
            StatusColor::Bad => self.bad(),
            StatusColor::Open => Style::new(),
        }
    }

    pub(super) fn phase(self, phase: RunPhase) -> Style {
        let style = match phase {
            RunPhase::Measured => self.good(),
            RunPhase::Stopping => self.doubt(),
            _ => Style::new(),
        };
        style.add_modifier(Modifier::BOLD)
    }

    /// Of a number that should be none.
    pub(super) fn none(self, n: u64) -> Style {
        if n == 0 { Style::new() } else { self.bad() }
    }
}

pub(super) fn strong() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub(super) fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// A frame with a title.
pub(super) fn framed(title: impl Into<String>) -> Block<'static> {
    Block::bordered()
        .border_style(faint())
        .title(Line::from(Span::styled(format!(" {} ", title.into()), strong())))
}

/// A name at the left, and a value at the right of this many columns.
pub(super) fn pair(name: &str, value: &str, columns: u16, style: Style) -> Line<'static> {
    let room = usize::from(columns).saturating_sub(name.chars().count() + 1);
    Line::from(vec![Span::raw(format!("{name} ")), Span::styled(format!("{value:>room$}"), style)])
}
