//! The sector grid: who stands in which sector, packed so that looking at a sector reads memory from one end to the
//! other, and how many players have each sector in their surroundings. The world calls it for every spawn, move and
//! despawn; it never looks an entity up by id.

use rustc_hash::FxHashMap;

use super::entity::{EntityId, Place};
use super::position::SectorAddress;

/// Flag of an occupant: it has a connection.
pub(super) const PLAYER: u32 = 1;
/// Flag of an occupant: it has a thinker.
pub(super) const NPC: u32 = 2;

/// What a neighbour can see of an entity, as it lies in a sector's array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occupant {
    pub id: EntityId,
    pub x: i32,
    pub y: i32,
    pub kind: u32,
    pub flags: u32,
}

/// One sector. It exists while somebody stands in it or a player is near.
#[derive(Debug)]
pub(super) struct Sector {
    pub address: SectorAddress,
    pub occupants: Vec<Occupant>,
    /// Parallel to `occupants`: the slot of each in the entity table.
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
    pub fn find(&self, address: SectorAddress) -> Option<&Sector> {
        self.directory.get(&address).map(|index| self.sector(*index))
    }

    pub fn sector(&self, index: u32) -> &Sector {
        &self.sectors[index as usize]
    }

    pub fn sector_mut(&mut self, index: u32) -> &mut Sector {
        &mut self.sectors[index as usize]
    }

    pub fn occupant_mut(&mut self, place: Place) -> &mut Occupant {
        &mut self.sectors[place.sector as usize].occupants[place.index as usize]
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

    pub fn insert(&mut self, address: SectorAddress, occupant: Occupant, slot: u32) -> Place {
        let index = self.find_or_add(address);
        let sector = self.sector_mut(index);
        sector.occupants.push(occupant);
        sector.slots.push(slot);
        Place { sector: index, index: (sector.occupants.len() - 1) as u32 }
    }

    /// Takes the occupant at `place` out. The last occupant fills the gap; its slot comes back so that the caller can
    /// note its new place.
    pub fn remove(&mut self, place: Place) -> Option<u32> {
        let sector = self.sector_mut(place.sector);
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
