//! A native service: a part of the host that is a member like any other. It takes its messages out of its mailbox here, one
//! after another, and what it does with them is its own file's business.

use std::collections::VecDeque;
use std::future::poll_fn;

use super::handle::Handle;
use super::member::MemberKind;
use super::message::Message;
use super::services::Services;

/// Messages taken out of the mailbox at a time.
const BATCH: usize = 64;

/// Starts one under a name. `handle` is given its own handle and each message. It lives as long as the runtime of the
/// services.
pub(super) fn start(
    services: &Services,
    name: &str,
    mut handle: impl FnMut(&Services, Handle, Message) + Send + 'static,
) {
    let member = services.add_member(MemberKind::Native, name);
    let of_task = services.clone();
    services.runtime().spawn(async move {
        let mut messages = VecDeque::new();
        loop {
            poll_fn(|context| member.mailbox.poll_take(context, &mut messages, BATCH)).await;
            for message in messages.drain(..) {
                handle(&of_task, member.handle, message);
                member.count_handled(1);
            }
            tokio::task::yield_now().await;
        }
    });
}
