//! The terminal while it is ours: given back whatever happens.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::thread::JoinHandle;

use goodput_clock::{now, pause};
use goodput_model::Nanos;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::notes;

/// How long the thread may take to end.
const LAST: Nanos = Nanos::from_millis(2000);

/// The thread that draws, and whether it should end.
static THREAD: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Who owns the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Not requested yet.
    Free,
    /// Ours: the alternate screen is shown, and keys come as they are typed.
    Ours,
    /// Ours, but lent to a command.
    Lent,
    /// It was given back, for good.
    Back,
}

static WHOSE: Mutex<Whose> = Mutex::new(Whose::Free);

/// Held while something is written to the terminal, which may take long. Code that only asks who
/// owns the terminal does not wait for it.
static PEN: Mutex<()> = Mutex::new(());

/// Attempts to lock the pen before going on without it, with a pause after each: the thread that
/// holds it may be waiting for a terminal that accepts nothing.
const TRIES: u32 = 100;
const BETWEEN: Nanos = Nanos::from_millis(10);

/// How long a terminal may accept nothing before a write is abandoned.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Bytes written at once: more might wait for a reader although the terminal accepts some.
const AT_ONCE: usize = 256;

/// Where screens are drawn: in memory, written to the terminal as a whole.
#[derive(Debug)]
pub(crate) struct Canvas {
    terminal: Terminal<CrosstermBackend<Sheet>>,
    sheet: Sheet,
    /// The terminal does not show what was drawn last.
    is_stale: bool,
}

/// What is drawn and not yet written.
#[derive(Debug, Clone, Default)]
struct Sheet(Arc<Mutex<Vec<u8>>>);

impl Write for Sheet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Canvas {
    fn new() -> io::Result<Self> {
        let sheet = Sheet::default();
        let terminal = Terminal::new(CrosstermBackend::new(sheet.clone()))?;
        Ok(Self { terminal, sheet, is_stale: false })
    }

    /// Marks the terminal as not showing what was drawn last, after a command has written to it.
    pub(crate) fn mark_stale(&mut self) {
        self.is_stale = true;
    }

    /// Shows a picture where the terminal is ours. One that the terminal does not take is left out.
    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if self.is_stale {
            // Begun again: `clear` would ask the terminal where its cursor is, and wait for an
            // answer.
            self.terminal = Terminal::new(CrosstermBackend::new(self.sheet.clone()))?;
            queue!(self.sheet, Clear(ClearType::All))?;
        }
        self.terminal.draw(picture)?;
        let drawn =
            std::mem::take(&mut *self.sheet.0.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(_pen) = lock_pen() else {
            self.is_stale = true;
            return Ok(());
        };
        if *lock_owner() != Whose::Ours {
            self.is_stale = true;
            return Ok(());
        }
        let written = write_patiently(io::stderr(), &drawn, &PATIENCE);
        self.is_stale = written.is_err();
        match written {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether a screen can be shown: stderr and stdin are the terminal, and it is ours to read from.
pub(crate) fn can_show_screen() -> bool {
    let term = std::env::var_os("TERM").unwrap_or_default();
    let stdin = io::stdin();
    // A job in the background that reads a key is stopped by its shell.
    let is_in_front = || {
        rustix::termios::tcgetpgrp(&stdin).is_ok_and(|group| group == rustix::process::getpgrp())
    };
    io::stderr().is_terminal()
        && stdin.is_terminal()
        && !term.is_empty()
        && term != "dumb"
        && is_in_front()
}

/// Takes the terminal; none if it cannot be had, or was given back already.
fn take_terminal() -> Option<Canvas> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back_terminal();
            before(panic);
        }));
    });
    let _pen = lock_pen()?;
    if *lock_owner() != Whose::Free {
        return None;
    }
    let Ok(canvas) = enter_screen().and_then(|()| Canvas::new()) else {
        leave_screen();
        *lock_owner() = Whose::Back;
        return None;
    };
    *lock_owner() = Whose::Ours;
    notes::start_holding();
    Some(canvas)
}

/// Gives the terminal back, and prints the lines that were held back. Returns whether the terminal
/// accepted it; only the first success counts.
pub(crate) fn give_back_terminal() -> bool {
    give_back_with(leave_screen)
}

/// The same where something is to be printed next, which would have to wait for the terminal too.
pub(crate) fn give_back_before_print() {
    give_back_with(|| {
        let _ = leave_screen() || io::stderr().write_all(&reset_sequence()).is_ok();
        true
    });
}

fn give_back_with(leave: impl FnOnce() -> bool) -> bool {
    let _pen = lock_pen();
    let was = *lock_owner();
    if was == Whose::Free {
        return true;
    }
    if was == Whose::Ours && !leave() {
        return false;
    }
    *lock_owner() = Whose::Back;
    notes::print_held();
    true
}

