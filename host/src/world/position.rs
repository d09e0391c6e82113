//! Where things are: a tile on a map, and the sector that tile lies in. Plain values, used by the whole room.

use serde::{Deserialize, Serialize};

/// The number of a map. The game chooses it; maps need no declaration.
pub type MapId = u32;

/// The side of a sector, in tiles.
pub const SECTOR_TILES: i32 = 16;

/// `SECTOR_TILES` as a shift. An arithmetic shift rounds down, so negative coordinates need no care.
const SECTOR_SHIFT: u32 = SECTOR_TILES.trailing_zeros();

/// A tile on a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    pub map: MapId,
    /// Tiles, growing to the east.
    pub x: i32,
    /// Tiles, growing to the south.
    pub y: i32,
}

impl Position {
    /// The tile (`x`, `y`) of `map`.
    pub const fn new(map: MapId, x: i32, y: i32) -> Self {
        Self { map, x, y }
    }

    /// The sector this tile lies in.
    pub const fn sector(self) -> SectorAddress {
        SectorAddress { map: self.map, x: sector_coordinate(self.x), y: sector_coordinate(self.y) }
    }

    /// Which tile of its sector this is.
    pub(super) const fn sector_tile(self) -> SectorTile {
        SectorTile::new((self.x & (SECTOR_TILES - 1)) as u8, (self.y & (SECTOR_TILES - 1)) as u8)
    }
}

/// The sector coordinate of a tile coordinate.
pub(super) const fn sector_coordinate(tile: i32) -> i32 {
    tile >> SECTOR_SHIFT
}

/// A sector of a map, in sector coordinates: the tile coordinates divided by [`SECTOR_TILES`], rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorAddress {
    pub map: MapId,
    pub x: i32,
    pub y: i32,
}

/// A tile within its sector, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SectorTile(u8);

impl SectorTile {
    const fn new(x: u8, y: u8) -> Self {
        Self(y << SECTOR_SHIFT | x)
    }

    /// The column, 0 to 15.
    pub const fn x(self) -> usize {
        (self.0 & 0xf) as usize
    }

    /// The row, 0 to 15.
    pub const fn y(self) -> usize {
        (self.0 >> SECTOR_SHIFT) as usize
    }
}

/// How many sectors away from a player's sector still count as near: 2 gives a square of 5×5.
const NEAR_SECTORS: i32 = 2;

impl SectorAddress {
    /// The tile in the sector's corner of least coordinates.
    pub(super) const fn first_tile(self) -> (i32, i32) {
        (self.x << SECTOR_SHIFT, self.y << SECTOR_SHIFT)
    }

    /// The position of one of the sector's tiles.
    pub(super) const fn position_of(self, tile: SectorTile) -> Position {
        let (x, y) = self.first_tile();
        Position { map: self.map, x: x + tile.x() as i32, y: y + tile.y() as i32 }
    }

    /// The 5×5 sectors around this one: what a player who stands here keeps active.
    pub fn surroundings(self) -> impl Iterator<Item = SectorAddress> {
        let span = -NEAR_SECTORS..=NEAR_SECTORS;
        span.clone().flat_map(move |dy| {
            span.clone().map(move |dx| SectorAddress { map: self.map, x: self.x + dx, y: self.y + dy })
        })
    }

    /// Whether `other` is one of the 5×5 sectors around this one.
    pub fn is_near(self, other: SectorAddress) -> bool {
        self.map == other.map && (self.x - other.x).abs() <= NEAR_SECTORS && (self.y - other.y).abs() <= NEAR_SECTORS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_is_sixteen_tiles_square_on_both_sides_of_zero() {
        let sector_of = |x, y| {
            let sector = Position::new(0, x, y).sector();
            (sector.x, sector.y)
        };
        assert_eq!(sector_of(0, 15), (0, 0));
        assert_eq!(sector_of(16, 31), (1, 1));
        assert_eq!(sector_of(-1, -16), (-1, -1));
        assert_eq!(sector_of(-17, i32::MIN), (-2, i32::MIN / 16));
        assert_eq!(sector_of(i32::MAX, i32::MAX), (i32::MAX / 16, i32::MAX / 16));
    }

    #[test]
    fn a_tile_is_found_again_from_its_sector() {
        for (x, y) in [(0, 0), (15, 16), (-1, -16), (i32::MIN, i32::MAX), (i32::MAX, -17)] {
            let position = Position::new(3, x, y);
            assert_eq!(position.sector().position_of(position.sector_tile()), position);
        }
    }

    #[test]
    fn near_is_the_five_by_five_sectors_around() {
        let centre = Position::new(7, -1, 100).sector();
        let around: Vec<_> = centre.surroundings().collect();
        assert_eq!(around.len(), 25);
        assert!(around.iter().all(|sector| centre.is_near(*sector)));
        assert!(!centre.is_near(SectorAddress { x: centre.x + 3, ..centre }));
        assert!(!centre.is_near(SectorAddress { y: centre.y - 3, ..centre }));
        assert!(!centre.is_near(SectorAddress { map: 8, ..centre }));
    }

    #[test]
    fn the_corner_of_a_map_has_surroundings_too() {
        assert_eq!(Position::new(0, i32::MIN, i32::MAX).sector().surroundings().count(), 25);
    }
}
