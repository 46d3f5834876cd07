//! The terminal: taken for the view, and given back as it was.
//!
//! In: calls of the view, which takes and leaves it. Out: its size, what is written to it. Whatever ends the
//! view gives it back: the end of the run, the user, a panic of any thread, a signal that stops the program
//! or ends it at once. Keys that make signals (Ctrl-C, Ctrl-Z) go on making them. Not here: what is drawn.

use std::io::{self, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};

use ratatui::layout::Size;
use rustix::process::getpgrp;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush,
    tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGCONT, SIGQUIT, SIGTSTP, SIGWINCH};
use signal_hook::{flag, low_level};
use weir_doors::Refusal;
use weir_world::Launcher;

use crate::output;

/// A smaller screen has no room for a view.
pub(super) const SMALLEST: Size = Size::new(60, 16);
/// Size assumed for a terminal that does not know its own.
const USUAL: Size = Size::new(80, 24);

/// The other screen, cleared, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[0m\x1b[2J";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
const CLEAR: &str = "\x1b[0m\x1b[2J";

/// Settings of the terminal before the view took it.
static TAKEN: Mutex<Option<Termios>> = Mutex::new(None);
/// No view is drawn, so that signals have their default effect.
static IS_CLOSED: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

fn taken() -> MutexGuard<'static, Option<Termios>> {
    // Nothing that is done while it is held can panic.
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a terminal that no view can be drawn on, before anything runs.
pub(super) fn refuse_what_cannot_be_drawn_on() -> Result<(), Refusal> {
    let instead = "leave --live out: a line shows the progress";
    let refuse = |why: &str| Err(Refusal::usage(format!("--live: {why}\n  help: {instead}")));
    if let Some(launcher) = Launcher::of_this_process() {
        let kind = launcher.kind;
        return refuse(&format!(
            "{kind} passes on what ranks print, and keys to none of them"
        ));
    }
    let streams = [
        ("standard input", io::stdin().is_terminal()),
        ("standard error", io::stderr().is_terminal()),
    ];
    if let Some((name, _)) = streams.iter().find(|(_, is_terminal)| !is_terminal) {
        return refuse(&format!(
            "{name} is no terminal, and a view needs keys and a screen"
        ));
    }
    match std::env::var("TERM").unwrap_or_default().as_str() {
        "" => refuse("TERM does not say what the terminal is"),
        "dumb" => refuse("TERM is `dumb`: there is no screen to draw on"),
        _ => Ok(()),
    }
}

/// True if the view has the terminal.
pub(super) fn is_open() -> bool {
    !IS_CLOSED.load(Ordering::Relaxed)
}

/// True if this program may take the terminal: in the background it would be stopped. Input that is no
/// controlling terminal stops no program.
pub(super) fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).map_or(true, |group| group == getpgrp())
}

/// Columns and rows.
pub(super) fn size() -> Size {
    match tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size::new(size.ws_col, size.ws_row),
        _ => USUAL,
    }
}

/// Takes the terminal.
pub(super) fn open() -> io::Result<()> {
    give_back_at_panic();
    let mut taken = taken();
    if taken.is_some() {
        return Ok(());
    }
    let before = tcgetattr(io::stdin())?;
    let mut with_keys = before.clone();
    with_keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    // Ctrl-S would stop the drawing, and with it the end of the run.
    with_keys.input_modes -= InputModes::IXON;
    with_keys.special_codes[SpecialCodeIndex::VMIN] = 1;
    with_keys.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(io::stdin(), OptionalActions::Now, &with_keys)?;
    *taken = Some(before);
    IS_CLOSED.store(false, Ordering::Relaxed);
    output::hold_errors();
    print(ENTER);
    Ok(())
}

/// Restores the terminal, and prints the messages held back.
pub(super) fn close() {
    let mut taken = taken();
    if let Some(before) = taken.take() {
        print(LEAVE);
        // Without a terminal there is nothing to report an error to.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        // Keys that were meant for the view are no input of the shell.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        IS_CLOSED.store(true, Ordering::Relaxed);
        output::print_held_errors();
    }
}

/// Clears it, if the view has it.
pub(super) fn clear() {
    if taken().is_some() {
        print(CLEAR);
    }
}

fn print(bytes: impl AsRef<[u8]>) {
    let _ = io::stderr().lock().write_all(bytes.as_ref());
}

fn give_back_at_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            close();
            before(info);
        }));
    });
}

/// Bytes of a frame, which are printed at once when it is complete.
#[derive(Debug, Default)]
pub(super) struct FrameBytes(Vec<u8>);

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Held, so that nothing comes after the terminal was given back.
        if taken().is_some() {
            print(&self.0);
        }
        self.0.clear();
        Ok(())
    }
}

/// Signals that concern the screen.
pub(super) struct ScreenSignals {
    stop: Arc<AtomicBool>,
    quit: Arc<AtomicBool>,
}

impl ScreenSignals {
    /// Catches the signals; each wakes the reader of the other end.
    pub(super) fn catch(wakes: &UnixStream) -> io::Result<Self> {
        let signals = Self {
            stop: Arc::default(),
            quit: Arc::default(),
        };
        for (number, seen) in [(SIGTSTP, &signals.stop), (SIGQUIT, &signals.quit)] {
            flag::register_conditional_default(number, Arc::clone(&IS_CLOSED))?;
            flag::register(number, Arc::clone(seen))?;
        }
        for number in [SIGTSTP, SIGQUIT, SIGCONT, SIGWINCH] {
            low_level::pipe::register(number, wakes.try_clone()?)?;
        }
        Ok(signals)
    }

    /// Gives a signal that arrived while the view had the terminal its usual effect; true if the terminal was
    /// given back for that.
    pub(super) fn obey(&self) -> bool {
        let mut has_closed = false;
        for (number, seen) in [(SIGTSTP, &self.stop), (SIGQUIT, &self.quit)] {
            // One that came when the terminal had been given back has done it.
            if seen.swap(false, Ordering::Relaxed) && is_open() {
                close();
                has_closed = true;
                let _ = low_level::emulate_default_handler(number);
            }
        }
        has_closed
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    #[ignore = "run by the test below, on a terminal"]
    fn takes_the_terminal_and_panics() {
        open().unwrap();
        output::error("said meanwhile\n");
        panic!("for once");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let test = std::env::current_exe().unwrap();
        let words = format!(
            "stty -g; {} --ignored --exact --nocapture \
             live::screen::tests::takes_the_terminal_and_panics; stty -g",
            test.display()
        );
        let mut command = Command::new("script");
        command.args(["-qec", &words, "/dev/null"]);
        let Ok(said) = command.stdin(Stdio::null()).output() else {
            // The doors' tests say loudly that they need it.
            return;
        };
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let place = |text: &str| {
            said.find(text)
                .unwrap_or_else(|| panic!("{text:?}: {said}"))
        };
        assert!(place(ENTER) < place(LEAVE), "{said}");
        assert!(place(LEAVE) < place("said meanwhile"), "{said}");
        assert!(place(LEAVE) < place("for once"), "{said}");
        let (first, last) = (said.lines().next(), said.lines().next_back());
        assert_eq!(first.map(str::trim), last.map(str::trim), "{said}");
    }
}
