//! What happens while a run is prepared and measured, told as it happens.

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Worth knowing while one waits. Foreign text in it is not made harmless yet.
    Note(String),
    /// Changes what the result is worth, or what the user has to do.
    Warning(String),
    /// The key in an environment variable other than the default one goes to this host.
    KeyUsed {
        /// The variable's name.
        variable: String,
        /// Where its value goes.
        host: String,
    },
}

/// Hears what happens: a terminal, a screen, a test.
pub trait Observer: Send + Sync {
    /// Something happened. Called from any thread; it must not block.
    fn event(&self, event: Event);

    /// A [`Event::Note`].
    fn note(&self, text: String) {
        self.event(Event::Note(text));
    }

    /// A [`Event::Warning`].
    fn warn(&self, text: String) {
        self.event(Event::Warning(text));
    }
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: Event) {}
}
