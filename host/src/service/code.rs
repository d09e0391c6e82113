//! From a service's file to code that can be instantiated. Which engine it is for is told by the file: async exports want
//! the concurrent one. Slow, since it compiles.

use wasmparser::{ComponentType, Parser, Payload};
use wasmtime::component::{InstancePre, Linker};

use super::engine::ServiceEngine;
use super::imports;
use super::state::ServiceState;
use crate::guest::component::{LoadError, inspect};
use crate::guest::contract::async_service::AsyncServicePre;
use crate::guest::contract::bulk_service::BulkServicePre;
use crate::guest::contract::service::ServicePre;
use crate::guest::encode::to_component;
use crate::guest::load::unfit;
use crate::guest::{GuestKind, GuestSettings};

/// The export by which a service takes many messages in a call.
const BULK_EXPORT: &str = "deliver";

/// The code of a service.
pub enum ServiceCode {
    /// Handles one message after another.
    Plain(ServicePre<ServiceState>),
    /// The same, and takes many that want no answer in a call.
    Bulk(BulkServicePre<ServiceState>),
    /// Handles several at a time.
    Concurrent(AsyncServicePre<ServiceState>),
}

/// Loads the file of a service, as it is configured.
pub fn load(engine: &ServiceEngine, settings: &GuestSettings, bytes: &[u8]) -> Result<ServiceCode, LoadError> {
    let component = to_component(bytes)?;
    let is_concurrent = has_async_functions(&component);
    let wasmtime = if is_concurrent { engine.concurrent() } else { engine.plain() };
    let inspected = inspect(wasmtime, &component)?;
    let needs = inspected.admit(GuestKind::Service, &settings.grants)?;
    let is_bulk = inspected.exports.iter().any(|export| export == BULK_EXPORT);
    let mut linker = Linker::new(wasmtime);
    imports::link(&mut linker, &needs, is_concurrent).map_err(unfit)?;
    let pre: InstancePre<ServiceState> = linker.instantiate_pre(&inspected.component).map_err(unfit)?;
    Ok(if is_concurrent {
        ServiceCode::Concurrent(AsyncServicePre::new(pre).map_err(unfit)?)
    } else if is_bulk {
        ServiceCode::Bulk(BulkServicePre::new(pre).map_err(unfit)?)
    } else {
        ServiceCode::Plain(ServicePre::new(pre).map_err(unfit)?)
    })
}

/// Whether a component has a function type that is async, which only the concurrent engine takes.
pub fn has_async_functions(component: &[u8]) -> bool {
    Parser::new(0).parse_all(component).any(|payload| match payload {
        Ok(Payload::ComponentTypeSection(types)) => {
            types.into_iter().any(|found| matches!(found, Ok(ComponentType::Func(function)) if function.async_))
        }
        _ => false,
    })
}
