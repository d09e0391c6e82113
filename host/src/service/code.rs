//! From a service's file to code that can be instantiated. Which engine it is for is told by the file: async exports want
//! the concurrent one. Loading is slow, since it compiles.

use wasmparser::{ComponentType, Parser, Payload};
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, InstancePre, Linker, TypedFunc};

use super::engine::ServiceEngine;
use super::imports;
use super::state::ServiceState;
use crate::guest::component::{LoadError, inspect};
use crate::guest::contract::async_service::AsyncServicePre;
use crate::guest::contract::service::{Service, ServiceIndices};
use crate::guest::contract::sim::bulk::{Head, Refusal};
use crate::guest::encode::to_component;
use crate::guest::load::unfit;
use crate::guest::{GuestKind, GuestSettings};

/// The export by which a service takes many messages in a call.
const BULK_EXPORT: &str = "deliver";

/// The code of a service.
pub enum ServiceCode {
    /// Handles one message after another.
    Plain(PlainCode),
    /// Handles several at a time.
    Concurrent(AsyncServicePre<ServiceState>),
}

/// The code of a plain service, which may take many messages that want no answer in a call.
pub struct PlainCode {
    pre: InstancePre<ServiceState>,
    indices: ServiceIndices,
    deliver: Option<ComponentExportIndex>,
}

/// What a plain service exports.
pub struct PlainExports {
    pub service: Service,
    /// `deliver`, where it has it.
    pub deliver: Option<Deliver<'static>>,
}

type Deliver<'a> = TypedFunc<(&'a [Head], &'a [u8]), (Result<u32, Refusal>,)>;

impl PlainCode {
    fn new(pre: InstancePre<ServiceState>) -> wasmtime::Result<Self> {
        let deliver = pre.component().get_export_index(None, BULK_EXPORT);
        Ok(Self { indices: ServiceIndices::new(&pre)?, deliver, pre })
    }

    /// Makes an instance.
    pub async fn instantiate(&self, store: &mut Store<ServiceState>) -> wasmtime::Result<PlainExports> {
        let instance = self.pre.instantiate_async(&mut *store).await?;
        let service = self.indices.load(&mut *store, &instance)?;
        let deliver = self.deliver.as_ref().map(|index| instance.get_typed_func(&mut *store, index)).transpose()?;
        Ok(PlainExports { service, deliver })
    }
}

impl PlainExports {
    /// Calls `deliver`, which must be there.
    pub async fn deliver(
        &self,
        store: &mut Store<ServiceState>,
        heads: &[Head],
        payloads: &[u8],
    ) -> wasmtime::Result<Result<u32, Refusal>> {
        let Some(deliver) = &self.deliver else { wasmtime::bail!("it takes its messages one by one") };
        // SAFETY: the type is that which the function was found with, but for lifetimes.
        let deliver: Deliver<'_> = unsafe { TypedFunc::new_unchecked(*deliver.func()) };
        let (delivered,) = deliver.call_async(store, (heads, payloads)).await?;
        Ok(delivered)
    }
}

/// Loads the file of a service, as it is configured.
pub fn load(engine: &ServiceEngine, settings: &GuestSettings, bytes: &[u8]) -> Result<ServiceCode, LoadError> {
    let component = to_component(bytes)?;
    let is_concurrent = has_async_functions(&component);
    let wasmtime = if is_concurrent { engine.concurrent() } else { engine.plain() };
    let inspected = inspect(wasmtime, &component)?;
    let needs = inspected.facts.admit(GuestKind::Service, &settings.grants)?;
    let mut linker = Linker::new(wasmtime);
    imports::link(&mut linker, &needs, is_concurrent).map_err(unfit)?;
    let pre: InstancePre<ServiceState> = linker.instantiate_pre(&inspected.component).map_err(unfit)?;
    Ok(if is_concurrent {
        ServiceCode::Concurrent(AsyncServicePre::new(pre).map_err(unfit)?)
    } else {
        ServiceCode::Plain(PlainCode::new(pre).map_err(unfit)?)
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
