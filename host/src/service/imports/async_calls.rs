//! The interface `async-calls`: a handler waits, and its service takes the next message meanwhile.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::component::Accessor;

use super::{OfService, invocation, sleep};
use crate::guest::contract::sim::async_calls;
use crate::guest::contract::sim::services::Reference;
use crate::service::message::{ServiceError, Subject};
use crate::service::state::ServiceState;

type Answered = wasmtime::Result<Result<Vec<u8>, ServiceError>>;

impl async_calls::Host for ServiceState {}

impl async_calls::HostWithStore<ServiceState> for OfService {
    async fn call(
        accessor: &Accessor<ServiceState, Self>,
        to: u64,
        payload: Vec<u8>,
        limit_ms: Option<u32>,
    ) -> Answered {
        wait_for(accessor, to, Subject::Plain, Ok(Bytes::from(payload)), limit_ms).await
    }

    async fn invoke(
        accessor: &Accessor<ServiceState, Self>,
        to: Reference,
        method: String,
        arguments: Vec<u8>,
        limit_ms: Option<u32>,
    ) -> Answered {
        let payload = invocation(&method, &arguments);
        wait_for(accessor, to.service, Subject::Object(to.object), payload, limit_ms).await
    }

    async fn sleep(accessor: &Accessor<ServiceState, Self>, duration_ms: u32) -> wasmtime::Result<()> {
        if duration_ms > 0 {
            let member = accessor.with(|mut access| Arc::clone(&access.get().member));
            sleep(&member, duration_ms).await;
            return Ok(());
        }
        match accessor.with(|mut access| access.get().until_mailbox_is_taken_up()) {
            // Where there is to be no turn the other end is dropped.
            Some(taken_up) => drop(taken_up.await),
            None => tokio::task::yield_now().await,
        }
        Ok(())
    }
}

async fn wait_for(
    accessor: &Accessor<ServiceState, OfService>,
    to: u64,
    subject: Subject,
    payload: Result<Bytes, ServiceError>,
    limit_ms: Option<u32>,
) -> Answered {
    let call =
        payload.and_then(|payload| accessor.with(|mut access| access.get().begin_call(to, subject, payload, limit_ms)));
    let call = match call {
        Ok(call) => call,
        Err(error) => return Ok(Err(error)),
    };
    Ok(call.wait().await.map(Vec::from))
}
