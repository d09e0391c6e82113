//! The interface `gate`, for a service: packets leave at once.

use crate::guest::contract::sim::gate::{GateError, Host};
use crate::service::gate_port::PacketRefused;
use crate::service::handle::Handle;
use crate::service::state::ServiceState;

impl Host for ServiceState {
    fn send(&mut self, to: u64, packet: Vec<u8>) -> wasmtime::Result<Result<(), GateError>> {
        let Some(gate) = self.services.gate() else { return Ok(Err(GateError::Closed)) };
        Ok(gate.send(to, &packet).map_err(gate_error))
    }

    fn send_all(&mut self, to: Vec<u64>, packet: Vec<u8>) -> wasmtime::Result<Result<u32, GateError>> {
        let Some(gate) = self.services.gate() else { return Ok(Ok(0)) };
        let mut reached = 0;
        for connection in to {
            match gate.send(connection, &packet) {
                Ok(()) => reached += 1,
                Err(PacketRefused::Closed) => {}
                Err(too_large @ PacketRefused::TooLarge(_)) => return Ok(Err(gate_error(too_large))),
            }
        }
        Ok(Ok(reached))
    }

    fn close(&mut self, id: u64) -> wasmtime::Result<bool> {
        Ok(self.services.gate().is_some_and(|gate| gate.close(id)))
    }

    fn bind(&mut self, id: u64, to: u64) -> wasmtime::Result<Result<(), GateError>> {
        let Some(gate) = self.services.gate() else { return Ok(Err(GateError::Closed)) };
        let member = self.services.member(Handle(to)).filter(|member| member.takes_connections());
        let Some(member) = member else { return Ok(Err(GateError::NoSuchService)) };
        Ok(if gate.bind(id, &member) { Ok(()) } else { Err(GateError::Closed) })
    }
}

fn gate_error(refused: PacketRefused) -> GateError {
    match refused {
        PacketRefused::Closed => GateError::Closed,
        PacketRefused::TooLarge(limit) => GateError::TooLarge(limit as u32),
    }
}
