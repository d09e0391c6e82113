//! Tables for a terminal, and words that come from guests made fit for a line in one: what is shown of services,
//! generations and events is laid out by it.

use super::status::line;

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

/// A column: what it is called, and whether its cells stand under each other by their ends.
pub(super) struct Column {
    name: &'static str,
    by_ends: bool,
}

impl Column {
    pub fn words(name: &'static str) -> Self {
        Self { name, by_ends: false }
    }

    pub fn number(name: &'static str) -> Self {
        Self { name, by_ends: true }
    }
}

/// Rows under a heading.
pub(super) struct Table<const N: usize> {
    columns: [Column; N],
    pub rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub fn lines(&self) -> String {
        let heading = self.columns.each_ref().map(|column| column.name.to_owned());
        let mut widths = [0; N];
        for row in self.rows.iter().chain([&heading]) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut out = String::new();
        for row in [&heading].into_iter().chain(&self.rows) {
            let mut text = String::new();
            for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
                text.push_str(&if column.by_ends { format!("{cell:>width$}  ") } else { format!("{cell:width$}  ") });
            }
            line(&mut out, &text);
        }
        out
    }
}
