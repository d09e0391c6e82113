//! What the demo has seen: the host's status at the end, and what happened between two moments.

use std::time::Duration;

use serde::Serialize;

use crate::admin::status_table;
use crate::server::{Host, HostStatus};

/// The figures at one moment.
pub struct Moment {
    status: HostStatus,
    loop_cpu: Duration,
}

impl Moment {
    /// The figures now.
    pub fn of(host: &Host) -> Self {
        Self { loop_cpu: host.loop_cpu_time(), status: host.status() }
    }
}

/// A distribution in microseconds.
#[derive(Debug, Serialize)]
struct Percentiles {
    p50: u64,
    p99: u64,
}

/// The summary: the host's status, and more.
#[derive(Debug, Serialize)]
pub struct Summary {
    #[serde(flatten)]
    status: HostStatus,
    /// How long was measured.
    seconds: f64,
    players: u32,
    thinks_per_second: f64,
    /// CPU time of the loop thread over the time that passed.
    loop_cpu_percent: f64,
    /// Packets from clients.
    packets_per_second: f64,
    /// From a client's ping to its answer.
    packet_rtt_us: Percentiles,
}

impl Summary {
    /// What happened between two moments; `round_trips` are sorted.
    pub fn new(players: u32, before: Moment, after: Moment, round_trips: Vec<Duration>) -> Self {
        let milliseconds = after.status.uptime_ms.saturating_sub(before.status.uptime_ms).max(1);
        let seconds = milliseconds as f64 / 1000.0;
        let thinks = after.status.npcs.thinks - before.status.npcs.thinks;
        let packets = after.status.connections.frames_in - before.status.connections.frames_in;
        let cpu = after.loop_cpu.saturating_sub(before.loop_cpu);
        Self {
            seconds,
            players,
            thinks_per_second: rounded(thinks as f64 / seconds),
            loop_cpu_percent: rounded(100.0 * cpu.as_secs_f64() / seconds),
            packets_per_second: rounded(packets as f64 / seconds),
            packet_rtt_us: Percentiles { p50: percentile(&round_trips, 50), p99: percentile(&round_trips, 99) },
            status: after.status,
        }
    }

    /// One JSON object on a line.
    pub fn to_json(&self) -> String {
        match serde_json::to_string(self) {
            Ok(json) => json + "\n",
            Err(error) => format!("{{\"error\":\"{error}\"}}\n"),
        }
    }

    /// For people.
    pub fn to_text(&self) -> String {
        let status = serde_json::to_value(&self.status).unwrap_or_default();
        format!(
            "{}\n{} players for {} s: {} thinks/s, {} packets/s answered in {} µs (p99 {} µs), \
             the loop thread at {} % of a core\n",
            status_table(&status),
            self.players,
            self.seconds,
            self.thinks_per_second,
            self.packets_per_second,
            self.packet_rtt_us.p50,
            self.packet_rtt_us.p99,
            self.loop_cpu_percent,
        )
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The value below which that many in a hundred lie; 0 of none.
fn percentile(sorted: &[Duration], percent: usize) -> u64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0, |value| value.as_micros() as u64)
}
