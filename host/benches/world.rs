//! What NPC thinking costs the world: gathering what the NPCs of a batch see, and moving them. 100,000 NPCs stand
//! scattered at 40 to a sector, and each batch of 256 takes its NPCs from all over, as timers do: most of the time
//! goes into memory that is not in the cache, so a smaller world would flatter.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wheelhouse::world::{
    Action, EntityId, Intent, Intents, NpcOptions, NpcView, Position, SECTOR_TILES, Sight, Spawn, ThinkerId, World,
    WorldLimits,
};

const NPCS: u64 = 100_000;
const NPCS_PER_SECTOR: f64 = 40.0;
const BATCH: usize = 256;

/// The side of the map, in tiles.
fn side() -> i32 {
    ((NPCS as f64 / NPCS_PER_SECTOR).sqrt() * f64::from(SECTOR_TILES)) as i32
}

/// The world, and its NPCs in the order they come due.
fn crowd() -> (World, Vec<EntityId>) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut world = World::new(WorldLimits::default());
    world.begin();
    let mut spawn = |thinker, connection, x, y| {
        let spawn = Spawn { kind: 1, position: Position::new(0, x, y), thinker, connection };
        world.spawn(spawn).expect("the limits leave room for the crowd")
    };
    let mut npcs: Vec<_> = (0..NPCS)
        .map(|_| spawn(Some(ThinkerId(1)), None, rng.random_range(0..side()), rng.random_range(0..side())))
        .collect();
    // A player in the middle of each 5×5 sectors, so that every NPC is active.
    for x in (40..side() + 40).step_by(80) {
        for y in (40..side() + 40).step_by(80) {
            spawn(None, Some((x * side() + y) as u64), x, y);
        }
    }
    world.commit();
    assert_eq!(world.active_npc_count() as u64, NPCS);
    world.drain_activity();
    npcs.shuffle(&mut rng);
    (world, npcs)
}

fn gather(bench: &mut Criterion) {
    let (world, npcs) = crowd();
    let mut sight = Sight::new(&NpcOptions::default());
    let (mut views, mut seen) = (Vec::new(), Vec::new());
    let mut batches = npcs.chunks_exact(BATCH).cycle();
    let mut group = bench.benchmark_group("world");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("gather a batch of 256", |bench| {
        bench.iter(|| {
            let batch = batches.next().expect("a cycle has no end");
            sight.gather(&world, batch, &mut views, &mut seen);
            seen.len()
        });
    });
    group.finish();
}

fn move_npcs(bench: &mut Criterion) {
    let (mut world, npcs) = crowd();
    let mut intents = Intents::new(&NpcOptions::default());
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut batches = npcs.chunks_exact(BATCH).cycle();
    let mut group = bench.benchmark_group("world");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("move a batch of 256", |bench| {
        bench.iter_batched_ref(
            || wandering(batches.next().expect("a cycle has no end"), &mut rng),
            |(views, wishes)| {
                intents.expect(views);
                for wish in wishes {
                    intents.apply(&mut world, wish);
                }
                world.drain_activity();
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// The views of a batch, and for each NPC the wish to go somewhere on the map.
fn wandering(batch: &[EntityId], rng: &mut ChaCha8Rng) -> (Vec<NpcView>, Vec<Intent>) {
    let views = batch.iter().map(|npc| NpcView { id: npc.0, ..NpcView::default() }).collect();
    let wish = |npc: &EntityId| Intent {
        npc: npc.0,
        action: Action::Move,
        x: rng.random_range(0..side()),
        y: rng.random_range(0..side()),
        target: 0,
        argument: 0,
    };
    (views, batch.iter().map(wish).collect())
}

criterion_group!(benches, gather, move_npcs);
criterion_main!(benches);
