//! What of the configuration is not a room's own options as it stands, translated into what the room wants. Called once
//! each when a host starts.

use super::settings::{Config, EventOptions, KIB, MIB};
use crate::guest::StageLimits;
use crate::sim::{DispatchOptions, SimOptions};
use crate::store::AgendaLimits;
use crate::world::WorldLimits;

/// How many times its largest payload one handler may send, or schedule, in all.
const PAYLOADS_PER_HANDLER: usize = 16;

/// Payloads of one guest's events in memory, in bytes.
const EVENTS_IN_MEMORY_BYTES: usize = 64 * MIB;

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
            max_sent_bytes: self.max_handler_bytes(),
            max_payload_bytes: self.guest.max_payload_bytes(),
        }
    }

    /// Bytes that one handler may send, and that it may schedule.
    pub(in crate::server) fn max_handler_bytes(&self) -> usize {
        self.guest.max_payload_bytes().saturating_mul(PAYLOADS_PER_HANDLER)
    }

    pub(in crate::server) fn agenda_limits(&self) -> AgendaLimits {
        let EventOptions { max_in_memory, max_pending, .. } = self.events;
        AgendaLimits {
            look_ahead_ms: self.events.look_ahead().as_millis() as u64,
            max_in_memory,
            max_in_memory_bytes: EVENTS_IN_MEMORY_BYTES,
            max_pending,
        }
    }
}
