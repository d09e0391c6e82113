//! Makes a component of what a compiler made. The loader, `guest check` and `guest build` call it, so that all three
//! take the same files: a component as it is, and a core module that carries a `component-type` section, as
//! `wit-bindgen` writes it. It looks only at the file: whether the component fits the contract, and whether it may
//! import what it imports, is the loader's business.

use std::borrow::Cow;

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{BinaryReaderError, Chunk, Encoding, Parser, Payload};
use wit_component::ComponentEncoder;

const WASM_MAGIC: &[u8] = b"\0asm";

/// Why a file is not, and cannot be made, a component.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// There is nothing in it.
    #[error("the file is empty: build the guest again")]
    Empty,
    /// It does not begin as Wasm does.
    #[error("the file is not Wasm: a guest is a .wasm file, made with `wheelhouse guest build`")]
    NotWasm,
    /// It ends in the middle of something.
    #[error("the file is cut off after {length} bytes: build or copy the guest again")]
    Truncated {
        /// How long the file is.
        length: usize,
    },
    /// It begins as Wasm does, but what follows makes no sense.
    #[error("the file is broken at byte {offset}: {message}; build or copy the guest again")]
    Broken {
        /// Where in the file.
        offset: usize,
        /// What is wrong there.
        message: String,
    },
    /// A core module that does not say which world it implements.
    #[error(
        "the file is a core module without a `component-type` section, so nothing tells its world: \
         build it with the wheelhouse-guest crate, or with wit-bindgen from the WIT package wheelhouse:sim"
    )]
    NoComponentType,
    /// A core module that does not do what its `component-type` section says.
    #[error("the core module does not fit its `component-type` section: {message}")]
    Unfit {
        /// What does not fit.
        message: String,
    },
}

/// Returns the component in `bytes`: themselves where they are one, else the core module in them encoded as one.
pub fn to_component(bytes: &[u8]) -> Result<Cow<'_, [u8]>, EncodeError> {
    if bytes.is_empty() {
        return Err(EncodeError::Empty);
    }
    let known = &bytes[..bytes.len().min(WASM_MAGIC.len())];
    if !WASM_MAGIC.starts_with(known) {
        return Err(EncodeError::NotWasm);
    }
    match look_through(bytes)? {
        Found::Component => Ok(Cow::Borrowed(bytes)),
        Found::Module { has_component_type: false, .. } => Err(EncodeError::NoComponentType),
        Found::Module { wants_preview1, .. } => encode(bytes, wants_preview1).map(Cow::Owned),
    }
}

/// What a file holds.
enum Found {
    Component,
    Module { has_component_type: bool, wants_preview1: bool },
}

/// Reads the whole file once, section by section, so that one that is cut off is found out here.
fn look_through(bytes: &[u8]) -> Result<Found, EncodeError> {
    let mut is_component = false;
    let (mut has_component_type, mut wants_preview1) = (false, false);
    let mut parser = Parser::new(0);
    let mut outer_parsers = Vec::new();
    let mut rest = bytes;
    loop {
        let payload = match parser.parse(rest, rest.is_empty()).map_err(|error| broken(bytes, &error))? {
            Chunk::NeedMoreData(_) => return Err(EncodeError::Truncated { length: bytes.len() }),
            Chunk::Parsed { consumed, payload } => {
                rest = &rest[consumed..];
                payload
            }
        };
        match payload {
            Payload::Version { encoding, .. } if outer_parsers.is_empty() => {
                is_component = encoding == Encoding::Component;
            }
            Payload::ModuleSection { parser: inner, .. } | Payload::ComponentSection { parser: inner, .. } => {
                outer_parsers.push(std::mem::replace(&mut parser, inner));
            }
            Payload::CustomSection(section) => has_component_type |= section.name().starts_with("component-type"),
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(|error| broken(bytes, &error))?;
                    wants_preview1 |= import.module == WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
                }
            }
            Payload::End(_) => match outer_parsers.pop() {
                Some(outer) => parser = outer,
                None => break,
            },
            _ => {}
        }
    }
    Ok(if is_component { Found::Component } else { Found::Module { has_component_type, wants_preview1 } })
}

fn broken(bytes: &[u8], error: &BinaryReaderError) -> EncodeError {
    // At the end of the file there is nothing to be wrong but that it ends.
    if error.offset() >= bytes.len() {
        return EncodeError::Truncated { length: bytes.len() };
    }
    EncodeError::Broken { offset: error.offset(), message: error.message().to_owned() }
}

fn encode(module: &[u8], wants_preview1: bool) -> Result<Vec<u8>, EncodeError> {
    let encoded = ComponentEncoder::default().validate(true).module(module).and_then(|encoder| {
        let mut encoder = if wants_preview1 {
            encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?
        } else {
            encoder
        };
        encoder.encode()
    });
    encoded.map_err(|error| EncodeError::Unfit { message: one_line(&format!("{error:#}")) })
}

/// A message of several lines, as those of wasmtime and its tools are, on one.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
