//! What of the configuration is not a room's own options as it stands, translated into what the room wants. Called once
//! each when a host starts.

use super::settings::{Config, KIB, MIB};
use crate::guest::StageLimits;
use crate::sim::{DispatchOptions, SimOptions};
use crate::world::WorldLimits;

/// How many times its largest payload one handler may send in all.
const SENT_PAYLOADS_PER_HANDLER: usize = 16;

impl Config {
    pub(in crate::server) fn sim_options(&self) -> SimOptions {
        SimOptions {
            game_loop: self.game_loop.clone(),
            timers: self.timers.clone(),
            dispatch: DispatchOptions { soft_budget_ms: self.guest.soft_budget_ms, ..self.dispatch.options.clone() },
        }
    }

    pub(in crate::server) fn world_limits(&self) -> WorldLimits {
        WorldLimits {
            max_entities: self.world.max_entities,
            max_data_bytes_per_entity: self.world.max_data_kb.saturating_mul(KIB),
            max_kv_bytes_per_space: self.world.max_kv_mb.saturating_mul(MIB),
            ..WorldLimits::default()
        }
    }

    pub(in crate::server) fn stage_limits(&self) -> StageLimits {
        StageLimits {
            max_tasks: self.dispatch.max_tasks,
            max_timers: self.timers.max_pending as usize,
            max_packet_bytes: self.gate.options.max_frame_bytes,
            max_sent_bytes: self.guest.max_payload_bytes().saturating_mul(SENT_PAYLOADS_PER_HANDLER),
            max_payload_bytes: self.guest.max_payload_bytes(),
        }
    }
}
