//! The sector grid: who stands in which sector, packed so that looking at a sector reads memory from one end to the
//! other, and how many players have each sector in their surroundings. The world calls it for every spawn, move and
//! despawn; it never looks an entity up by id.

use rustc_hash::FxHashMap;

use super::entity::{EntityId, Place};
use super::position::{Position, SectorAddress, SectorTile};

/// Flag of an occupant: it has a connection.
pub(super) const PLAYER: u32 = 1;
/// Flag of an occupant: it has a thinker.
pub(super) const NPC: u32 = 2;

/// What a neighbour can see of an entity besides the tile it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occupant {
    pub id: EntityId,
    pub kind: u32,
    pub flags: u32,
}

/// One sector. It exists while somebody stands in it or a player is near. Its arrays are parallel: a search reads all
/// of `tiles`, a byte for each occupant, and goes to the other arrays only for those it wants.
#[derive(Debug)]
pub(super) struct Sector {
    pub address: SectorAddress,
    pub tiles: Vec<SectorTile>,
    pub occupants: Vec<Occupant>,
    /// The slot of each occupant in the entity table.
    pub slots: Vec<u32>,
    /// How many players have this sector in their surroundings.
    pub cover: u32,
    /// While a commit moves covers about: whether the sector was covered before it.
    pub covered_before: Option<bool>,
}

impl Sector {
    pub fn is_covered(&self) -> bool {
        self.cover > 0
    }
}

/// The sectors of all maps.
#[derive(Debug, Default)]
pub(super) struct SectorGrid {
    sectors: Vec<Sector>,
    /// Sectors that are not in use; their arrays keep their allocation.
    free: Vec<u32>,
    directory: FxHashMap<SectorAddress, u32>,
}

impl SectorGrid {
    pub fn index(&self, address: SectorAddress) -> Option<u32> {
        self.directory.get(&address).copied()
    }

    pub fn find(&self, address: SectorAddress) -> Option<&Sector> {
        self.index(address).map(|index| self.sector(index))
    }

    pub fn sector(&self, index: u32) -> &Sector {
        &self.sectors[index as usize]
    }

    pub fn sector_mut(&mut self, index: u32) -> &mut Sector {
        &mut self.sectors[index as usize]
    }

    pub fn set_flags(&mut self, place: Place, flags: u32) {
        self.sectors[place.sector as usize].occupants[place.index as usize].flags = flags;
    }

    pub fn set_tile(&mut self, place: Place, tile: SectorTile) {
        self.sectors[place.sector as usize].tiles[place.index as usize] = tile;
    }

    /// The index of the sector at `address`, which begins to exist if it does not yet.
    pub fn find_or_add(&mut self, address: SectorAddress) -> u32 {
        if let Some(index) = self.directory.get(&address) {
            return *index;
        }
        let index = match self.free.pop() {
            Some(index) => {
                self.sectors[index as usize].address = address;
                index
            }
            None => {
                self.sectors.push(Sector {
                    address,
                    tiles: Vec::new(),
                    occupants: Vec::new(),
                    slots: Vec::new(),
                    cover: 0,
                    covered_before: None,
                });
                (self.sectors.len() - 1) as u32
            }
        };
        self.directory.insert(address, index);
        index
    }

    pub fn insert(&mut self, position: Position, occupant: Occupant, slot: u32) -> Place {
        let index = self.find_or_add(position.sector());
        let sector = self.sector_mut(index);
        sector.tiles.push(position.sector_tile());
        sector.occupants.push(occupant);
        sector.slots.push(slot);
        Place { sector: index, index: (sector.occupants.len() - 1) as u32 }
    }

    /// Takes the occupant at `place` out. The last occupant fills the gap; its slot comes back so that the caller can
    /// note its new place.
    pub fn remove(&mut self, place: Place) -> Option<u32> {
        let sector = self.sector_mut(place.sector);
        sector.tiles.swap_remove(place.index as usize);
        sector.occupants.swap_remove(place.index as usize);
        sector.slots.swap_remove(place.index as usize);
        let moved = sector.slots.get(place.index as usize).copied();
        self.release_if_unused(place.sector);
        moved
    }

    /// Ends the sector's existence if nobody stands in it and no player is near, so that the grid does not grow with
    /// all the places anyone ever was.
    pub fn release_if_unused(&mut self, index: u32) {
        let sector = self.sector(index);
        if sector.occupants.is_empty() && !sector.is_covered() {
            let address = sector.address;
            self.directory.remove(&address);
            self.free.push(index);
        }
    }

    /// Every sector that exists.
    #[cfg(test)]
    pub fn existing(&self) -> impl Iterator<Item = &Sector> {
        self.directory.values().map(|index| self.sector(*index))
    }
}
