//! The nearest occupants around a tile: what both the query by radius and an NPC's sight are made of. It looks only at
//! the sectors the circle touches and reads each from one end to the other. Ties go to the lower id, so that the answer
//! does not depend on the order within a sector.

use super::entity::EntityId;
use super::limits::MAX_RADIUS_TILES;
use super::position::{Position, SECTOR_TILES, SectorAddress, sector_coordinate};
use super::sectors::{Occupant, Sector, SectorGrid};

/// The circle to look in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circle {
    pub centre: Position,
    /// In tiles, at most [`MAX_RADIUS_TILES`]: larger ones are cut to that.
    pub radius: u32,
    /// How many occupants to hand out at most.
    pub limit: usize,
}

/// What a search hands out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub occupant: &'a Occupant,
    pub position: Position,
    /// Its slot in the entity table.
    pub slot: u32,
}

/// An occupant within the circle as one number: from the highest bits down the square of its distance, its id, the
/// number of its sector among those the circle touches, and its index there. The order of the numbers is the order
/// wanted, ties included, and numbers are sorted far quicker than occupants.
type Candidate = u128;

const INDEX_BITS: u32 = 32;
const SECTOR_BITS: u32 = 13;
const ID_SHIFT: u32 = INDEX_BITS + SECTOR_BITS;
const DISTANCE_SHIFT: u32 = ID_SHIFT + u64::BITS;

// The largest circle's squared radius and its number of sectors fit the bits they have.
const _: () = assert!((MAX_RADIUS_TILES as u64).pow(2) < 1 << (Candidate::BITS - DISTANCE_SHIFT));
const _: () = assert!((2 * MAX_RADIUS_TILES as u64 / SECTOR_TILES as u64 + 2).pow(2) <= 1 << SECTOR_BITS);

fn distance_squared(candidate: Candidate) -> usize {
    (candidate >> DISTANCE_SHIFT) as usize
}

fn id(candidate: Candidate) -> EntityId {
    EntityId((candidate >> ID_SHIFT) as u64)
}

/// Squared distances below this are sorted by counting: those of a radius up to 15 tiles, as NPCs see.
const COUNTED_DISTANCES: usize = 256;

/// Room for one search after another.
#[derive(Debug)]
pub(super) struct Nearest {
    candidates: Vec<Candidate>,
    sorted: Vec<Candidate>,
    hits: Vec<Hit>,
    /// The sectors the circle touches, as their indices in the grid.
    sectors: Vec<u32>,
    /// For each squared distance, where the next candidate that far goes.
    starts: [u32; COUNTED_DISTANCES],
}

/// An occupant within the circle, before its id has been looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Hit {
    distance_squared: u32,
    /// Its sector's number among those the circle touches.
    sector: u32,
    index: u32,
}

impl Default for Nearest {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            sorted: Vec::new(),
            hits: Vec::new(),
            sectors: Vec::new(),
            starts: [0; COUNTED_DISTANCES],
        }
    }
}

