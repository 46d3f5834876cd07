//! Frames for terminals without colours, or without any character beyond ASCII.
//!
//! In: a drawn frame and a style. Out: the frame as the style has it; everything is shown by characters
//! too.

use ratatui::buffer::Buffer;
use ratatui::style::Color;
use weir_report::Style;

/// Removes what the style excludes, such as colours.
pub(super) fn apply(buffer: &mut Buffer, style: &Style) {
    if style.color && !style.ascii {
        return;
    }
    for cell in &mut buffer.content {
        if !style.color {
            cell.set_fg(Color::Reset).set_bg(Color::Reset);
        }
        if style.ascii && !cell.symbol().is_ascii() {
            let plain = cell.symbol().chars().next().map_or(' ', in_ascii);
            cell.set_char(plain);
        }
    }
}

fn in_ascii(character: char) -> char {
    match character {
        '─' | '░' => '-',
        '│' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '▒' => '+',
        'µ' => 'u',
        '±' => '~',
        '·' => '.',
        '▓' => '%',
        '█' => '#',
        // The empty cell of braille.
        '\u{2800}' => ' ',
        '\u{2801}'..='\u{28ff}' | '•' => '*',
        _ => '?',
    }
}
