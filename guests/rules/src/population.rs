//! Keeps as many sheep and wolves in the world as the configuration says: fills a new world, and lets the dead come
//! back elsewhere. The count is in `kv`, so that no instance of the rules spawns what another one has spawned.

use std::time::Duration;

use meadow::{MAP, kind};
use serde::{Deserialize, Serialize};
use wheelhouse_guest::prelude::*;

use crate::config::Config;

/// The timer's name.
pub const TIMER: &str = "population";

const KEY: &str = "population/2";

/// Where worlds have it that were begun before there were hares and crows.
const FIRST_KEY: &str = "population";

/// How many are spawned in one handler: far less than its deadline allows.
const SLICE: u32 = 2_000;

/// The time between two slices while the world is filled. Others get their turn in between.
const FILL_INTERVAL: Duration = Duration::from_millis(16);

/// The time after which the dead are back at the latest, once the world is full.
const RETURN_INTERVAL: Duration = Duration::from_secs(2);

/// The payload of the timer while the world is filled; empty later.
const FILLING: &[u8] = b"filling";

/// How many live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Population {
    sheep: u32,
    wolves: u32,
    hares: u32,
    crows: u32,
    /// How many were ever spawned; each has a place of its own in the sequence of places.
    spawned: u32,
}

/// What was kept under the first key.
#[derive(Serialize, Deserialize)]
struct FirstPopulation {
    sheep: u32,
    wolves: u32,
    spawned: u32,
}

impl From<FirstPopulation> for Population {
    fn from(FirstPopulation { sheep, wolves, spawned }: FirstPopulation) -> Self {
        Self { sheep, wolves, spawned, ..Self::default() }
    }
}

/// How many live now.
fn read() -> Result<Population, Refusal> {
    match kv::get(KEY)? {
        Some(population) => Ok(population),
        None => Ok(kv::get::<FirstPopulation>(FIRST_KEY)?.map(Population::from).unwrap_or_default()),
    }
}

/// Begins to fill the world. Safe to call whatever an earlier instance has done.
pub fn start() -> Result<(), Refusal> {
    timers::cancel_named(TIMER);
    // It repeats until the world is full: a slice that fails must not be the last one.
    timers::every(TIMER, FILL_INTERVAL, FILLING)?;
    Ok(())
}

/// Spawns a slice of those who are missing.
pub fn turn(config: &Config, timer: &FiredTimer) -> Result<(), Refusal> {
    let mut population = read()?;
    let before = population;
    let mut full = false;
    for kind in missing(&population, config) {
        match spawn(kind, population.spawned, config) {
            Ok(()) => population.add(kind),
            Err(entities::EntityError::TooMany(limit)) => {
                warn!("Meadow ends with {population:?}: the host allows {limit} entities (world.max_entities)");
                full = true;
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    full |= missing(&population, config).next().is_none();
    if population != before {
        kv::set(KEY, &population)?;
    }
    if full && timer.payload == FILLING {
        info!("Meadow is full: {} sheep and {} wolves", population.sheep, population.wolves);
        timers::cancel_named(TIMER);
        timers::every(TIMER, RETURN_INTERVAL, &[])?;
    }
    Ok(())
}

/// Notes a death; the next turn brings another one of its kind.
pub fn died(kind: u32) -> Result<(), Refusal> {
    let mut population = read()?;
    population.remove(kind);
    Ok(kv::set(KEY, &population)?)
}

fn spawn(kind: u32, index: u32, config: &Config) -> Result<(), entities::EntityError> {
    let (x, y) = config.field().spread(index);
    entities::spawn(kind, Position::new(MAP, x, y), Some(kind::name(kind))).map(drop)
}

/// The kinds of those who are missing, at most a slice of them.
fn missing(population: &Population, config: &Config) -> impl Iterator<Item = u32> + use<> {
    let missing = [
        (kind::WOLF, config.wolves.saturating_sub(population.wolves)),
        (kind::SHEEP, config.sheep.saturating_sub(population.sheep)),
        (kind::HARE, config.hares.saturating_sub(population.hares)),
        (kind::CROW, config.crows.saturating_sub(population.crows)),
    ];
    let kinds = missing.into_iter().flat_map(|(kind, count)| std::iter::repeat_n(kind, count as usize));
    kinds.take(SLICE as usize)
}

impl Population {
    fn add(&mut self, kind: u32) {
        self.spawned = self.spawned.wrapping_add(1);
        if let Some(count) = self.count(kind) {
            *count += 1;
        }
    }

    fn remove(&mut self, kind: u32) {
        if let Some(count) = self.count(kind) {
            *count = count.saturating_sub(1);
        }
    }

    fn count(&mut self, kind: u32) -> Option<&mut u32> {
        match kind {
            kind::SHEEP => Some(&mut self.sheep),
            kind::WOLF => Some(&mut self.wolves),
            kind::HARE => Some(&mut self.hares),
            kind::CROW => Some(&mut self.crows),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(sheep: u32, wolves: u32) -> Config {
        Config { sheep, wolves, ..Config::default() }
    }

    #[test]
    fn a_large_world_is_filled_in_slices() {
        let config = config(5_000, 100);
        let mut population = Population::default();
        let mut slices = Vec::new();
        while missing(&population, &config).next().is_some() {
            let slice: Vec<_> = missing(&population, &config).collect();
            slice.iter().for_each(|kind| population.add(*kind));
            slices.push(slice.len());
        }
        assert_eq!(slices, [2_000, 2_000, 1_100]);
        assert_eq!(population, Population { sheep: 5_000, wolves: 100, spawned: 5_100, ..Population::default() });
    }

    #[test]
    fn who_dies_is_missing_and_comes_back_at_another_place() {
        let config = config(3, 1);
        let mut population = Population { sheep: 3, wolves: 1, spawned: 4, ..Population::default() };
        population.remove(kind::SHEEP);
        population.remove(kind::PLAYER);
        assert_eq!(missing(&population, &config).collect::<Vec<_>>(), [kind::SHEEP]);
        population.add(kind::SHEEP);
        assert_eq!(population, Population { sheep: 3, wolves: 1, spawned: 5, ..Population::default() });
    }
}
