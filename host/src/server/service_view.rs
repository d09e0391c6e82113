//! What the loop's guests see of services and connections while a handler runs: a look at what is there now, without
//! waiting and without changing anything.

use crate::guest::ServiceView;
use crate::guest::shared_reads::SharedBlob;
use crate::net::Connections;
use crate::service::shared_data::SharedError;
use crate::service::{Handle, MemberKind, ServiceError, Services};

/// The view.
pub struct PresentServices {
    pub services: Services,
    pub connections: Connections,
}

impl ServiceView for PresentServices {
    fn is_there(&self, handle: u64) -> bool {
        self.services.member(Handle(handle)).is_some()
    }

    fn is_service(&self, handle: u64) -> bool {
        self.services.member(Handle(handle)).is_some_and(|member| member.kind == MemberKind::Service)
    }

    fn takes_connections(&self, handle: u64) -> bool {
        self.services.member(Handle(handle)).is_some_and(|member| member.takes_connections())
    }

    fn check_receiver(&self, to: u64) -> Result<(), ServiceError> {
        self.services.check_receiver(Handle(to))
    }

    fn has_guest(&self, guest: &str) -> bool {
        self.services.has_guest(guest)
    }

    fn query(&self, name: &str) -> Option<u64> {
        self.services.query(name).map(|handle| handle.0)
    }

    fn check_publication(&self, channel: &str, bytes: usize) -> Result<(), ServiceError> {
        self.services.check_publication(channel, bytes)
    }

    fn subscribers(&self, channel: &str) -> u32 {
        self.services.subscribers(channel)
    }

    fn blob(&self, name: &str) -> Option<SharedBlob> {
        self.services.data().get(name).map(|blob| (blob.version, blob.bytes))
    }

    fn check_blob(&self, name: &str, bytes: usize) -> Result<(), SharedError> {
        self.services.data().check(name, bytes)
    }

    fn max_shared_bytes(&self) -> usize {
        self.services.data().max_bytes()
    }

    fn is_open(&self, connection: u64) -> bool {
        self.connections.is_open(connection)
    }

    fn new_handle(&self) -> u64 {
        self.services.new_handle().0
    }

    fn new_session(&self) -> u64 {
        self.services.new_session()
    }

    fn new_subscription(&self) -> u64 {
        self.services.new_number()
    }

    fn max_waiting(&self) -> u32 {
        self.services.options().max_waiting
    }
}
