//! The interface `timers`: noted in the timer book, put on the wheel when the handler has returned.

use std::sync::Arc;

use crate::guest::contract::sim::timers::{Host, TimerError};
use crate::guest::stage::MAX_EFFECTS;
use crate::guest::state::InstanceState;
use crate::guest::timer_book::GuestTimer;

const MAX_NAME_BYTES: usize = 64;
const MAX_PAYLOAD_BYTES: usize = 1024;

impl Host for InstanceState {
    fn set(
        &mut self,
        name: String,
        interval_ms: u64,
        delay_ms: Option<u64>,
        repeat: bool,
        payload: Vec<u8>,
    ) -> wasmtime::Result<Result<u64, TimerError>> {
        if interval_ms == 0 || delay_ms == Some(0) {
            return Ok(Err(TimerError::NotPositive));
        }
        if name.len() > MAX_NAME_BYTES {
            return Ok(Err(TimerError::TooLarge(MAX_NAME_BYTES as u32)));
        }
        if payload.len() > MAX_PAYLOAD_BYTES {
            return Ok(Err(TimerError::TooLarge(MAX_PAYLOAD_BYTES as u32)));
        }
        let guest = self.identity.id;
        let stage = self.stage()?;
        if stage.other_timers + stage.timers.len() >= stage.limits.max_timers {
            return Ok(Err(TimerError::TooMany(stage.limits.max_timers as u64)));
        }
        if stage.is_full() {
            wasmtime::bail!("a handler may set at most {MAX_EFFECTS} timers");
        }
        let id = stage.timers.set(GuestTimer {
            guest,
            name: Arc::from(name),
            interval_ms,
            delay_ms,
            repeat,
            payload: Arc::from(payload),
            on_wheel: None,
            after: 0,
        });
        stage.note_timer(id);
        Ok(Ok(id))
    }

    fn cancel(&mut self, id: u64) -> wasmtime::Result<bool> {
        let guest = self.identity.id;
        let stage = self.stage()?;
        let cancelled = stage.timers.cancel(guest, id);
        if cancelled == Some(true) {
            stage.note_cancelled_timers([id]);
        }
        Ok(cancelled.is_some())
    }

    fn cancel_named(&mut self, name: String) -> wasmtime::Result<u32> {
        let guest = self.identity.id;
        let stage = self.stage()?;
        let ids = stage.timers.named(guest, &name);
        for id in &ids {
            if stage.timers.cancel(guest, *id) == Some(true) {
                stage.note_cancelled_timers([*id]);
            }
        }
        Ok(ids.len() as u32)
    }
}
