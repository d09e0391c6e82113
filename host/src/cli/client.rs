//! `wheelhouse client`: lines from standard input go to a gate as frames, frames come to standard output as lines, so that
//! one can try a world by hand, or in a pipe.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::report;
use crate::net::{Client, ClientError, ClientReceiver, ClientSender, Door, Trust};

/// How long connecting may take, with all handshakes.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long saying good-bye may take.
const FAREWELL_LIMIT: Duration = Duration::from_secs(1);

/// Lines that were read and wait to be sent.
const MAX_WAITING_LINES: usize = 64;

/// What `wheelhouse client` is asked.
#[derive(Args, Debug)]
pub struct ClientArgs {
    /// The gate, as HOST:PORT
    #[arg(value_name = "ADDR")]
    pub address: String,

    /// Speak WebSocket: a line is a binary message
    #[arg(long)]
    pub websocket: bool,

    /// Speak TLS, which takes one of the next two as well
    #[arg(long, requires = "trust")]
    pub tls: bool,

    /// Speak TLS with a gate that these certificates, in PEM, vouch for
    #[arg(long, value_name = "FILE", group = "trust")]
    pub tls_ca: Option<PathBuf>,

    /// Speak TLS with whoever answers
    #[arg(long, group = "trust")]
    pub tls_insecure: bool,

    /// After the last line, end when nothing has come for so long, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500)]
    pub linger_ms: u64,
}

/// Talks to the gate until the input ends and the answers cease.
pub fn run(args: ClientArgs) -> anyhow::Result<()> {
    let tls = match &args.tls_ca {
        Some(file) => Some(Trust::authorities(file)?),
        None => args.tls_insecure.then(Trust::anyone),
    };
    let door = Door { tls, websocket: args.websocket };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let talked = runtime.block_on(talk(&args, &door, &runtime));
    // The thread that reads the terminal may wait for a line that nobody will type.
    runtime.shutdown_background();
    talked
}

async fn talk(args: &ClientArgs, door: &Door, runtime: &Runtime) -> anyhow::Result<()> {
    let connecting = timeout(CONNECT_LIMIT, Client::connect_by(door, &args.address));
    let client = match connecting.await {
        Ok(connected) => connected.with_context(|| {
            format!("cannot connect to {}, where a gate should listen; is it the right port and door?", args.address)
        })?,
        Err(_) => bail!("cannot connect to {} within {} s", args.address, CONNECT_LIMIT.as_secs()),
    };
    let (sender, mut receiver) = client.into_split();
    let linger = Duration::from_millis(args.linger_ms);
    let mut sending = runtime.spawn(send_lines(sender, read_lines()));
    let sender = loop {
        tokio::select! {
            sent = &mut sending => break sent.context("sending failed")??,
            received = receiver.receive() => {
                if show(received)? == Shown::TheEnd {
                    return end_of_input(&mut sending, linger, &args.address).await;
                }
            }
        }
    };
    if listen_on(&mut receiver, linger).await? == Shown::AFrame {
        end(sender, receiver).await;
    }
    Ok(())
}

/// The gate has closed in good order. If the input is at its end it may well have asked for that, as `QUIT` does in the
/// lobby; otherwise somebody had more to say. That the input ends may be known a moment later.
async fn end_of_input(
    sending: &mut JoinHandle<anyhow::Result<ClientSender>>,
    linger: Duration,
    address: &str,
) -> anyhow::Result<()> {
    match timeout(linger, sending).await {
        Ok(sent) => sent.context("sending failed")?.map(drop),
        Err(_) => bail!("{address} closed the connection"),
    }
}

/// Shows what still comes, until nothing has come for a while, or until the gate closes: after the last line it may. Tells
/// what was the last.
async fn listen_on(receiver: &mut ClientReceiver, linger: Duration) -> anyhow::Result<Shown> {
    let mut silent_at = Instant::now() + linger;
    loop {
        tokio::select! {
            biased;
            received = receiver.receive() => {
                if show(received)? == Shown::TheEnd {
                    return Ok(Shown::TheEnd);
                }
            }
            () = sleep_until(silent_at) => return Ok(Shown::AFrame),
        }
        silent_at = Instant::now() + linger;
    }
}

/// What came from the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    AFrame,
    /// It closed the connection in good order.
    TheEnd,
}

/// Prints a frame as a line.
fn show(received: Result<Option<impl AsRef<[u8]>>, ClientError>) -> anyhow::Result<Shown> {
    let Some(payload) = received? else { return Ok(Shown::TheEnd) };
    report::print(&line_of(payload.as_ref()))?;
    Ok(Shown::AFrame)
}

/// Sends each line as a frame, and gives the sender back at the end of the input.
async fn send_lines(
    mut sender: ClientSender,
    mut lines: mpsc::Receiver<io::Result<Vec<u8>>>,
) -> anyhow::Result<ClientSender> {
    let mut number = 0_u64;
    while let Some(line) = lines.recv().await {
        number += 1;
        let line = line.context("cannot read standard input")?;
        sender.send(&line).await.with_context(|| format!("line {number} was not sent"))?;
    }
    Ok(sender)
}

/// Says good-bye. Whatever goes wrong with that, all has been said.
async fn end(mut sender: ClientSender, mut receiver: ClientReceiver) {
    let farewell = async {
        let _ = sender.finish().await;
        while let Ok(Some(_)) = receiver.receive().await {}
    };
    let _ = timeout(FAREWELL_LIMIT, farewell).await;
}

/// The lines of standard input without their ends, read by a thread of their own: a terminal cannot be waited for in any
/// other way.
fn read_lines() -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (found, lines) = mpsc::channel(MAX_WAITING_LINES);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input.read_until(b'\n', &mut line);
            let is_over = !matches!(read, Ok(1..));
            let sent = match read {
                Ok(0) => Ok(()),
                Ok(_) => found.blocking_send(Ok(without_end(line))),
                Err(error) => found.blocking_send(Err(error)),
            };
            if is_over || sent.is_err() {
                return;
            }
        }
    });
    lines
}

fn without_end(mut line: Vec<u8>) -> Vec<u8> {
    for end in [b'\n', b'\r'] {
        if line.last() == Some(&end) {
            line.pop();
        }
    }
    line
}

/// A payload as exactly one line, whatever is in it: nothing that a host sends moves the cursor.
fn line_of(payload: &[u8]) -> String {
    let shown = |character: char| match character {
        '\t' => '\t',
        '\u{2028}' | '\u{2029}' => char::REPLACEMENT_CHARACTER,
        other if other.is_control() => char::REPLACEMENT_CHARACTER,
        other => other,
    };
    String::from_utf8_lossy(payload).chars().map(shown).chain(['\n']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_one_line_that_moves_no_cursor() {
        assert_eq!(line_of("grüße\tan alle".as_bytes()), "grüße\tan alle\n");
        assert_eq!(line_of(b"\x1b[2Jgone\r\nerror: made up"), "\u{FFFD}[2Jgone\u{FFFD}\u{FFFD}error: made up\n");
        assert_eq!(line_of(b"\xFF\xFE"), "\u{FFFD}\u{FFFD}\n");
        assert_eq!(line_of("\u{9b}31m\u{2028}".as_bytes()), "\u{FFFD}31m\u{FFFD}\n");
    }

    #[test]
    fn a_line_is_sent_without_its_end() {
        for line in ["GET key\n", "GET key\r\n", "GET key"] {
            assert_eq!(without_end(line.as_bytes().to_vec()), b"GET key");
        }
        assert_eq!(without_end(b"\n".to_vec()), b"");
    }
}
