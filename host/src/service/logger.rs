//! The native service `logger`: whatever text it is sent becomes a line of the host's log, under the sender's name. It
//! answers requests with nothing.

use bytes::Bytes;
use tracing::Level;

use super::handle::Handle;
use super::native;
use super::services::Services;
use crate::clock::SharedClock;
use crate::guest::LogLines;

/// The name that it is registered under.
pub const NAME: &str = "logger";

/// Starts it.
pub fn start(services: &Services, max_lines_per_second: u32, clock: SharedClock) {
    let lines = LogLines::new(NAME, max_lines_per_second, clock);
    native::start(services, NAME, move |services, own_handle, message| {
        let text = String::from_utf8_lossy(&message.payload);
        lines.write(Level::INFO, &format!("{}: {text}", title(services, message.source)));
        if let Some(request) = message.request {
            services.answer(own_handle, request, Ok(Bytes::new()));
        }
    });
}

fn title(services: &Services, source: Handle) -> String {
    services.member(source).map_or_else(|| source.to_string(), |member| member.title())
}
