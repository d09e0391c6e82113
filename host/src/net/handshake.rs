//! What comes before the first payload: the handshakes of TLS and WebSocket, each within a time and a number of bytes.
//! A connection goes through here once; the sink hears of it only afterwards.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsStream};
use tokio_tungstenite::tungstenite::handshake::machine::TryParse;
use tokio_tungstenite::tungstenite::handshake::server::{Request, create_response, write_response};

use super::framing::Framing;
use super::stream::{Stream, read_chunk};
use super::{CloseReason, GateOptions};

/// The longest request for a WebSocket. Browsers send all their cookies along.
const MAX_REQUEST_BYTES: usize = 16 * 1024;

/// What TLS may hold back of what is written. The backlog of a connection counts what waits before that.
const TLS_BUFFER_BYTES: usize = 16 * 1024;

/// For who comes with something else than a request for a WebSocket, a browser's address bar for one.
const REFUSAL: &str = "HTTP/1.1 426 Upgrade Required\r\nconnection: close, upgrade\r\nupgrade: websocket\r\n\
                       sec-websocket-version: 13\r\ncontent-type: text/plain\r\ncontent-length: 40\r\n\r\n\
                       This port takes WebSocket clients alone\n";

/// A client that may begin to send payloads.
pub(super) struct Welcome {
    pub stream: Stream,
    /// What it sent right behind its handshake.
    pub early: Vec<u8>,
}

/// Goes through the handshakes that the port asks for, or says why they failed.
pub(super) async fn welcome(
    socket: TcpStream,
    framing: Framing,
    tls: Option<&TlsAcceptor>,
    options: &GateOptions,
) -> Result<Welcome, CloseReason> {
    if tls.is_none() && framing == Framing::Lengths {
        return Ok(Welcome { stream: Stream::Plain(socket), early: Vec::new() });
    }
    // On the heap: it is large, and gone in a moment.
    let handshakes = Box::pin(async {
        let mut stream = match tls {
            None => Stream::Plain(socket),
            Some(acceptor) => {
                let mut secured = acceptor.accept(socket).await.map_err(|error| reason_of(&error))?;
                secured.get_mut().1.set_buffer_limit(Some(TLS_BUFFER_BYTES));
                Stream::Tls(Box::new(TlsStream::Server(secured)))
            }
        };
        let early = match framing {
            Framing::Lengths => Vec::new(),
            Framing::WebSocket => upgrade(&mut stream).await?,
        };
        Ok(Welcome { stream, early })
    });
    timeout(options.handshake_timeout(), handshakes).await.unwrap_or(Err(CloseReason::Idle))
}

/// Why a connection ends at which reading or writing failed.
pub(super) fn reason_of(error: &io::Error) -> CloseReason {
    // So TLS says that what came is no TLS, or was changed on its way.
    if error.kind() == io::ErrorKind::InvalidData { CloseReason::Protocol } else { CloseReason::ConnectionLost }
}

/// Reads the request for a WebSocket and grants it, whatever path it names and wherever it comes from.
async fn upgrade(stream: &mut Stream) -> Result<Vec<u8>, CloseReason> {
    let mut request = Vec::new();
    let answer = loop {
        match Request::try_parse(&request) {
            Ok(None) if request.len() > MAX_REQUEST_BYTES => break Err(()),
            Ok(None) => {}
            Ok(Some((request_bytes, parsed))) => {
                break create_response(&parsed).map(|response| (request_bytes, response)).map_err(|_| ());
            }
            Err(_) => break Err(()),
        }
        match read_chunk(stream, |bytes| request.extend_from_slice(bytes)).await {
            Ok(0) if request.is_empty() => return Err(CloseReason::ClientLeft),
            Ok(0) => return Err(CloseReason::ConnectionLost),
            Ok(_) => {}
            Err(error) => return Err(reason_of(&error)),
        }
    };
    let Ok((request_bytes, response)) = answer else {
        // It is cut off either way.
        let _ = send(stream, REFUSAL.as_bytes()).await;
        let _ = stream.shutdown().await;
        return Err(CloseReason::Protocol);
    };
    let mut granted = Vec::new();
    write_response(&mut granted, &response).map_err(|_| CloseReason::Protocol)?;
    send(stream, &granted).await.map_err(|error| reason_of(&error))?;
    Ok(request.split_off(request_bytes))
}

async fn send(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let (head, body) = REFUSAL.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
    }
}
