//! placeholder
use std::sync::Arc;
use bytes::Bytes;
use super::{Member, Services};
use crate::guest::contract::sim::sockets::SocketError;
pub struct Sockets;
impl Sockets {
    pub fn new(_: &Services, _: &Arc<Member>, _: &[String]) -> Self { Sockets }
    pub fn connect(&mut self, host: &str, port: u16) -> Result<u64, SocketError> { Err(SocketError::NotGranted(format!("{host}:{port}"))) }
    pub fn send(&mut self, _: u64, _: Bytes) -> Result<(), SocketError> { Err(SocketError::Closed) }
    pub fn close(&mut self, _: u64) -> bool { false }
}
