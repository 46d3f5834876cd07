//! Fields of a line of comma-separated values.

/// The fields of a line, of which some may stand in quotes.
pub(crate) fn fields(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut is_quoted = false;
    let mut before = ' ';
    for c in line.chars() {
        let field = all.last_mut();
        match (c, field) {
            ('"', Some(field)) => {
                is_quoted = !is_quoted;
                // A quote within quotes is written twice.
                if is_quoted && before == '"' {
                    field.push('"');
                }
            }
            (',', _) if !is_quoted => all.push(String::new()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
        before = c;
    }
    all
}
