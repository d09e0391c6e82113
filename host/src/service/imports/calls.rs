//! The interface `calls`: a plain service waits, and its own mailbox with it.

use bytes::Bytes;

use super::{invocation, sleep};
use crate::guest::contract::sim::calls;
use crate::guest::contract::sim::services::Reference;
use crate::service::message::{ServiceError, Subject};
use crate::service::state::ServiceState;

type Answered = wasmtime::Result<Result<Vec<u8>, ServiceError>>;

impl calls::Host for ServiceState {
    async fn call(&mut self, to: u64, payload: Vec<u8>, limit_ms: Option<u32>) -> Answered {
        self.wait_for(to, Subject::Plain, Ok(Bytes::from(payload)), limit_ms).await
    }

    async fn invoke(&mut self, to: Reference, method: String, arguments: Vec<u8>, limit_ms: Option<u32>) -> Answered {
        let payload = invocation(&method, &arguments);
        self.wait_for(to.service, Subject::Object(to.object), payload, limit_ms).await
    }

    async fn sleep(&mut self, duration_ms: u32) -> wasmtime::Result<()> {
        match duration_ms {
            0 => tokio::task::yield_now().await,
            ms => sleep(&self.member, ms).await,
        }
        Ok(())
    }
}

impl ServiceState {
    async fn wait_for(
        &mut self,
        to: u64,
        subject: Subject,
        payload: Result<Bytes, ServiceError>,
        limit_ms: Option<u32>,
    ) -> Answered {
        let call = match payload.and_then(|payload| self.begin_call(to, subject, payload, limit_ms)) {
            Ok(call) => call,
            Err(error) => return Ok(Err(error)),
        };
        Ok(call.wait().await.map(Vec::from))
    }
}
