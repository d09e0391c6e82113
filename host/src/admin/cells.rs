//! Words that come from guests, made fit for a line on a terminal: the tables of events and services show them.

/// Text in one line that a terminal does not obey.
pub(super) fn clean(text: &str) -> String {
    let spaced = text.chars().map(|character| if character.is_whitespace() { ' ' } else { character });
    spaced.filter(|character| !character.is_control()).collect()
}

/// Text cut to at most so many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}
