//! The bytes of one connection, plain or within TLS, for both ends: the gate's connections and the client. What is read
//! passes through one buffer for all connections of a thread, so that a quiet one holds none.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

/// As much as one read takes.
const CHUNK_BYTES: usize = 16 * 1024;

thread_local! {
    static CHUNK: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK_BYTES].into_boxed_slice());
}

/// Reads what is there, at most one chunk, and gives it to `take`. Answers its length: 0 at the end of the stream.
/// Dropped before it completes, it loses nothing.
pub(super) async fn read_chunk(from: &mut (impl AsyncRead + Unpin), mut take: impl FnMut(&[u8])) -> io::Result<usize> {
    poll_fn(|cx| {
        CHUNK.with_borrow_mut(|chunk| {
            let mut chunk = ReadBuf::new(chunk);
            ready!(Pin::new(&mut *from).poll_read(cx, &mut chunk))?;
            take(chunk.filled());
            Poll::Ready(Ok(chunk.filled().len()))
        })
    })
    .await
}

/// A connection's bytes.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    /// On the heap: it is large, and most streams are plain.
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Tls(stream) => match ready!(Pin::new(stream).poll_read(cx, into)) {
                // An end without TLS's word for it, which many clients leave out. Payloads say themselves where they
                // end, so that one which was cut short shows all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                read => Poll::Ready(read),
            },
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
