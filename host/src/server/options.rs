//! The configuration as the rooms want it: each gets the options that it has a struct for.

use super::settings::Config;
use crate::admin::AdminOptions;
use crate::guest::StageLimits;
use crate::net::GateOptions;
use crate::sim::{DispatchOptions, LoopOptions, SimOptions, TimerOptions};
use crate::world::{NpcOptions, WorldLimits};

/// How many times its largest payload one handler may send in all.
const SENT_PAYLOADS_PER_HANDLER: usize = 16;

impl Config {
    pub(super) fn sim_options(&self) -> SimOptions {
        SimOptions {
            game_loop: LoopOptions {
                queue_capacity: self.game_loop.queue_capacity as u64,
                max_items_per_batch: self.game_loop.max_items_per_batch as u64,
                item_budget_ms: self.game_loop.item_budget_ms,
            },
            timers: TimerOptions {
                tick_ms: self.timers.tick_ms,
                wheel_size: self.timers.wheel_size as u64,
                max_pending: self.timers.max_pending as u64,
                max_callbacks_per_batch: self.timers.max_callbacks_per_batch as u64,
                callback_budget_ms: self.timers.callback_budget_ms,
            },
            dispatch: DispatchOptions {
                target_tps: u64::from(self.dispatch.target_tps),
                starvation_frames: u64::from(self.dispatch.starvation_frames),
                job_slice_ms: self.dispatch.job_slice_ms,
                soft_budget_ms: self.guest.soft_budget_ms,
            },
        }
    }

    pub(super) fn world_limits(&self) -> WorldLimits {
        WorldLimits {
            max_entities: self.world.max_entities,
            max_data_bytes_per_entity: self.world.max_data_bytes(),
            max_kv_bytes_per_space: self.world.max_kv_bytes(),
            ..WorldLimits::default()
        }
    }

    pub(super) fn stage_limits(&self) -> StageLimits {
        StageLimits {
            max_tasks: self.dispatch.max_tasks,
            max_timers: self.timers.max_pending,
            max_packet_bytes: self.gate.max_frame_bytes,
            max_sent_bytes: self.guest.max_payload_bytes().saturating_mul(SENT_PAYLOADS_PER_HANDLER),
            max_payload_bytes: self.guest.max_payload_bytes(),
        }
    }

    pub(super) fn npc_options(&self) -> NpcOptions {
        NpcOptions {
            think_interval_ms: self.npcs.think_interval_ms,
            sight_radius: self.npcs.sight_radius,
            max_seen: self.npcs.max_seen as u32,
            max_step: self.npcs.max_step,
        }
    }

    pub(super) fn gate_options(&self) -> GateOptions {
        GateOptions {
            listen: self.gate.listen.to_string(),
            max_connections: self.gate.max_connections,
            max_frame_bytes: self.gate.max_frame_bytes,
            max_frames_per_second: self.gate.max_frames_per_second,
            frame_burst: self.gate.frame_burst,
            idle_timeout_s: self.gate.idle_timeout_s,
            max_backlog_kb: self.gate.max_backlog_kb,
            ..GateOptions::default()
        }
    }

    pub(super) fn admin_options(&self) -> AdminOptions {
        AdminOptions { listen: self.admin.listen.to_string() }
    }
}
