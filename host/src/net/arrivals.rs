//! How often clients may come from one address: a token bucket for each. Who comes too soon waits at the door, unread,
//! until it is its turn, and where too many wait already is turned away at once. So an address that connects without end
//! costs the others next to nothing. The gate's acceptor asks it for each client.

use std::future::poll_fn;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;
use tokio_util::time::DelayQueue;

/// After a quieter time so many seconds' worth may come at once.
const BURST_S: f64 = 5.0;

/// Nobody waits longer at the door.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Addresses that are known before the first look for those that have long been quiet.
const FEW_ADDRESSES: usize = 4096;

/// Those at the door, and how often their addresses may come.
pub(super) struct Arrivals<A> {
    per_second: f64,
    addresses: FxHashMap<IpAddr, Bucket>,
    waiting: DelayQueue<A>,
    max_waiting: usize,
    /// So many addresses make it look for those that may be forgotten.
    look_at: usize,
}

struct Bucket {
    /// Below zero while clients wait.
    tokens: f64,
    filled_at: Instant,
}

/// What becomes of a client that has come.
#[derive(Debug, PartialEq)]
pub(super) enum Turn<A> {
    /// It comes in.
    Now(A),
    /// It waits at the door.
    Later,
    /// It is turned away.
    Never,
}

impl<A> Arrivals<A> {
    /// So many may come from one address in a second, and so many may wait in all.
    pub fn new(per_second: u32, max_waiting: usize) -> Self {
        let waiting = DelayQueue::new();
        let per_second = f64::from(per_second);
        Self { per_second, addresses: FxHashMap::default(), waiting, max_waiting, look_at: FEW_ADDRESSES }
    }

    /// A client has come from an address.
    pub fn come(&mut self, from: IpAddr, arrival: A, now: Instant) -> Turn<A> {
        self.forget_the_quiet(now);
        let full = self.per_second * BURST_S;
        let bucket = self.addresses.entry(group(from)).or_insert(Bucket { tokens: full, filled_at: now });
        bucket.fill(self.per_second, now);
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return Turn::Now(arrival);
        }
        let wait = Duration::from_secs_f64((1.0 - bucket.tokens) / self.per_second);
        if wait > LONGEST_WAIT || self.waiting.len() >= self.max_waiting {
            return Turn::Never;
        }
        bucket.tokens -= 1.0;
        self.waiting.insert(arrival, wait);
        Turn::Later
    }

    /// Waits for the next whose turn it is; never ends while nobody waits.
    pub async fn next(&mut self) -> A {
        match poll_fn(|context| self.waiting.poll_expired(context)).await {
            Some(expired) => expired.into_inner(),
            None => std::future::pending().await,
        }
    }

    fn forget_the_quiet(&mut self, now: Instant) {
        if self.addresses.len() < self.look_at {
            return;
        }
        let (per_second, full) = (self.per_second, self.per_second * BURST_S);
        self.addresses.retain(|_, bucket| {
            bucket.fill(per_second, now);
            bucket.tokens < full
        });
        self.look_at = (self.addresses.len() * 2).max(FEW_ADDRESSES);
    }
}

impl Bucket {
    fn fill(&mut self, per_second: f64, now: Instant) {
        let filled = now.saturating_duration_since(self.filled_at).as_secs_f64() * per_second;
        self.tokens = (self.tokens + filled).min(per_second * BURST_S);
        self.filled_at = now;
    }
}

/// Whoever has an address of the newer kind has all that begin with the same 64 bits.
fn group(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => IpAddr::V4(address),
            None => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn count(arrivals: &mut Arrivals<u32>, from: IpAddr, comers: u32) -> [usize; 3] {
        let mut counts = [0; 3];
        for number in 0..comers {
            match arrivals.come(from, number, Instant::now()) {
                Turn::Now(_) => counts[0] += 1,
                Turn::Later => counts[1] += 1,
                Turn::Never => counts[2] += 1,
            }
        }
        counts
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_in_a_hurry_waits_and_is_turned_away_and_another_notices_nothing() {
        let mut arrivals = Arrivals::new(10, 1000);
        assert_eq!(count(&mut arrivals, ONE, 200), [50, 50, 100]);
        assert_eq!(count(&mut arrivals, OTHER, 1), [1, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_come_in_in_order_at_the_rate() {
        let mut arrivals = Arrivals::new(10, 1000);
        count(&mut arrivals, ONE, 50);
        let began = Instant::now();
        assert_eq!(arrivals.come(ONE, 100, began), Turn::Later);
        assert_eq!(arrivals.come(ONE, 101, began), Turn::Later);
        assert_eq!((arrivals.next().await, arrivals.next().await), (100, 101));
        let waited = began.elapsed().as_millis();
        assert!((200..=203).contains(&waited), "{waited} ms");
        assert_eq!(count(&mut arrivals, ONE, 1), [0, 1, 0], "nothing has piled up meanwhile");
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_wait_in_all_than_may() {
        let mut arrivals = Arrivals::new(10, 3);
        assert_eq!(count(&mut arrivals, ONE, 60), [50, 3, 7]);
        assert_eq!(count(&mut arrivals, OTHER, 60), [50, 0, 10]);
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_that_have_long_been_quiet_are_forgotten() {
        let mut arrivals = Arrivals::new(10, 3);
        for number in 0..100_000_u32 {
            arrivals.come(IpAddr::V4(std::net::Ipv4Addr::from(number)), number, Instant::now());
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(arrivals.addresses.len() <= 2 * FEW_ADDRESSES);
    }

    #[test]
    fn addresses_of_one_network_of_the_newer_kind_are_one() {
        let parse = |address: &str| group(address.parse().unwrap());
        assert_eq!(parse("2001:db8:1:2:3::4"), parse("2001:db8:1:2::5"));
        assert_ne!(parse("2001:db8:1:2::4"), parse("2001:db8:1:3::4"));
        assert_eq!(parse("::ffff:10.0.0.1"), ONE);
    }
}
