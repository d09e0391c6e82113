//! The interface `sockets`: connections to other hosts, as far as the guest's entry in the configuration grants them.

use crate::guest::contract::sim::sockets::{Host, SocketError};
use crate::service::sockets::Sockets;
use crate::service::state::ServiceState;

impl Host for ServiceState {
    fn connect(&mut self, host: String, port: u16) -> wasmtime::Result<Result<u64, SocketError>> {
        let Self { services, member, guest, sockets, .. } = self;
        let sockets = sockets.get_or_insert_with(|| Box::new(Sockets::new(services, member, &guest.sockets)));
        Ok(sockets.connect(&host, port))
    }

    fn send(&mut self, socket: u64, bytes: Vec<u8>) -> wasmtime::Result<Result<(), SocketError>> {
        Ok(match &mut self.sockets {
            Some(sockets) => sockets.send(socket, bytes.into()),
            None => Err(SocketError::Closed),
        })
    }

    fn close(&mut self, socket: u64) -> wasmtime::Result<bool> {
        Ok(self.sockets.as_mut().is_some_and(|sockets| sockets.close(socket)))
    }
}
