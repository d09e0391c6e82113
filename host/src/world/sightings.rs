//! What NPCs see: for a batch of them, a flat list of views and one flat list of sightings into which each view has
//! its range. The server gathers a batch before it calls a thinker with it. Gathering only looks; of all the host's
//! code this runs most often, so it allocates nothing once its vectors have grown.

use super::entity::EntityId;
use super::limits::MAX_RADIUS_TILES;
use super::nearest::{Circle, Nearest};
use super::npc_options::NpcOptions;
use super::position::Position;
use super::sectors::PLAYER;
use super::state::World;

/// Bit 0 of [`Sighting::flags`]: it is a player.
pub const SEEN_PLAYER: u32 = PLAYER;

/// An NPC that is about to think, and where in the list of sightings those that it sees are.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NpcView {
    pub id: u64,
    pub kind: u32,
    pub map: u32,
    pub x: i32,
    pub y: i32,
    /// The index of its first sighting, the nearest.
    pub seen_first: u32,
    pub seen_count: u32,
}

/// An entity as another sees it: on the same map, at these tiles.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    pub id: u64,
    pub kind: u32,
    pub x: i32,
    pub y: i32,
    /// [`SEEN_PLAYER`]; the other bits are 0.
    pub flags: u32,
}

/// How far and how much NPCs see.
#[derive(Debug)]
pub struct Sight {
    radius: u32,
    max_seen: usize,
    nearest: Nearest,
}

impl Sight {
    /// The sight that `options` give. A radius beyond [`MAX_RADIUS_TILES`] is cut to that.
    pub fn new(options: &NpcOptions) -> Self {
        Self {
            radius: options.sight_radius.min(MAX_RADIUS_TILES),
            max_seen: options.max_seen as usize,
            nearest: Nearest::default(),
        }
    }

    /// Fills `views` with one view for each of `npcs`, in their order, and `seen` with what they see: nearest first,
    /// ties by id, themselves left out. An NPC that is gone gets no view. What the vectors held before is dropped.
    pub fn gather(&mut self, world: &World, npcs: &[EntityId], views: &mut Vec<NpcView>, seen: &mut Vec<Sighting>) {
        views.clear();
        seen.clear();
        // All views first: the memory they come from is far apart, and so the processor fetches many at a time.
        views.extend(npcs.iter().filter_map(|npc| world.entity(*npc)).map(|entity| NpcView {
            id: entity.id.0,
            kind: entity.kind,
            map: entity.position.map,
            x: entity.position.x,
            y: entity.position.y,
            seen_first: 0,
            seen_count: 0,
        }));
        for view in views {
            let centre = Position { map: view.map, x: view.x, y: view.y };
            let circle = Circle { centre, radius: self.radius, limit: self.max_seen };
            view.seen_first = seen.len() as u32;
            seen.extend(self.nearest.find(&world.grid, circle, Some(EntityId(view.id))).map(|found| Sighting {
                id: found.occupant.id.0,
                kind: found.occupant.kind,
                x: found.position.x,
                y: found.position.y,
                flags: found.occupant.flags & SEEN_PLAYER,
            }));
            view.seen_count = seen.len() as u32 - view.seen_first;
        }
    }
}

#[cfg(test)]
#[path = "sightings_tests.rs"]
mod tests;
