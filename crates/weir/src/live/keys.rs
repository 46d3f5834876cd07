//! Effect of keys: choice of screen, job and order.
//!
//! In: keys. Out: what is chosen, and what is to be done at once. Not here: Ctrl-C and Ctrl-Z, which are
//! signals here as everywhere (`screen`).

use ratatui::crossterm::event::KeyCode;

use super::per_second::KEPT;

/// The screens, in the order of their keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Screen {
    #[default]
    Overview,
    Latency,
    Heat,
    Workers,
    Machine,
    Plan,
}

impl Screen {
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Overview, "overview"),
        (Self::Latency, "latency"),
        (Self::Heat, "heat map"),
        (Self::Workers, "workers"),
        (Self::Machine, "machine"),
        (Self::Plan, "plan"),
    ];
}

/// Quantity by which workers are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Number,
    Rate,
    Latency,
}

impl Order {
    const fn next(self) -> Self {
        match self {
            Self::Number => Self::Rate,
            Self::Rate => Self::Latency,
            Self::Latency => Self::Number,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Rate => "rate",
            Self::Latency => "p99",
        }
    }
}

/// The shortest window, in seconds.
const SHORTEST_WINDOW: usize = 10;

/// Selection in the view.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub(super) struct Choice {
    pub(super) screen: Screen,
    /// The place of a job among those that run; none: all together.
    pub(super) job: Option<usize>,
    pub(super) order: Order,
    pub(super) is_reversed: bool,
    pub(super) is_frozen: bool,
    /// Seconds that are shown.
    pub(super) window: usize,
    pub(super) is_logarithmic: bool,
    pub(super) shows_help: bool,
    /// `e` was pressed: `y` ends the run.
    pub(super) asks_to_end: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            screen: Screen::default(),
            job: None,
            order: Order::default(),
            is_reversed: false,
            is_frozen: false,
            window: 60,
            is_logarithmic: false,
            shows_help: false,
            asks_to_end: false,
        }
    }
}

/// Action to take at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    /// Draw the present choice.
    Draw,
    /// Leave the view; the run goes on.
    Leave,
    /// End the run as if its time were over.
    EndRun,
    /// Store the result so far.
    Snapshot,
}

impl Choice {
    /// Takes a key while this many jobs run.
    pub(super) fn press(&mut self, key: KeyCode, jobs: usize) -> KeyAction {
        let was_asked = std::mem::take(&mut self.asks_to_end);
        match key {
            KeyCode::Char('y') if was_asked => return KeyAction::EndRun,
            KeyCode::Char('q') => return KeyAction::Leave,
            KeyCode::Char('w') => return KeyAction::Snapshot,
            KeyCode::Char('e') => self.asks_to_end = true,
            KeyCode::Char(digit @ '1'..='6') => {
                let at = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
                self.screen = Screen::ALL[at].0;
                self.shows_help = false;
            }
            KeyCode::Tab => {
                let next = self.job.map_or(0, |at| at + 1);
                self.job = (next < jobs && jobs > 1).then_some(next);
            }
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('f') => self.is_frozen = !self.is_frozen,
            KeyCode::Char('l') => self.is_logarithmic = !self.is_logarithmic,
            KeyCode::Char('h' | '?') => self.shows_help = !self.shows_help,
            KeyCode::Esc => self.shows_help = false,
            KeyCode::Char('+') => self.window = (self.window * 2).min(KEPT),
            KeyCode::Char('-') => self.window = (self.window / 2).max(SHORTEST_WINDOW),
            _ => {}
        }
        KeyAction::Draw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(choice: &mut Choice, key: char) -> KeyAction {
        choice.press(KeyCode::Char(key), 2)
    }

    #[test]
    fn the_run_ends_only_where_the_question_is_answered() {
        let mut choice = Choice::default();
        assert_eq!(press(&mut choice, 'y'), KeyAction::Draw);
        press(&mut choice, 'e');
        assert!(choice.asks_to_end);
        assert_eq!(press(&mut choice, 'n'), KeyAction::Draw);
        assert_eq!(press(&mut choice, 'y'), KeyAction::Draw);
        press(&mut choice, 'e');
        assert_eq!(press(&mut choice, 'y'), KeyAction::EndRun);
    }

    #[test]
    fn tab_goes_from_all_jobs_to_each_and_back() {
        let mut choice = Choice::default();
        let mut tab = |jobs| {
            choice.press(KeyCode::Tab, jobs);
            choice.job
        };
        assert_eq!([tab(2), tab(2), tab(2)], [Some(0), Some(1), None]);
        assert_eq!(tab(1), None);
    }

    #[test]
    fn the_window_stays_between_ten_seconds_and_ten_minutes() {
        let mut choice = Choice::default();
        for _ in 0..10 {
            press(&mut choice, '+');
        }
        assert_eq!(choice.window, 600);
        for _ in 0..10 {
            press(&mut choice, '-');
        }
        assert_eq!(choice.window, 10);
    }

    #[test]
    fn each_digit_has_its_screen_and_leaves_the_help() {
        let mut choice = Choice::default();
        press(&mut choice, 'h');
        assert!(choice.shows_help);
        for (digit, (screen, _)) in ('1'..='6').zip(Screen::ALL) {
            press(&mut choice, digit);
            assert_eq!(choice.screen, screen);
        }
        assert!(!choice.shows_help);
    }

    #[test]
    fn switches_go_back_and_forth() {
        let mut choice = Choice::default();
        for key in ['f', 'l', 'r'] {
            press(&mut choice, key);
        }
        assert!(choice.is_frozen && choice.is_logarithmic && choice.is_reversed);
        for key in ['f', 'l', 'r', 's', 's', 's'] {
            press(&mut choice, key);
        }
        assert!(!choice.is_frozen && !choice.is_logarithmic && !choice.is_reversed);
        assert_eq!(choice.order, Order::Number);
        assert_eq!(press(&mut choice, 'q'), KeyAction::Leave);
        assert_eq!(press(&mut choice, 'w'), KeyAction::Snapshot);
    }
}