impl Nearest {
    /// The occupants within `circle` except `myself`, nearest first, ties by id.
    pub fn find<'a>(
        &'a mut self,
        grid: &'a SectorGrid,
        circle: Circle,
        myself: Option<EntityId>,
    ) -> impl Iterator<Item = Found<'a>> {
        let reach = circle.radius.min(MAX_RADIUS_TILES) as i32;
        // One more than the limit, for myself may be among them.
        let limit = circle.limit + usize::from(myself.is_some());
        self.collect(grid, circle.centre, reach);
        self.sort_nearest(limit, (reach * reach) as usize);
        let Self { candidates, sectors, .. } = self;
        if let Some(myself) = myself
            && let Some(at) = candidates.iter().take(limit).position(|candidate| id(*candidate) == myself)
        {
            candidates.remove(at);
        }
        let nearest = &candidates[..circle.limit.min(candidates.len())];
        nearest.iter().map(move |candidate| look_up(grid, sectors, *candidate))
    }

    /// Collects the candidates of all sectors the circle touches. It goes over the sectors once for each step, so that
    /// the processor waits for the memory of all of them at once and not one after the other.
    fn collect(&mut self, grid: &SectorGrid, centre: Position, reach: i32) {
        let (first_x, last_x) = sector_range(centre.x, reach);
        let (first_y, last_y) = sector_range(centre.y, reach);
        self.sectors.clear();
        for y in first_y..=last_y {
            for x in first_x..=last_x {
                self.sectors.extend(grid.index(SectorAddress { map: centre.map, x, y }));
            }
        }
        let occupants = self.sectors.iter().map(|index| grid.sector(*index).tiles.len()).sum();
        if self.hits.len() < occupants {
            self.hits.resize(occupants, Hit::default());
        }
        let mut found = 0;
        for (number, index) in (0..).zip(&self.sectors) {
            found += find_hits(grid.sector(*index), number, centre, reach, &mut self.hits[found..]);
        }
        self.candidates.clear();
        self.candidates.extend(self.hits[..found].iter().map(|hit| {
            let sector = grid.sector(self.sectors[hit.sector as usize]);
            let id = sector.occupants[hit.index as usize].id;
            Candidate::from(hit.distance_squared) << DISTANCE_SHIFT
                | Candidate::from(id.0) << ID_SHIFT
                | Candidate::from(hit.sector) << INDEX_BITS
                | Candidate::from(hit.index)
        }));
    }

    /// Sorts the candidates so that at least the first `limit` are the nearest, in order.
    fn sort_nearest(&mut self, limit: usize, reach_squared: usize) {
        let Some(last) = limit.min(self.candidates.len()).checked_sub(1) else {
            return;
        };
        let mut contenders = self.candidates.len();
        if reach_squared < COUNTED_DISTANCES {
            self.sort_by_counting(reach_squared);
            // Now all is in order but ties, and what is farther than the last one wanted is out.
            contenders = self.starts[distance_squared(self.candidates[last])] as usize;
        }
        let mut contenders = &mut self.candidates[..contenders];
        if contenders.len() > 2 * limit {
            contenders.select_nth_unstable(last);
            contenders = &mut contenders[..limit];
        }
        contenders.sort_unstable();
    }

    /// Sorts by distance alone. Each of `starts` then tells where the next greater distance begins.
    fn sort_by_counting(&mut self, reach_squared: usize) {
        let starts = &mut self.starts[..=reach_squared];
        starts.fill(0);
        for candidate in &self.candidates {
            starts[distance_squared(*candidate)] += 1;
        }
        let mut sum = 0;
        for start in &mut *starts {
            sum += std::mem::replace(start, sum);
        }
        self.sorted.resize(self.candidates.len(), 0);
        for candidate in &self.candidates {
            let start = &mut starts[distance_squared(*candidate)];
            self.sorted[*start as usize] = *candidate;
            *start += 1;
        }
        std::mem::swap(&mut self.candidates, &mut self.sorted);
    }
}

fn look_up<'a>(grid: &'a SectorGrid, sectors: &[u32], candidate: Candidate) -> Found<'a> {
    let number = (candidate >> INDEX_BITS) as usize & ((1 << SECTOR_BITS) - 1);
    let sector = grid.sector(sectors[number]);
    let index = candidate as u32 as usize;
    Found {
        occupant: &sector.occupants[index],
        position: sector.address.position_of(sector.tiles[index]),
        slot: sector.slots[index],
    }
}

/// Writes the sector's occupants within reach to the front of `hits`; answers how many there are. Every occupant is
/// written and the next one overwrites it unless it counted: chance decides which do, and a branch on it would be
/// mispredicted time and again.
fn find_hits(sector: &Sector, number: u32, centre: Position, reach: i32, hits: &mut [Hit]) -> usize {
    let (first_x, first_y) = sector.address.first_tile();
    let columns = squared_distances(first_x, centre.x);
    let rows = squared_distances(first_y, centre.y);
    let reach_squared = (reach * reach) as u32;
    let mut found = 0;
    for (index, tile) in (0..).zip(&sector.tiles) {
        let distance_squared = columns[tile.x()] + rows[tile.y()];
        hits[found] = Hit { distance_squared, sector: number, index };
        found += usize::from(distance_squared <= reach_squared);
    }
    found
}

/// The farthest that a tile of a sector touched by a circle can be from its centre, along one axis.
const FARTHEST: i32 = MAX_RADIUS_TILES as i32 + SECTOR_TILES - 1;

/// The squares of all numbers from `-FARTHEST` to `FARTHEST`.
static SQUARES: [u32; 2 * FARTHEST as usize + 1] = {
    let mut squares = [0; 2 * FARTHEST as usize + 1];
    let mut distance = -FARTHEST;
    while distance <= FARTHEST {
        squares[(distance + FARTHEST) as usize] = (distance * distance) as u32;
        distance += 1;
    }
    squares
};

/// The squared distances of a coordinate from the columns (or rows) of a sector that the circle touches; `first` is
/// the sector's first column.
fn squared_distances(first: i32, coordinate: i32) -> &'static [u32; SECTOR_TILES as usize] {
    let from = (first.wrapping_sub(coordinate) + FARTHEST) as usize;
    SQUARES[from..].first_chunk().expect("the sector is one that the circle touches")
}

/// The first and last sector coordinate within `reach` tiles of a tile coordinate.
fn sector_range(tile: i32, reach: i32) -> (i32, i32) {
    (sector_coordinate(tile.saturating_sub(reach)), sector_coordinate(tile.saturating_add(reach)))
}
