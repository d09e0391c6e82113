//! A host for tests of the control port: it answers by rules that a test can see through, behind a real port on the
//! loopback interface.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{
    AdminOptions, BoundControlPort, ControlError, ControlPort, DataDir, HostControl, LostMessages, ServiceList,
};
use crate::guest::{Fate, Generation, Swapped};
use crate::service::{DeadLetter, MemberKind, ServiceEntry, ServicesSnapshot};
use crate::store::{Event, EventQuery, ListedEvent, Page};

/// A host with a status, with task 7, which can be cancelled once, with the services of [`members`], and with events.
#[derive(Default)]
pub(super) struct Host {
    pub cancelled: Mutex<bool>,
    /// Whether it never answers to what takes it time.
    pub hangs: bool,
    /// Handles of services that were killed.
    pub killed: Arc<Mutex<Vec<u64>>>,
    /// Pending events, in the order of their ids.
    pub events: Mutex<Vec<Event>>,
    /// What the list was asked for, one after another.
    pub queries: Arc<Mutex<Vec<EventQuery>>>,
    /// What the store says to a save and a backup; nothing where it does as it is told.
    pub broken: Option<String>,
    /// The backups that were made.
    pub backups: Arc<Mutex<Vec<PathBuf>>>,
}

impl Host {
    pub fn with_events(events: Vec<Event>) -> Self {
        Self { events: Mutex::new(events), ..Self::default() }
    }

    async fn hang(&self) {
        if self.hangs {
            std::future::pending::<()>().await;
        }
    }

    fn change<T>(&self, sequence: u64, change: impl FnOnce(&mut Vec<Event>, usize) -> T) -> Result<T, ControlError> {
        let mut events = self.events.lock().unwrap();
        let place = events.iter().position(|event| event.sequence == sequence);
        Ok(change(&mut events, place.ok_or(ControlError::NoSuchEvent { sequence })?))
    }
}

/// The service 70 with two names, and the game 71.
pub(super) fn members() -> Vec<ServiceEntry> {
    let service = ServiceEntry {
        handle: 70,
        guest: "chat".to_owned(),
        kind: MemberKind::Service,
        names: vec!["chat".to_owned(), "a/b c%20?ä".to_owned()],
        mailbox: 3,
        in_hand: 1,
        messages: 12,
        memory_bytes: 65_536,
        used_ms: 5,
    };
    let game = ServiceEntry {
        handle: 71,
        guest: "rules".to_owned(),
        kind: MemberKind::Game,
        names: vec!["rules".to_owned()],
        mailbox: 0,
        in_hand: 0,
        messages: 0,
        memory_bytes: 0,
        used_ms: 0,
    };
    vec![service, game]
}

pub(super) fn generation() -> Generation {
    Generation {
        number: 2,
        hash: "ab".repeat(32),
        bytes: 4096,
        file: "/guests/rules.wasm".into(),
        since_ms: 1_700_000_000_000,
        fate: Fate::Failed("a \"trap\"".to_owned()),
    }
}

pub(super) fn swapped(generation: u64) -> Swapped {
    let (guest, hash) = ("rules".to_owned(), "cd".repeat(32));
    Swapped {
        guest,
        generation,
        hash,
        took_ms: 80,
        compile_ms: 60,
        pause_us: 900,
        is_unchanged: false,
        notes: vec!["a note".to_owned()],
    }
}

impl HostControl for Host {
    async fn status(&self) -> Result<Value, ControlError> {
        self.hang().await;
        Ok(json!({"uptime_ms": 5, "loop": {"executed": 3}}))
    }

    async fn cancel_task(&self, task: u64) -> Result<(), ControlError> {
        let mut cancelled = self.cancelled.lock().unwrap();
        if task != 7 || std::mem::replace(&mut cancelled, true) {
            return Err(ControlError::NoSuchTask { task });
        }
        Ok(())
    }

    async fn services(&self) -> Result<ServiceList, ControlError> {
        self.hang().await;
        Ok(ServiceList { list: members(), services: ServicesSnapshot { running: 1, ..Default::default() } })
    }

    async fn dead_letters(&self) -> Result<LostMessages, ControlError> {
        let last = vec![DeadLetter { source: 0, to: 69, bytes: 5, reason: "there is no service 69".to_owned() }];
        Ok(LostMessages { count: 9, last })
    }

