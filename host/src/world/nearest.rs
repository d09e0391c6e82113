//! The nearest occupants around a tile: what both the query by radius and an NPC's sight are made of. It looks only at
//! the sectors the circle touches and sorts no more than it hands out. Ties go to the lower id, so that the answer does
//! not depend on the order within a sector.

use super::entity::EntityId;
use super::limits::MAX_RADIUS_TILES;
use super::position::{Position, SectorAddress, sector_coordinate};
use super::sectors::{Occupant, SectorGrid};

/// An occupant within the circle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub distance_squared: u32,
    pub occupant: Occupant,
}

/// The circle to look in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circle {
    pub centre: Position,
    /// In tiles, at most [`MAX_RADIUS_TILES`]: larger ones are cut to that.
    pub radius: u32,
    /// How many occupants to hand out at most.
    pub limit: usize,
}

/// Room for the candidates of one search after another.
#[derive(Debug, Default)]
pub(super) struct Nearest {
    candidates: Vec<Candidate>,
}

impl Nearest {
    /// The occupants within `circle` except `myself`, nearest first, ties by id.
    pub fn find(&mut self, grid: &SectorGrid, circle: Circle, myself: Option<EntityId>) -> &[Candidate] {
        self.candidates.clear();
        let Circle { centre, radius, limit } = circle;
        let radius = radius.min(MAX_RADIUS_TILES);
        let reach = radius as i32;
        let (first_x, last_x) = sector_range(centre.x, reach);
        let (first_y, last_y) = sector_range(centre.y, reach);
        for y in first_y..=last_y {
            for x in first_x..=last_x {
                if let Some(sector) = grid.find(SectorAddress { map: centre.map, x, y }) {
                    self.collect(&sector.occupants, centre, radius);
                }
            }
        }
        if let Some(myself) = myself
            && let Some(at) = self.candidates.iter().position(|candidate| candidate.occupant.id == myself)
        {
            self.candidates.swap_remove(at);
        }
        let order = |candidate: &Candidate| (candidate.distance_squared, candidate.occupant.id);
        if self.candidates.len() > limit {
            if limit > 0 {
                self.candidates.select_nth_unstable_by_key(limit - 1, order);
            }
            self.candidates.truncate(limit);
        }
        self.candidates.sort_unstable_by_key(order);
        &self.candidates
    }

    fn collect(&mut self, occupants: &[Occupant], centre: Position, radius: u32) {
        let radius_squared = radius * radius;
        for occupant in occupants {
            // The sectors looked at are near, so neither the differences nor the sum of their squares overflow.
            let dx = occupant.x.wrapping_sub(centre.x);
            let dy = occupant.y.wrapping_sub(centre.y);
            let distance_squared = (dx * dx + dy * dy) as u32;
            if distance_squared <= radius_squared {
                self.candidates.push(Candidate { distance_squared, occupant: *occupant });
            }
        }
    }
}

/// The first and last sector coordinate within `reach` tiles of a tile coordinate.
fn sector_range(tile: i32, reach: i32) -> (i32, i32) {
    (sector_coordinate(tile.saturating_sub(reach)), sector_coordinate(tile.saturating_add(reach)))
}
