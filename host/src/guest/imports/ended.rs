//! How an import of services ends early: with an error that the guest is told, or with one that ends its call. One type
//! for both, so that `?` does for either.

use crate::guest::contract::sim::gate::GateError;
use crate::guest::contract::sim::services::ServiceError;
use crate::guest::contract::sim::shared::SharedError;

/// Why an import has not done what it was asked.
pub(super) enum Ended<E> {
    /// The guest is told.
    Told(E),
    /// Its call ends.
    Fatal(wasmtime::Error),
}

/// What the guest is told, where its call goes on.
pub(super) fn told<T, E>(result: Result<T, Ended<E>>) -> wasmtime::Result<Result<T, E>> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(Ended::Told(error)) => Ok(Err(error)),
        Err(Ended::Fatal(error)) => Err(error),
    }
}

impl<E> From<wasmtime::Error> for Ended<E> {
    fn from(error: wasmtime::Error) -> Self {
        Ended::Fatal(error)
    }
}

impl From<ServiceError> for Ended<ServiceError> {
    fn from(error: ServiceError) -> Self {
        Ended::Told(error)
    }
}

impl From<SharedError> for Ended<SharedError> {
    fn from(error: SharedError) -> Self {
        Ended::Told(error)
    }
}

impl From<GateError> for Ended<GateError> {
    fn from(error: GateError) -> Self {
        Ended::Told(error)
    }
}
