//! The same traffic between actors of native code: a tokio task with a mailbox each, answers by a channel of one. What
//! services cost beyond this is the guest's calls and the host's bookkeeping.

use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

struct Asked(oneshot::Sender<u64>);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads can be started")
}

fn answering() -> mpsc::Sender<Asked> {
    let (to, mut mailbox) = mpsc::channel::<Asked>(16_384);
    tokio::spawn(async move {
        while let Some(Asked(answer)) = mailbox.recv().await {
            let _ = answer.send(1);
        }
    });
    to
}

async fn ask(to: &mpsc::Sender<Asked>) {
    let (answer, answered) = oneshot::channel();
    let _ = to.send(Asked(answer)).await;
    let _ = answered.await;
}

/// Nanoseconds of one request after another.
pub fn round_trip_ns(requests: u32) -> f64 {
    runtime().block_on(async move {
        tokio::spawn(async move {
            let to = answering();
            let began = Instant::now();
            for _ in 0..requests {
                ask(&to).await;
            }
            began.elapsed().as_nanos() as f64 / f64::from(requests)
        })
        .await
        .expect("it does not panic")
    })
}

/// Thousands of requests in a second, 100 at a time.
pub fn in_flight_k(requests: u32) -> f64 {
    runtime().block_on(async move {
        let to = answering();
        let began = Instant::now();
        let askers: Vec<_> = (0..100)
            .map(|_| {
                let to = to.clone();
                tokio::spawn(async move {
                    for _ in 0..requests / 100 {
                        ask(&to).await;
                    }
                })
            })
            .collect();
        for asker in askers {
            let _ = asker.await;
        }
        f64::from(requests) / began.elapsed().as_secs_f64() / 1000.0
    })
}

/// Thousands of one-way messages in a second.
pub fn sends_k(messages: u32) -> f64 {
    runtime().block_on(async move {
        let (to, mut mailbox) = mpsc::channel::<u64>(16_384);
        let counting = tokio::spawn(async move {
            let mut sum = 0;
            while let Some(number) = mailbox.recv().await {
                sum += number;
            }
            sum
        });
        let began = Instant::now();
        tokio::spawn(async move {
            for number in 0..u64::from(messages) {
                let _ = to.send(number).await;
            }
        });
        let _ = counting.await;
        f64::from(messages) / began.elapsed().as_secs_f64() / 1000.0
    })
}
