//! What an NPC's think costs: the same decision in native Rust, in a Wasm guest called per batch, and in Lua called per
//! NPC, each with the gathering of what the NPC sees. Prints a table; the guest is built by `just bench`.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mlua::{Function, LightUserData, Lua, Table};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wheelhouse::clock::{MonotonicClock, SharedClock};
use wheelhouse::guest::contract::sim::thinking::{Action, Intent};
use wheelhouse::guest::contract::sim::types::Occasion;
use wheelhouse::guest::{
    EventBook, GuestCode, GuestCounters, GuestId, GuestKind, GuestLimits, GuestSettings, Identity, InstanceState,
    LogLines, LoopEngine, Resident, Stage, StageLimits, StageSlot, ThinkBatch, ThinkerPre, load,
};
use wheelhouse::store::{Agenda, AgendaLimits};
use wheelhouse::world::{EntityId, NpcOptions, NpcView, Position, Sight, Spawn, ThinkerId, World, WorldLimits};

#[path = "../../tests/guests/flee/src/flee.rs"]
mod flee;

const GUEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/guests/build/flee.wasm");

/// NPCs in the world, and in a batch.
const NPCS: usize = 20_000;
const BATCH: usize = 256;
/// Neighbours that each looks at.
const SEEN: u32 = 8;
/// Tiles to a side: 40 NPCs to a sector of 16 by 16.
const SIDE: i32 = 358;
/// Each way is measured so often, in turn with the others; the median counts.
const ROUNDS: usize = 15;

const LUA: &str = r#"
local ffi = require("ffi")
ffi.cdef[[ typedef struct { uint64_t id; uint32_t kind; int32_t x; int32_t y; uint32_t flags; } sighting; ]]
local sightings = ffi.typeof("const sighting *")

local function decide(x, y, count, at)
    local to_x, to_y = 0, 0
    for i = 0, count - 1 do
        local kind, seen_x, seen_y = at(i)
        local dx, dy = seen_x - x, seen_y - y
        local weight = math.floor(64 / (1 + dx * dx + dy * dy))
        local pull = kind == 2 and -4 * weight or weight
        to_x = to_x + pull * dx
        to_y = to_y + pull * dy
    end
    local function sign(n) return n > 0 and 1 or n < 0 and -1 or 0 end
    return x + sign(to_x), y + sign(to_y)
end

