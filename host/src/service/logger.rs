//! The native service `logger`: whatever text it is sent becomes a line of the host's log, under the sender's name. It
//! answers requests with nothing.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use tracing::Level;

use super::handle::Handle;
use super::member::{Member, MemberKind};
use super::services::Services;
use crate::clock::SharedClock;
use crate::guest::LogLines;

/// The name that it is registered under.
pub const NAME: &str = "logger";

/// Messages taken out of the mailbox at a time.
const BATCH: usize = 64;

/// Starts it. It lives as long as the runtime of the services.
pub fn start(services: &Services, max_lines_per_second: u32, clock: SharedClock) {
    let member = services.add_member(MemberKind::Native, NAME);
    let lines = LogLines::new(NAME, max_lines_per_second, clock);
    services.runtime().spawn(write(services.clone(), member, lines));
}

async fn write(services: Services, member: Arc<Member>, lines: LogLines) {
    let mut messages = VecDeque::new();
    loop {
        poll_fn(|context| member.mailbox.poll_take(context, &mut messages, BATCH)).await;
        for message in messages.drain(..) {
            let text = String::from_utf8_lossy(&message.payload);
            lines.write(Level::INFO, &format!("{}: {text}", title(&services, message.source)));
            member.handled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if let Some(request) = message.request {
                request.answer(Ok(Bytes::new()));
            }
        }
        tokio::task::yield_now().await;
    }
}

fn title(services: &Services, source: Handle) -> String {
    services.member(source).map_or_else(|| source.to_string(), |member| member.title())
}