    async fn kill_service(&self, service: String) -> Result<u64, ControlError> {
        let is_meant = |entry: &ServiceEntry| entry.handle.to_string() == service || entry.names.contains(&service);
        match members().into_iter().find(is_meant) {
            Some(ServiceEntry { handle, kind: MemberKind::Service, .. }) => {
                self.killed.lock().unwrap().push(handle);
                Ok(handle)
            }
            Some(ServiceEntry { kind, .. }) => Err(ControlError::NotAService { service, kind }),
            None => Err(ControlError::NoSuchService { service }),
        }
    }

    async fn swap(&self, guest: String, file: PathBuf) -> Result<Swapped, ControlError> {
        self.hang().await;
        match &*guest {
            "rules" if file.ends_with("broken.wasm") => {
                Err(ControlError::SwapRefused { guest, reason: "the file is broken".to_owned() })
            }
            "rules" => Ok(swapped(3)),
            _ => Err(ControlError::NoSuchGuest { guest, known: "\"rules\"".to_owned() }),
        }
    }

    async fn swap_back(&self, guest: String) -> Result<Swapped, ControlError> {
        self.history(guest).await.map(|_| swapped(2))
    }

    async fn history(&self, guest: String) -> Result<Vec<Generation>, ControlError> {
        if guest == "rules" {
            Ok(vec![generation()])
        } else {
            Err(ControlError::NoSuchGuest { guest, known: String::new() })
        }
    }

    async fn events(&self, query: EventQuery) -> Result<Page<ListedEvent>, ControlError> {
        let events = self.events.lock().unwrap();
        let asked_for = |event: &&Event| {
            query.guest.as_ref().is_none_or(|guest| *guest == event.guest)
                && (event.parked || !query.parked_only)
                && query.after.is_none_or(|after| event.id() > after)
        };
        let mut asked = events.iter().filter(asked_for).map(|event| {
            let is_short = event.payload.len() <= query.longest_payload;
            let payload = if is_short { Arc::clone(&event.payload) } else { Arc::from([]) };
            ListedEvent { event: Event { payload, ..event.clone() }, payload_bytes: event.payload.len() }
        });
        let page = asked.by_ref().take(query.limit).collect();
        let is_last = asked.next().is_none();
        self.queries.lock().unwrap().push(query);
        Ok(Page { events: page, is_last })
    }

    async fn event(&self, sequence: u64) -> Result<Event, ControlError> {
        self.hang().await;
        self.change(sequence, |events, at| events[at].clone())
    }

    async fn cancel_event(&self, sequence: u64) -> Result<(), ControlError> {
        self.change(sequence, |events, at| drop(events.remove(at)))
    }

    async fn retry_event(&self, sequence: u64) -> Result<(), ControlError> {
        self.change(sequence, |events, at| match events[at].attempts {
            0 => Err(ControlError::NotFailed { sequence }),
            _ => {
                events[at] = events[at].retried(0);
                Ok(())
            }
        })?
    }

    async fn drop_event(&self, sequence: u64) -> Result<(), ControlError> {
        self.change(sequence, |events, at| match events[at].parked {
            false => Err(ControlError::NotParked { sequence }),
            true => {
                events.remove(at);
                Ok(())
            }
        })?
    }

    async fn save(&self) -> Result<(), ControlError> {
        self.hang().await;
        self.broken.clone().map_or(Ok(()), |reason| Err(ControlError::SaveFailed { reason }))
    }

    async fn backup(&self, file: PathBuf) -> Result<(), ControlError> {
        self.hang().await;
        if let Some(reason) = self.broken.clone() {
            return Err(ControlError::BackupRefused { reason });
        }
        self.backups.lock().unwrap().push(file);
        Ok(())
    }
}

pub(super) struct Running {
    pub root: tempfile::TempDir,
    pub data_dir: DataDir,
    pub port: ControlPort,
}

pub(super) async fn running(host: Host) -> Running {
    let root = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(root.path()).unwrap();
    let bound = BoundControlPort::bind(&AdminOptions::default()).await.unwrap();
    let port = bound.open(&data_dir, Arc::new(host)).unwrap();
    Running { root, data_dir, port }
}

/// Runs blocking client code while the port's runtime goes on.
pub(super) async fn asked<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> T {
    timeout(Duration::from_secs(30), spawn_blocking(ask)).await.expect("no answer within 30 s").unwrap()
}

/// Sends a request written by hand, and returns the status code and the body.
pub(super) async fn raw(address: SocketAddr, request: &str) -> (u16, String) {
    let request = request.replace('\n', "\r\n");
    asked(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        (status, body)
    })
    .await
}
