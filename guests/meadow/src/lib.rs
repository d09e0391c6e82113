//! What the guests of Meadow agree on: the kinds of entity, the field they live on, and what a bite is.
//!
//! A library that the rules and the thinkers use; it calls nothing of the host.

use serde::Deserialize;

/// The kinds of entity.
pub mod kind {
    /// A person, played by a client.
    pub const PLAYER: u32 = 1;
    /// A sheep.
    pub const SHEEP: u32 = 2;
    /// A wolf.
    pub const WOLF: u32 = 3;
    /// Something that somebody has planted.
    pub const CROP: u32 = 4;
    /// A hare, whose thinker is written in JavaScript.
    pub const HARE: u32 = 5;
    /// A crow, whose thinker is written in Python.
    pub const CROW: u32 = 6;

    /// The name of a kind.
    pub fn name(kind: u32) -> &'static str {
        match kind {
            PLAYER => "player",
            SHEEP => "sheep",
            WOLF => "wolf",
            CROP => "crop",
            HARE => "hare",
            CROW => "crow",
            _ => "thing",
        }
    }
}

/// The map that everything is on.
pub const MAP: u32 = 0;

/// The length of a sector's side in tiles.
pub const SECTOR_TILES: i32 = 16;

/// The argument of a wolf's intent to bite.
pub const BITE: u32 = 1;

/// How many sectors the side of the map has where the configuration does not say.
pub const DEFAULT_MAP_SECTORS: u16 = 25;

/// The map: a square whose corner is the tile (0, 0). Read from `map_sectors`, the length of its side in sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "u16")]
pub struct Field {
    side: i32,
}

impl Field {
    /// A field with that many sectors to a side; at least one.
    pub fn new(sectors: u16) -> Self {
        Self { side: i32::from(sectors.max(1)) * SECTOR_TILES }
    }

    /// The length of its side in tiles.
    pub fn side(&self) -> i32 {
        self.side
    }

    /// The tile inside that is nearest to (`x`, `y`).
    #[inline]
    pub fn clamp(&self, x: i32, y: i32) -> (i32, i32) {
        (x.clamp(0, self.side - 1), y.clamp(0, self.side - 1))
    }

    /// The place of the `index`-th of things that are to be spread evenly, however many there will be.
    ///
    /// Roberts' sequence R2 ("The unreasonable effectiveness of quasirandom sequences", 2018): multiples of two
    /// irrational numbers, here as fractions of 2^32.
    pub fn spread(&self, index: u32) -> (i32, i32) {
        let scale = |fraction: u32| ((u64::from(fraction) * self.side as u64) >> 32) as i32;
        (scale(index.wrapping_mul(0xC13F_A9A9)), scale(index.wrapping_mul(0x91E1_0DA5)))
    }
}

impl From<u16> for Field {
    fn from(sectors: u16) -> Self {
        Self::new(sectors)
    }
}

impl Default for Field {
    fn default() -> Self {
        Self::new(DEFAULT_MAP_SECTORS)
    }
}

/// The configuration of a thinker of Meadow.
#[derive(Debug, Default, Deserialize)]
pub struct ThinkerConfig {
    /// The map's side in sectors.
    #[serde(default, rename = "map_sectors")]
    pub field: Field,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_spread_evenly_and_inside() {
        let field = Field::new(4);
        let mut sectors = [0_u32; 16];
        for index in 0..1600 {
            let (x, y) = field.spread(index);
            assert_eq!(field.clamp(x, y), (x, y));
            sectors[(y / SECTOR_TILES * 4 + x / SECTOR_TILES) as usize] += 1;
        }
        assert!(sectors.iter().all(|count| (95..=105).contains(count)), "{sectors:?}");
    }

    #[test]
    fn a_tile_outside_is_moved_to_the_border() {
        assert_eq!(Field::new(1).clamp(-3, 16), (0, 15));
    }
}
