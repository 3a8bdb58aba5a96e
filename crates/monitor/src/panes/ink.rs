//! Colours with a meaning, and pieces that all panes are made of.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use crate::view::{Phase, Standing};

/// Whether colours are used. Nothing is said by colour alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink(pub(super) bool);

impl Ink {
    fn of(self, colour: Color) -> Style {
        if self.0 { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn good(self) -> Style {
        self.of(Color::Green)
    }

    pub(super) fn bad(self) -> Style {
        self.of(Color::Red)
    }

    pub(super) fn doubt(self) -> Style {
        self.of(Color::Yellow)
    }

    pub(super) fn standing(self, standing: Standing) -> Style {
        match standing {
            Standing::Good => self.good(),
            Standing::Bad => self.bad(),
            Standing::Open => Style::new(),
        }
    }

    pub(super) fn phase(self, phase: Phase) -> Style {
        let style = match phase {
            Phase::Measured => self.good(),
            Phase::Stopping => self.doubt(),
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

/// A name at the left, and a value at the right of so many columns.
pub(super) fn pair(name: &str, value: &str, columns: u16, style: Style) -> Line<'static> {
    let room = usize::from(columns).saturating_sub(name.chars().count() + 1);
    Line::from(vec![Span::raw(format!("{name} ")), Span::styled(format!("{value:>room$}"), style)])
}
