//! How large Meadow is and who lives there: the rules' table of the configuration.

use std::time::Duration;

use meadow::{DEFAULT_MAP_SECTORS, Field, MAP, SECTOR_TILES};
use serde::Deserialize;
use wheelhouse_guest::prelude::*;

/// The sectors to a side of the block of which a player stands in the middle: as far as NPCs around a player think.
const BLOCK_SECTORS: i32 = 5;

/// The table. Every key may be left out.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The map's side in sectors.
    pub map_sectors: u16,
    /// How many sheep there are.
    pub sheep: u32,
    /// How many wolves there are.
    pub wolves: u32,
    /// How many hares and crows there are, whose thinkers are written in other languages.
    pub hares: u32,
    pub crows: u32,
    /// How many players have their homes side by side; as many rows are used before homes are shared.
    pub player_grid: u16,
    /// How long a crop takes from one stage to the next, in seconds.
    pub ripen_s: u32,
    /// How long a battle takes until it is settled, in seconds.
    pub battle_s: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            map_sectors: DEFAULT_MAP_SECTORS,
            sheep: 950,
            wolves: 50,
            hares: 0,
            crows: 0,
            player_grid: 5,
            ripen_s: 20,
            battle_s: 60,
        }
    }
}

impl Config {
    /// The map.
    pub fn field(&self) -> Field {
        Field::new(self.map_sectors)
    }

    /// How long a crop takes from one stage to the next.
    pub fn ripen(&self) -> Duration {
        Duration::from_secs(self.ripen_s.into())
    }

    /// How long a battle takes until it is settled.
    pub fn battle(&self) -> Duration {
        Duration::from_secs(self.battle_s.into())
    }

    /// Where the player of a slot lives: the middle of the slot's block, row by row, wrapping at the map's border.
    pub fn home(&self, slot: u32) -> Position {
        let grid = u32::from(self.player_grid.max(1));
        let (column, row) = (slot % grid, slot / grid % grid);
        let side = self.field().side();
        let middle = |block: u32| (block as i32 * BLOCK_SECTORS + BLOCK_SECTORS / 2) * SECTOR_TILES + SECTOR_TILES / 2;
        Position::new(MAP, middle(column) % side, middle(row) % side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_lie_eighty_tiles_apart_in_rows() {
        let config = Config { map_sectors: 15, player_grid: 3, ..Config::default() };
        let homes: Vec<_> = (0..4).map(|slot| (config.home(slot).x, config.home(slot).y)).collect();
        assert_eq!(homes, [(40, 40), (120, 40), (200, 40), (40, 120)]);
        assert_eq!(config.home(9), config.home(0));
    }

    #[test]
    fn every_sector_is_near_a_home_when_the_grid_fills_the_map() {
        let config = Config { map_sectors: 20, player_grid: 4, ..Config::default() };
        for (x, y) in (0..20).flat_map(|x| (0..20).map(move |y| (x, y))) {
            let near = (0..16).any(|slot| {
                let home = config.home(slot);
                (home.x / SECTOR_TILES).abs_diff(x) <= 2 && (home.y / SECTOR_TILES).abs_diff(y) <= 2
            });
            assert!(near, "sector {x}, {y}");
        }
    }

    #[test]
    fn homes_are_inside_a_map_too_small_for_them() {
        let config = Config { map_sectors: 1, player_grid: 8, ..Config::default() };
        for slot in 0..64 {
            let home = config.home(slot);
            assert_eq!(config.field().clamp(home.x, home.y), (home.x, home.y));
        }
    }
}
