//! Writes the traces of the core to standard error, one line for each start and end of a span and for each event.
//!
//! ```text
//! 2026-11-27T10:32:10.573102Z coldframe-io fetch #7 begin url="s3://b/a.orc" offset=3 length=8192
//! 2026-11-27T10:32:10.601944Z coldframe-io fetch #7 end 28842 us url="s3://b/a.orc" offset=3 length=8192
//! ```
//!
//! Tracing is off by default: no callsite is enabled before [`set_trace`] or [`from_environment`] turns it
//! on. It does not call Python, so that threads without the GIL can write, too. The callsites remove secrets
//! from the URLs.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Instant, SystemTime};

use chrono::{DateTime, Utc};
use pyo3::pyfunction;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_global_default};
use tracing::{Event, Metadata, Subscriber};

/// The environment variable that turns traces on if its value is `1`.
const VARIABLE: &str = "COLDFRAME_TRACE";

static ON: AtomicBool = AtomicBool::new(false);

/// Turns traces on or off. Returns whether they were on.
#[pyfunction]
pub(crate) fn set_trace(on: bool) -> bool {
    static INSTALLED: Once = Once::new();
    if on {
        // Nothing else in this library installs a subscriber.
        INSTALLED.call_once(|| drop(set_global_default(Trace::default())));
    }
    ON.swap(on, Ordering::Relaxed)
}

/// Turns traces on if the environment variable is set.
pub(crate) fn from_environment() {
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "1") {
        set_trace(true);
    }
}

#[derive(Default)]
struct Trace {
    last: AtomicU64,
    open: Mutex<HashMap<u64, Open>>,
}

/// A span that has not ended.
struct Open {
    name: &'static str,
    began: Instant,
    fields: Fields,
}

/// The text ` name=value` of each field. Strings are quoted and escaped.
#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Trace {
    fn with_open<T>(&self, work: impl FnOnce(&mut HashMap<u64, Open>) -> T) -> T {
        work(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes a line with one call, so that lines of several threads do not mix.
fn write_line(name: &str, rest: fmt::Arguments<'_>) {
    let time = DateTime::<Utc>::from(SystemTime::now()).format("%Y-%m-%dT%H:%M:%S%.6fZ");
    let thread = std::thread::current();
    let line = match thread.name() {
        Some(thread) => format!("{time} {} {name}{rest}\n", thread.replace(' ', "-")),
        None => format!("{time} {:?} {name}{rest}\n", thread.id()),
    };
    // If there is no standard error, the line is lost.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

impl Subscriber for Trace {
    /// Callsites of other libraries are not enabled, since their lines may contain secrets.
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let is_ours = metadata.target().starts_with("coldframe");
        if is_ours { Interest::sometimes() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        ON.load(Ordering::Relaxed) && metadata.target().starts_with("coldframe")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let (id, name) = (self.last.fetch_add(1, Ordering::Relaxed) + 1, span.metadata().name());
        let mut fields = Fields::default();
        span.record(&mut fields);
        write_line(name, format_args!(" #{id} begin{}", fields.0));
        self.with_open(|open| open.insert(id, Open { name, began: Instant::now(), fields }));
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.with_open(|open| {
            if let Some(open) = open.get_mut(&span.into_u64()) {
                values.record(&mut open.fields);
            }
        });
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        write_line(event.metadata().name(), format_args!("{}", fields.0));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}

    /// The core never clones a span, so this was its only handle.
    fn try_close(&self, id: Id) -> bool {
        let id = id.into_u64();
        if let Some(Open { name, began, fields }) = self.with_open(|open| open.remove(&id)) {
            write_line(name, format_args!(" #{id} end {} us{}", began.elapsed().as_micros(), fields.0));
        }
        true
    }
}
