//! What keys do: choose what is seen, and stop. Nothing pauses the load.

use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::view::Pane;

/// What the keys have chosen.
#[derive(Debug, Default)]
pub struct Keys {
    pub(crate) pane: Pane,
    pub(crate) help: bool,
}

/// What a key asks for.
#[derive(Debug, PartialEq, Eq)]
enum KeyAction {
    Nothing,
    Redraw,
    Stop,
}

impl Keys {
    /// Waits so long for a key at most, and does what it asks for; whether there is something new to
    /// see. An error where keys cannot be read any more.
    pub fn wait_for_key(&mut self, most: Duration, stop: impl FnOnce()) -> std::io::Result<bool> {
        if !event::poll(most)? {
            return Ok(false);
        }
        let wish = match event::read()? {
            Event::Key(key) => self.handle_key(key),
            Event::Resize(..) => KeyAction::Redraw,
            _ => KeyAction::Nothing,
        };
        if wish == KeyAction::Stop {
            stop();
        }
        Ok(wish != KeyAction::Nothing)
    }

    fn handle_key(&mut self, key: KeyEvent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Nothing;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return KeyAction::Stop,
            KeyCode::Char(_) if is_control => return KeyAction::Nothing,
            KeyCode::Char('q' | 'Q') => return KeyAction::Stop,
            KeyCode::Char('?' | 'h') if !self.help => {
                self.help = true;
                return KeyAction::Redraw;
            }
            KeyCode::Tab => self.pane = self.pane.next(),
            KeyCode::Char(digit @ '1'..='4') => {
                let place = digit as usize - '1' as usize;
                self.pane = Pane::ALL.get(place).map_or(self.pane, |pane| pane.0);
            }
            _ if !self.help => return KeyAction::Nothing,
            _ => {}
        }
        self.help = false;
        KeyAction::Redraw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_choose_and_stop() {
        let mut keys = Keys::default();
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert_eq!(keys.handle_key(plain(KeyCode::Char('q'))), KeyAction::Stop);
        assert_eq!(keys.handle_key(control('c')), KeyAction::Stop);
        // Neither stops nor suspends: nothing pauses the load.
        assert_eq!(keys.handle_key(control('z')), KeyAction::Nothing);
        assert_eq!(keys.handle_key(plain(KeyCode::Char('3'))), KeyAction::Redraw);
        assert_eq!(keys.pane, Pane::Health);
        assert_eq!(keys.handle_key(plain(KeyCode::Tab)), KeyAction::Redraw);
        assert_eq!(keys.pane, Pane::Notes);
        assert_eq!(keys.handle_key(plain(KeyCode::Tab)), KeyAction::Redraw);
        assert_eq!(keys.pane, Pane::Overview);
        assert_eq!(keys.handle_key(plain(KeyCode::Char('9'))), KeyAction::Nothing);
        assert_eq!(keys.handle_key(plain(KeyCode::Char('?'))), KeyAction::Redraw);
        assert!(keys.help);
        assert_eq!(keys.handle_key(plain(KeyCode::Char('x'))), KeyAction::Redraw);
        assert!(!keys.help);
        let mut up = plain(KeyCode::Char('q'));
        up.kind = KeyEventKind::Release;
        assert_eq!(keys.handle_key(up), KeyAction::Nothing);
    }
}
