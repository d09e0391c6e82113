//! The log of the program, as the section `log` of the configuration wants it: on standard error, a line for each
//! event, for people or as JSON. A command that runs a world calls [`start`] once. A program that embeds Wheelhouse
//! brings a subscriber of its own instead.
//!
//! Lines are written by a thread of their own: the loop never waits for whoever reads the log. A reader that is too slow
//! loses lines, and is told how many.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use crate::server::config::{LogFormat, LogLevel, LogSettings};

/// What the compiler and the runtime say of themselves drowns everything else.
const LOUD: [&str; 4] = ["cranelift", "regalloc2", "wasmtime", "wasmparser"];

/// Lines that may wait to be written.
const MAX_WAITING_LINES: usize = 16_384;

/// The log, for as long as this lives. Dropping it writes what waits.
#[must_use = "the log ends when this is dropped"]
pub struct Log {
    dropped: ErrorCounter,
    writer: Option<WorkerGuard>,
}

/// Writes the program's log from here on. Fails where something in this process has started a log already.
pub fn start(settings: &LogSettings) -> anyhow::Result<Log> {
    let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(MAX_WAITING_LINES);
    let (writer, guard) = builder.thread_name("wheelhouse-log").finish(io::stderr());
    let dropped = writer.error_counter();
    tracing::subscriber::set_global_default(subscriber(settings, writer, io::stderr().is_terminal()))?;
    Ok(Log { dropped, writer: Some(guard) })
}

impl Drop for Log {
    fn drop(&mut self) {
        self.writer.take();
        let dropped = self.dropped.dropped_lines();
        if dropped > 0 {
            // Where standard error is closed there is nobody to tell.
            let _ = writeln!(io::stderr(), "warning: {dropped} log lines were lost: the log is read too slowly");
        }
    }
}

fn subscriber<W>(settings: &LogSettings, writer: W, colours: bool) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt().with_env_filter(filter(settings.level)).with_writer(writer);
    match settings.format {
        LogFormat::Text => Box::new(lines.with_ansi(colours).finish()),
        LogFormat::Json => Box::new(lines.event_format(JsonLines).finish()),
    }
}

fn filter(level: LogLevel) -> EnvFilter {
    let (level, is_chatty) = match level {
        LogLevel::Error => ("error", false),
        LogLevel::Warn => ("warn", false),
        LogLevel::Info => ("info", false),
        LogLevel::Debug => ("debug", true),
        LogLevel::Trace => ("trace", true),
    };
    let mut directives = level.to_owned();
    if is_chatty {
        LOUD.iter().for_each(|target| directives.push_str(&format!(",{target}=warn")));
    }
    EnvFilter::new(directives)
}

/// One JSON object a line: time, level, target, message, and the fields of the event by their names.
struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        // Last, so that no field of an event takes their places.
        fields.0.insert("time".to_owned(), time.into());
        fields.0.insert("level".to_owned(), event.metadata().level().as_str().to_lowercase().into());
        fields.0.insert("target".to_owned(), event.metadata().target().into());
        writeln!(out, "{}", Value::Object(fields.0))
    }
}

struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: LogLevel, format: LogFormat, events: impl FnOnce()) -> String {
        let page = Page::default();
        let writer = page.clone();
        let subscriber = subscriber(&LogSettings { level, format }, move || writer.clone(), false);
        tracing::subscriber::with_default(subscriber, events);
        let bytes = page.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn json_is_one_object_a_line_whatever_the_message_holds() {
        let text = logged(LogLevel::Info, LogFormat::Json, || {
            tracing::warn!(guest = "wolf", failures = 3, level = "mine", "it said \"ow\"\nand stopped");
            tracing::info!("next");
        });
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["message"], "it said \"ow\"\nand stopped");
        assert_eq!(lines[0]["level"], "warn");
        assert_eq!((&lines[0]["guest"], &lines[0]["failures"]), (&"wolf".into(), &3.into()));
        assert!(lines[0]["time"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn what_is_less_important_than_the_level_is_not_written() {
        let text = logged(LogLevel::Warn, LogFormat::Text, || {
            tracing::info!("quiet");
            tracing::warn!("loud");
        });
        assert!(text.contains("loud") && !text.contains("quiet"), "{text}");
    }

    #[test]
    fn the_compilers_chatter_stays_out_even_of_a_debug_log() {
        let text = logged(LogLevel::Debug, LogFormat::Text, || {
            tracing::debug!(target: "cranelift_codegen::timing", "chatter");
            tracing::debug!("ours");
        });
        assert!(text.contains("ours") && !text.contains("chatter"), "{text}");
    }
}
