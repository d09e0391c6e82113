use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::service::handle::Handle;
use crate::service::message::Subject;

fn message(number: u64) -> Message {
    Message::new(Handle(1), Subject::Timeout(number), Bytes::new())
}

fn number(message: &Message) -> u64 {
    match message.subject {
        Subject::Timeout(number) => number,
        _ => unreachable!("only such messages are sent here"),
    }
}

fn take(mailbox: &Mailbox, limit: usize) -> Vec<u64> {
    let mut taken = VecDeque::new();
    let _ = mailbox.poll_take(&mut Context::from_waker(Waker::noop()), &mut taken, limit);
    taken.iter().map(number).collect()
}

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_reader_that_waits_is_woken_once_and_not_again_until_it_waits_again() {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let (mailbox, mut taken) = (Mailbox::new(10, usize::MAX), VecDeque::new());
    assert!(mailbox.poll_take(&mut Context::from_waker(&waker), &mut taken, 10).is_pending());
    mailbox.push(message(1)).unwrap();
    mailbox.push(message(2)).unwrap();
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    assert_eq!(mailbox.poll_take(&mut Context::from_waker(&waker), &mut taken, 10), Poll::Ready(2));
    mailbox.push(message(3)).unwrap();
    assert_eq!(bell.0.load(Ordering::Relaxed), 1, "nobody waits");
}

#[test]
fn a_mailbox_gives_the_memory_of_a_burst_back_once_it_is_empty() {
    let mailbox = Mailbox::new(100_000, usize::MAX);
    (0..10_000).for_each(|number| assert!(mailbox.push(message(number)).is_ok()));
    assert!(take(&mailbox, 9_999).len() == 9_999 && mailbox.lock().queue.capacity() >= 10_000);
    assert_eq!(take(&mailbox, 10), [9_999]);
    assert!(mailbox.lock().queue.capacity() <= 2 * KEPT);
}

#[test]
fn what_is_left_at_the_end_comes_back_and_nothing_is_taken_in_any_more() {
    let mailbox = Mailbox::new(10, usize::MAX);
    mailbox.push(message(1)).unwrap();
    assert_eq!(mailbox.close().iter().map(number).collect::<Vec<_>>(), [1]);
    assert!(matches!(mailbox.push(message(2)), Err(Refused::Closed(back)) if number(&back) == 2));
    assert!(matches!(mailbox.push_always(message(3)), Err(Refused::Closed(_))));
    let mut taken = VecDeque::new();
    assert_eq!(mailbox.poll_take(&mut Context::from_waker(Waker::noop()), &mut taken, 1), Poll::Ready(0));
}

#[test]
fn what_the_reader_asked_for_itself_is_taken_in_beyond_the_limit() {
    let mailbox = Mailbox::new(1, usize::MAX);
    mailbox.push(message(1)).unwrap();
    assert!(matches!(mailbox.push(message(2)), Err(Refused::Full(_))));
    mailbox.push_always(message(3)).unwrap();
    assert_eq!(take(&mailbox, 10), [1, 3]);
}

#[test]
fn overload_is_told_at_each_doubling_and_anew_once_the_mailbox_was_empty() {
    let mailbox = Mailbox::new(100_000, usize::MAX);
    let push_all = |count: u64| -> Vec<usize> {
        (0..count).filter_map(|number| mailbox.push(message(number)).unwrap().overload).collect()
    };
    assert_eq!(push_all(5000), [1024, 2048, 4096]);
    take(&mailbox, 4000);
    assert_eq!(push_all(5000), [] as [usize; 0], "it is not twice as long as it was");
    take(&mailbox, 100_000);
    assert_eq!(push_all(1024), [1024]);
}

#[test]
fn who_waits_for_room_goes_on_when_there_is_some_or_none_will_be() {
    let mailbox = Mailbox::new(1, usize::MAX);
    mailbox.push(message(1)).unwrap();
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut context = Context::from_waker(&waker);
    let mut waiting = pin!(mailbox.push_when_there_is_room(message(2)));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    assert_eq!(take(&mailbox, 1), [1]);
    assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    assert!(matches!(waiting.as_mut().poll(&mut context), Poll::Ready(Ok(_))));

    let mut waiting = pin!(mailbox.push_when_there_is_room(message(3)));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    mailbox.close();
    assert!(matches!(waiting.as_mut().poll(&mut context), Poll::Ready(Err(back)) if number(&back) == 3));
    assert_eq!(mailbox.lock().waiting_for_room, 0);
}

#[test]
fn payloads_together_are_bounded_and_one_is_taken_however_long() {
    let mailbox = Mailbox::new(10, 100);
    let sized = |bytes: usize| Message::new(Handle(1), Subject::Plain, Bytes::from(vec![0; bytes]));
    mailbox.push(sized(500)).unwrap();
    assert!(matches!(mailbox.push(sized(1)), Err(Refused::Full(_))));
    let mut taken = VecDeque::new();
    let _ = mailbox.poll_take(&mut Context::from_waker(Waker::noop()), &mut taken, 10);
    mailbox.push(sized(60)).unwrap();
    assert!(matches!(mailbox.push(sized(41)), Err(Refused::Full(_))));
    mailbox.push(sized(40)).unwrap();
    assert_eq!(mailbox.lock().bytes, 100);
    mailbox.close();
    assert_eq!(mailbox.lock().bytes, 0);
}

proptest! {
    /// A mailbox against a plain list: what goes in comes out in order, within the limit, until it is closed.
    #[test]
    fn a_mailbox_is_a_bounded_queue(
        capacity in 1usize..8,
        steps in proptest::collection::vec(prop_oneof![
            6 => Just(None),
            4 => (0usize..6).prop_map(|limit| Some(Some(limit))),
            1 => Just(Some(None)),
        ], 1..200),
    ) {
        let mailbox = Mailbox::new(capacity, usize::MAX);
        let mut model: Option<VecDeque<u64>> = Some(VecDeque::new());
        for (at, step) in steps.into_iter().enumerate() {
            let at = at as u64;
            match (step, &mut model) {
                (None, Some(queue)) if queue.len() < capacity => {
                    prop_assert!(mailbox.push(message(at)).is_ok());
                    queue.push_back(at);
                }
                (None, Some(_)) => prop_assert!(matches!(mailbox.push(message(at)), Err(Refused::Full(_)))),
                (None, None) => prop_assert!(matches!(mailbox.push(message(at)), Err(Refused::Closed(_)))),
                (Some(Some(limit)), Some(queue)) => {
                    let expected: Vec<u64> = queue.drain(..limit.min(queue.len())).collect();
                    prop_assert_eq!(take(&mailbox, limit), expected);
                }
                (Some(Some(limit)), None) => prop_assert_eq!(take(&mailbox, limit), Vec::<u64>::new()),
                (Some(None), _) => {
                    let left: Vec<u64> = mailbox.close().iter().map(number).collect();
                    prop_assert_eq!(left, model.take().map_or(Vec::new(), Vec::from));
                }
            }
            let length = model.as_ref().map_or(0, VecDeque::len);
            prop_assert_eq!(mailbox.lengths().0, length);
        }
    }
}
