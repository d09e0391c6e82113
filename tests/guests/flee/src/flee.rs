//! The decision that the benchmark of thinking measures, the same text for the guest and for native Rust: away from
//! those that are feared, by how near they are, and together with one's own.

/// What it runs from.
const FEARED: u32 = 2;

/// How much nearer counts more: weights at the distances 0, 1, 2… squared tiles.
const NEAR: i32 = 64;

/// The tile to go to from (`x`, `y`), seeing others as (kind, x, y).
pub fn decide(x: i32, y: i32, seen: impl Iterator<Item = (u32, i32, i32)>) -> (i32, i32) {
    let (mut to_x, mut to_y) = (0, 0);
    for (kind, seen_x, seen_y) in seen {
        let (dx, dy) = (seen_x - x, seen_y - y);
        let weight = NEAR / (1 + dx * dx + dy * dy);
        let pull = if kind == FEARED { -4 * weight } else { weight };
        to_x += pull * dx;
        to_y += pull * dy;
    }
    (x + to_x.signum(), y + to_y.signum())
}
