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

/// The longest request for a WebSocket, with the blank line behind it. Browsers send all their cookies along.
const MAX_REQUEST_BYTES: usize = 16 * 1024;

/// What a request begins with. Who sends something else need not be heard to the end.
const METHOD: &[u8] = b"GET ";

/// What a request ends with.
const BLANK_LINE: &[u8] = b"\r\n\r\n";

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
    let end = read_request(stream, &mut request).await?;
    let granted = end.and_then(|end| grant(&request[..end]));
    let (Some(end), Some(granted)) = (end, granted) else {
        // It is cut off either way.
        let _ = send(stream, REFUSAL.as_bytes()).await;
        let _ = stream.shutdown().await;
        return Err(CloseReason::Protocol);
    };
    send(stream, &granted).await.map_err(|error| reason_of(&error))?;
    Ok(request.split_off(end))
}

/// Reads until a request is whole, and answers where it ends; none when it is longer than it may be, or none from its
/// beginning.
async fn read_request(stream: &mut Stream, request: &mut Vec<u8>) -> Result<Option<usize>, CloseReason> {
    // Each byte is looked at once, and what is read is parsed once, however small the pieces are in which it comes.
    let mut searched = 0;
    loop {
        let end = end_of_request(request, searched);
        let known = request.len().min(METHOD.len());
        if request[..known] != METHOD[..known] || end.unwrap_or(request.len()) > MAX_REQUEST_BYTES {
            return Ok(None);
        }
        if end.is_some() {
            return Ok(end);
        }
        searched = request.len();
        match read_chunk(stream, |bytes| request.extend_from_slice(bytes)).await {
            Ok(0) if request.is_empty() => return Err(CloseReason::ClientLeft),
            Ok(0) => return Err(CloseReason::ConnectionLost),
            Ok(_) => {}
            Err(error) => return Err(reason_of(&error)),
        }
    }
}

/// Where the first blank line ends, if none does before `searched`.
fn end_of_request(bytes: &[u8], searched: usize) -> Option<usize> {
    // It may have begun among those.
    let from = searched.saturating_sub(BLANK_LINE.len() - 1);
    let found = bytes[from..].windows(BLANK_LINE.len()).position(|window| window == BLANK_LINE)?;
    Some(from + found + BLANK_LINE.len())
}

/// What grants a request that is whole; none when it is not one for a WebSocket.
fn grant(request: &[u8]) -> Option<Vec<u8>> {
    let (bytes, parsed) = Request::try_parse(request).ok()??;
    // A blank line of other line ends would leave something between the request and what comes behind it.
    let response = create_response(&parsed).ok().filter(|_| bytes == request.len())?;
    let mut granted = Vec::new();
    write_response(&mut granted, &response).ok()?;
    Some(granted)
}

async fn send(stream: &mut Stream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_request_is_found_wherever_it_was_cut() {
        let request = b"GET / HTTP/1.1\r\nhost: here\r\n\r\nand\r\n\r\nmore";
        for cut in 0..request.len() {
            let first = end_of_request(&request[..cut], 0);
            let found = first.or_else(|| end_of_request(request, cut));
            assert_eq!(found, Some(30), "cut after {cut}");
        }
        assert_eq!(end_of_request(b"GET / HTTP/1.1\r\n\r", 0), None);
    }

    #[test]
    fn the_refusal_is_as_long_as_it_says() {
        let (head, body) = REFUSAL.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
    }
}
