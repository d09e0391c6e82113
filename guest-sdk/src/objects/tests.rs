use std::borrow::Cow;
use std::future::ready;

use super::*;
use crate::{Message, ObjectId, Refusal, Subject};

crate::remote! {
    /// Counts.
    trait Counter as CounterRef {
        /// Adds.
        fn add(&mut self, by: u64, times: u32) -> u64;
        fn name(&self) -> String;
        fn reset(&mut self);
        fn check(&self) -> Result<u64, Refusal>;
        fn add_twice(&mut self, counter: CounterRef) -> Result<u64, Refusal>;
    }
}

#[derive(Default)]
struct Sheep(u64);

impl Counter for Sheep {
    fn add(&mut self, by: u64, times: u32) -> u64 {
        self.0 += by * u64::from(times);
        self.0
    }

    fn name(&self) -> String {
        "sheep".into()
    }

    fn reset(&mut self) {
        self.0 = 0;
    }

    fn check(&self) -> Result<u64, Refusal> {
        if self.0 > 5 { refuse!("{} are too many", self.0) } else { Ok(self.0) }
    }

    fn add_twice(&mut self, counter: CounterRef) -> Result<u64, Refusal> {
        counter.add(1, 1)?;
        Ok(counter.add(1, 1)?)
    }
}

/// A service with that handle, in a thread of its own: objects are a thread's.
fn in_service(handle: u64, run: impl FnOnce() + Send + 'static) {
    let service = move || {
        actor::pretend(handle);
        run();
    };
    std::thread::spawn(service).join().unwrap();
}

/// What the service answers to a call that comes as a message.
fn sent(object: ObjectId, method: &str, arguments: &[u8]) -> Vec<u8> {
    let payload = [&[method.len() as u8], method.as_bytes(), arguments].concat();
    let (subject, payload) = (Subject::Object(object), Cow::Owned(payload));
    answer_call(&Message { source: 8, session: Some(1), subject, payload }).unwrap()
}

#[test]
fn a_services_own_object_is_called_without_a_message() {
    in_service(7, || {
        let counter = CounterRef::export(Sheep(0));
        assert_eq!(counter.add(2, 3), Ok(6));
        assert_eq!(counter.name(), Ok("sheep".into()));
        assert_eq!(counter.check(), Ok(Err(Refusal::new("6 are too many"))));
        assert_eq!(counter.reset(), Ok(()));
        assert_eq!(counter.check(), Ok(Ok(0)));
    });
}

#[test]
fn a_call_that_comes_as_a_message_is_answered_as_the_table_says() {
    in_service(7, || {
        CounterRef::export_as(3, Sheep(4));
        assert_eq!(sent(3, "add", &[2, 1]), [0, 6]);
        assert_eq!(sent(3, "name", &[]), b"\x00\x05sheep");
        assert_eq!(sent(3, "check", &[]), b"\x00\x01\x0E6 are too many", "a result like others");
        assert_eq!(sent(4, "add", &[2, 1]), [1]);
        assert_eq!(sent(3, "subtract", &[2]), [2]);
        assert_eq!(sent(3, "add", &[2]), [3], "an argument too few");
        assert_eq!(sent(3, "add", &[2, 1, 1]), [3], "an argument too many");
        let nothing = Message { source: 8, session: None, subject: Subject::Object(3), payload: Cow::Borrowed(&[]) };
        assert_eq!(answer_call(&nothing).unwrap(), [2], "no method's name");
    });
}

#[test]
fn other_messages_are_not_for_objects() {
    let message = Message { source: 8, session: None, subject: Subject::Plain, payload: Cow::Borrowed(b"hello") };
    assert_eq!(answer_call(&message), None);
}

#[test]
fn an_object_that_calls_itself_hears_that_it_is_busy() {
    in_service(7, || {
        let counter = CounterRef::export(Sheep(0));
        assert_eq!(counter.add_twice(counter), Ok(Err(ObjectError::Busy.into())));
        let other = CounterRef::export(Sheep(0));
        assert_eq!(counter.add_twice(other), Ok(Ok(2)));
    });
}

#[test]
fn an_object_that_its_service_is_at_work_on_is_busy() {
    in_service(7, || {
        let sheep = Rc::new(RefCell::new(Sheep(1)));
        let counter = CounterRef::export_shared(None, sheep.clone());
        let borrowed = sheep.borrow();
        assert_eq!(counter.name(), Ok("sheep".into()), "two may look");
        assert_eq!(counter.add(1, 1), Err(ObjectError::Busy));
        drop(borrowed);
        assert_eq!(counter.add(1, 1), Ok(2));
        assert_eq!(sheep.borrow().0, 2);
    });
}

#[test]
fn a_withdrawn_object_is_gone_and_its_number_is_not_given_to_another() {
    in_service(7, || {
        let first = CounterRef::export(Sheep(0));
        assert!(first.withdraw());
        assert!(!first.withdraw());
        let second = CounterRef::export(Sheep(0));
        assert_ne!(first, second);
        assert_eq!(first.name(), Err(ObjectError::Gone));
        assert!(!withdraw(Reference { service: 8, object: 2 }), "another service's");
        assert_eq!(second.name(), Ok("sheep".into()));
    });
}

#[test]
fn a_reference_travels_in_a_message_as_its_two_numbers() {
    let counter = CounterRef::from(Reference { service: 300, object: 2 });
    let bytes = postcard::to_allocvec(&("sheep", counter)).unwrap();
    assert_eq!(bytes, b"\x05sheep\xAC\x02\x02");
    assert_eq!(postcard::from_bytes::<(&str, CounterRef)>(&bytes).unwrap(), ("sheep", counter));
    assert_eq!(format!("{counter:?}"), "CounterRef(300/2)");
}

#[test]
fn an_awaited_call_of_ones_own_object_is_ready_at_once() {
    in_service(7, || {
        let counter = CounterRef::export(Sheep(0)).awaited();
        let mut call = std::pin::pin!(async { ready(counter.add(1, 1).await).await });
        let polled = call.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert_eq!(polled, std::task::Poll::Ready(Ok(1)));
    });
}

#[test]
fn an_answer_that_a_game_hears_is_read_with_its_type() {
    assert_eq!(answer::<u64>(Ok(vec![0, 6])), Ok(6));
    assert_eq!(answer::<u64>(Ok(vec![1])), Err(ObjectError::Gone));
    assert_eq!(answer::<u64>(Err(ServiceError::Gone("it was killed".into()))), Err(ObjectError::Gone));
    let full = ServiceError::MailboxFull(4);
    assert_eq!(answer::<u64>(Err(full.clone())), Err(ObjectError::Service(full)));
    assert!(matches!(answer::<u64>(Ok(vec![])), Err(ObjectError::Failed(_))));
    assert!(matches!(answer::<String>(Ok(vec![0, 6])), Err(ObjectError::Failed(_))));
}