/// Whether there is a thread that draws, started now where there was none.
pub(crate) fn ensure_drawing(spawn: impl FnOnce(Canvas) -> io::Result<JoinHandle<()>>) -> bool {
    let mut thread = lock_thread();
    if let Some(thread) = thread.as_ref() {
        return !thread.is_finished() && *lock_owner() != Whose::Back;
    }
    let Some(canvas) = take_terminal() else { return false };
    *thread = spawn(canvas).ok();
    if thread.is_none() {
        give_back_terminal();
    }
    thread.is_some()
}

/// Whether the thread that draws is to end.
pub(crate) fn is_drawing_over() -> bool {
    IS_OVER.load(Ordering::Relaxed)
}

fn lock_thread() -> MutexGuard<'static, Option<JoinHandle<()>>> {
    THREAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the screen, and gives the terminal back with everything said that was kept meanwhile. To be
/// called before anything is printed; without a screen it does nothing.
pub(crate) fn close_screen() {
    IS_OVER.store(true, Ordering::Relaxed);
    if let Some(thread) = lock_thread().take() {
        // It may wait for a terminal that takes nothing.
        let end = now() + LAST;
        while !thread.is_finished() && now() < end {
            pause(Nanos::from_millis(1));
        }
    }
    give_back_before_print();
}

/// The same without waiting for the thread, which may be the one that calls, nor for a terminal that
/// takes nothing.
pub(crate) fn abandon_screen() {
    give_back_terminal();
}

/// Locks the owner of the terminal, for a moment only.
pub(crate) fn lock_owner() -> MutexGuard<'static, Whose> {
    WHOSE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock_pen() -> Option<MutexGuard<'static, ()>> {
    for _ in 0..TRIES {
        match PEN.try_lock() {
            Ok(pen) => return Some(pen),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => pause(BETWEEN),
        }
    }
    None
}

/// The terminal as it was before, for a command of the user's; ours again when this is dropped.
pub(crate) struct Lent(());

/// Lends the terminal, where it is ours.
pub(crate) fn lend_terminal() -> Lent {
    let _pen = lock_pen();
    if *lock_owner() == Whose::Ours {
        leave_screen();
        *lock_owner() = Whose::Lent;
    }
    Lent(())
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _pen = lock_pen();
        if *lock_owner() == Whose::Lent {
            // What was written of it is taken back where the rest does not get there.
            let whose =
                if enter_screen().is_ok() || !leave_screen() { Whose::Ours } else { Whose::Back };
            *lock_owner() = whose;
        }
    }
}

fn enter_screen() -> io::Result<()> {
    let mut bytes = Vec::new();
    queue!(bytes, EnterAlternateScreen, Hide)?;
    enable_raw_mode()?;
    write_patiently(io::stderr(), &bytes, &PATIENCE)
}

/// Leaves the screen. Returns whether the terminal accepted it: one that is gone must not end the
/// run.
fn leave_screen() -> bool {
    let written = write_patiently(io::stderr(), &reset_sequence(), &PATIENCE);
    let _ = disable_raw_mode();
    written.is_ok()
}

fn reset_sequence() -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = queue!(bytes, LeaveAlternateScreen, Show);
    bytes
}

/// Writes everything, in pieces that are taken at once; an error after so long without one.
fn write_patiently(to: impl AsFd, mut bytes: &[u8], patience: &Timespec) -> io::Result<()> {
    let mut refused = 0;
    while !bytes.is_empty() {
        let mut wait = [PollFd::new(&to, PollFlags::OUT)];
        match poll(&mut wait, Some(patience)) {
            Ok(0) => return Err(ErrorKind::WouldBlock.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        match rustix::io::write(&to, &bytes[..bytes.len().min(AT_ONCE)]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => (bytes, refused) = (&bytes[n..], 0),
            Err(rustix::io::Errno::INTR) => {}
            // Less room than there seemed to be: a moment later there may be more.
            Err(rustix::io::Errno::AGAIN) if refused < TRIES => {
                refused += 1;
                pause(BETWEEN);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_is_not_taken_at_once_is_written_later_or_given_up() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let short = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let much = vec![7; 1 << 22];
        let stalled = write_patiently(&ours, &much, &short).unwrap_err();
        assert_eq!(stalled.kind(), ErrorKind::WouldBlock);
        // Once the pipe is read, it gets out whole.
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).map(|_| all)
        });
        let long = Timespec { tv_sec: 60, tv_nsec: 0 };
        write_patiently(&ours, b"the end", &long).unwrap();
        drop(ours);
        let all = reader.join().unwrap().unwrap();
        assert!(all.len() < much.len() && all.ends_with(b"\x07the end"), "{}", all.len());
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        assert_eq!(write_patiently(&ours, b"x", &long).unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