function think_tables(x, y, seen)
    return decide(x, y, #seen, function(i) local s = seen[i + 1]; return s.kind, s.x, s.y end)
end

function think_memory(x, y, pointer, count)
    local seen = ffi.cast(sightings, pointer)
    return decide(x, y, count, function(i) local s = seen[i]; return s.kind, s.x, s.y end)
end
"#;

fn main() {
    // Cargo runs benches as tests too, with an argument; there is nothing to test here.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let (world, npcs) = crowd();
    let mut bench = Bench::new(world, npcs);
    type Way = (&'static str, fn(&mut Bench, usize));
    let ways: [Way; 5] = [
        ("gather only", Bench::gather),
        ("native Rust", Bench::native),
        ("Wasm guest, batches of 256", Bench::guest),
        ("LuaJIT per NPC, reading memory (ffi)", Bench::lua_memory),
        ("LuaJIT per NPC, neighbours as tables", Bench::lua_tables),
    ];
    for (_, way) in &ways {
        bench.round(*way);
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for (way, times) in ways.iter().zip(&mut times) {
            times.push(bench.round(way.1));
        }
    }
    let medians: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    println!("NPC thinking, {SEEN} neighbours, gathering them included; medians of {ROUNDS} rounds of {NPCS} NPCs");
    println!("{:<40} {:>10} {:>12} {:>12}", "", "ns per NPC", "x native", "x guest");
    for ((name, _), ns) in ways.iter().zip(&medians) {
        println!("{name:<40} {ns:>10.0} {:>12.2} {:>12.2}", ns / medians[1], ns / medians[2]);
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The world, and its NPCs in the order they come due.
fn crowd() -> (World, Vec<EntityId>) {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut world = World::new(WorldLimits::default());
    world.begin();
    let mut npcs: Vec<EntityId> = (0..NPCS)
        .map(|number| {
            let position = Position::new(0, random.random_range(0..SIDE), random.random_range(0..SIDE));
            let kind = if number % 20 == 0 { 2 } else { 1 };
            let spawn = Spawn { kind, position, thinker: Some(ThinkerId(0)), connection: None };
            world.spawn(spawn).expect("the limits leave room for the crowd")
        })
        .collect();
    world.commit();
    world.drain_activity();
    npcs.shuffle(&mut random);
    (world, npcs)
}

struct Bench {
    slot: StageSlot,
    npcs: Vec<EntityId>,
    sight: Sight,
    batch: ThinkBatch,
    guest: Resident<ThinkerPre<InstanceState>>,
    tables: Function,
    memory: Function,
    lua: Lua,
    /// Where the wishes go, so that they are made.
    moved: i64,
}

/// Nobody schedules anything here.
fn no_events() -> EventBook {
    let limits = AgendaLimits { look_ahead_ms: 1, max_in_memory: 1, max_in_memory_bytes: 1 << 20, max_pending: 1 };
    EventBook::new(Agenda::new(limits, &[], 1), None, 0)
}

impl Bench {
    fn new(world: World, npcs: Vec<EntityId>) -> Self {
        let limits = StageLimits {
            max_tasks: 1,
            max_timers: 1,
            max_packet_bytes: 1,
            max_sent_bytes: 1,
            max_payload_bytes: 1 << 20,
        };
        let mut slot: StageSlot = Some(Box::new(Stage::new(world, no_events(), limits)));
        let mut guest = guest();
        guest.start(&mut slot, Occasion::First, None);
        assert!(guest.is_running(), "the guest does not start");
        // `ffi` is one of the libraries that mlua holds back for scripts it does not trust; this one is ours.
        let lua = unsafe { Lua::unsafe_new() };
        lua.load(LUA).exec().expect("the script is ours");
        let options = NpcOptions { max_seen: SEEN, ..NpcOptions::default() };
        Self {
            slot,
            npcs,
            sight: Sight::new(&options),
            batch: ThinkBatch::default(),
            guest,
            tables: lua.globals().get("think_tables").expect("the script defines it"),
            memory: lua.globals().get("think_memory").expect("the script defines it"),
            lua,
            moved: 0,
        }
    }

    /// Thinks every NPC one way; nanoseconds for each.
    fn round(&mut self, way: fn(&mut Bench, usize)) -> f64 {
        let began = Instant::now();
        for first in (0..self.npcs.len()).step_by(BATCH) {
            way(self, first);
        }
        black_box(self.moved);
        began.elapsed().as_nanos() as f64 / self.npcs.len() as f64
    }

    fn gather(&mut self, first: usize) {
        let batch = &self.npcs[first..self.npcs.len().min(first + BATCH)];
        let stage = self.slot.as_ref().expect("nobody has the stage");
        self.batch.gather(&mut self.sight, &stage.world, batch);
    }

    fn native(&mut self, first: usize) {
        self.gather(first);
        for view in self.batch.views() {
            let (x, y) =
                flee::decide(view.x, view.y, seen_by(view, self.batch.seen()).iter().map(|s| (s.kind, s.x, s.y)));
            let wish = black_box(Intent { npc: view.id, action: Action::Move, x, y, target: 0, argument: 0 });
            self.moved += i64::from(wish.x + wish.y);
        }
    }

    fn guest(&mut self, first: usize) {
        self.gather(first);
        let wishes = self.batch.think(&mut self.guest, &mut self.slot, Duration::ZERO);
        for wish in wishes.expect("the guest thinks") {
            self.moved += i64::from(wish.x + wish.y);
        }
    }

    fn lua_memory(&mut self, first: usize) {
        self.gather(first);
        for view in self.batch.views() {
            let seen = seen_by(view, self.batch.seen());
            let pointer = LightUserData(seen.as_ptr().cast_mut().cast());
            let (x, y): (i32, i32) =
                self.memory.call((view.x, view.y, pointer, seen.len())).expect("the script is ours");
            self.moved += i64::from(x + y);
        }
    }

    fn lua_tables(&mut self, first: usize) {
        self.gather(first);
        for view in self.batch.views() {
            let seen: Vec<Table> = seen_by(view, self.batch.seen()).iter().map(|seen| self.table(seen)).collect();
            let (x, y): (i32, i32) = self.tables.call((view.x, view.y, seen)).expect("the script is ours");
            self.moved += i64::from(x + y);
        }
    }

    fn table(&self, seen: &wheelhouse::world::Sighting) -> Table {
        let fields = [("kind", i64::from(seen.kind)), ("x", seen.x.into()), ("y", seen.y.into())];
        self.lua.create_table_from(fields).expect("Lua has memory for a small table")
    }
}

fn seen_by<'a>(view: &NpcView, seen: &'a [wheelhouse::world::Sighting]) -> &'a [wheelhouse::world::Sighting] {
    &seen[view.seen_first as usize..][..view.seen_count as usize]
}

/// The guest, as a host would run it.
fn guest() -> Resident<ThinkerPre<InstanceState>> {
    let clock: SharedClock = MonotonicClock::shared();
    let limits = GuestLimits { deadline_ms: 1000, ..GuestLimits::default() };
    let engine = LoopEngine::new(&limits, None, Arc::clone(&clock)).expect("the machine has room for an engine");
    let settings = GuestSettings::new("flee", GuestKind::Thinker, GUEST);
    let bytes = fs::read(Path::new(GUEST)).expect("`just bench` builds the guest before it runs this");
    let Ok(GuestCode::Thinker(code)) = load(&engine, &settings, &bytes) else {
        panic!("{GUEST} is not the thinker that it should be");
    };
    let identity = Identity {
        id: GuestId(0),
        name: Arc::from("flee"),
        writes: false,
        log: Arc::new(LogLines::new("flee", 100, Arc::clone(&clock))),
        clock,
        limits: Arc::clone(engine.limits()),
        max_memory_bytes: limits.max_memory_bytes(),
        counters: Arc::new(GuestCounters::new("flee", GuestKind::Thinker)),
        seed: 1,
    };
    Resident::new(engine, Arc::new(identity), Some(code), "{}".into())
}
