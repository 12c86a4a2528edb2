//! Looks keys up in an HFile repeatedly on one thread and prints the cost of each pass, one JSON object per line.
//!
//! ```text
//! lookup FILE [--entries 1500000] [--passes 6] [--source file|memory]
//! ```
//! The file is one of `benches/peers/hfile.sh`; its keys are `record-` and twelve digits. `find` passes a key's cells on
//! without copying them, like the peers in Java; `get` converts them to Arrow.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use coldframe::store::LocalFile;
use coldframe::{Error, OpenOptions, Result, Source, Value};
use coldframe_benches::Random;
use coldframe_hfile::HFile;
use rustix::time::{ClockId, clock_gettime};

/// Look-ups per pass.
const LOOKUPS: u64 = 10_000;

fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "seconds of a process")]
    let seconds = now.tv_sec as f64;
    seconds + f64::from(u32::try_from(now.tv_nsec).unwrap_or(0)) / 1e9
}

fn key(i: u64) -> Vec<u8> {
    format!("record-{i:012}").into_bytes()
}

/// The command line.
struct Arguments {
    file: String,
    entries: u64,
    passes: u32,
    in_memory: bool,
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments { file: String::new(), entries: 1_500_000, passes: 6, in_memory: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().and_then(|value| value.parse().ok());
            value.ok_or_else(|| Error::invalid(format!("{argument} needs a number")))
        };
        match argument.as_str() {
            "--entries" => parsed.entries = number()?,
            "--passes" => parsed.passes = u32::try_from(number()?).unwrap_or(1),
            "--source" => parsed.in_memory = arguments.next().is_some_and(|source| source == "memory"),
            _ => parsed.file = argument,
        }
    }
    if parsed.file.is_empty() || parsed.entries < LOOKUPS {
        return Err(Error::invalid("usage: lookup FILE [--entries n] [--passes n] [--source file|memory]"));
    }
    Ok(parsed)
}

fn open(arguments: &Arguments, memory: Option<&Bytes>) -> Result<HFile> {
    let mut options = OpenOptions::default();
    options.extra.insert("block_cache_bytes".to_owned(), Value::Int(1 << 30));
    let source = match memory {
        Some(bytes) => Source::file(arguments.file.as_str(), Arc::new(bytes.clone())),
        None => Source::file(arguments.file.as_str(), Arc::new(LocalFile::open(&arguments.file)?)),
    };
    HFile::open(&source, &options)
}

/// Runs `work`, which returns a number of rows, and prints the cost of each pass.
#[expect(clippy::print_stdout, reason = "the program prints its results")]
fn measure(arguments: &Arguments, what: &str, mut work: impl FnMut() -> Result<usize>) -> Result<()> {
    for n in 1..=arguments.passes {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        let rows = work()?;
        let (cpu, wall) = (cpu_seconds() - cpu, wall.elapsed().as_secs_f64());
        if rows as u64 != LOOKUPS {
            return Err(Error::invalid(format!("{what}: expected {LOOKUPS} rows, found {rows}")));
        }
        println!(
            "{{\"reader\": \"coldframe\", \"file\": {:?}, \"what\": \"{what}\", \"pass\": {n}, \"entries\": {rows}, \
             \"cpu_s\": {cpu:.6}, \"wall_s\": {wall:.6}}}",
            arguments.file
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments = arguments()?;
    let memory = if arguments.in_memory { Some(Bytes::from(std::fs::read(&arguments.file)?)) } else { None };
    let mut random = Random::new(2);
    let some: Vec<Vec<u8>> = (0..LOOKUPS).map(|_| key(random.next_u64() % arguments.entries)).collect();
    let many: Vec<Vec<u8>> = (0..LOOKUPS).map(|i| key(i * (arguments.entries / LOOKUPS))).collect();
    let rows = |batches: Vec<arrow_array::RecordBatch>| batches.iter().map(|b| b.num_rows()).sum::<usize>();
    measure(&arguments, "get_many, fresh", || Ok(rows(open(&arguments, memory.as_ref())?.get_many(&many)?)))?;
    let file = open(&arguments, memory.as_ref())?;
    file.get_many(&many)?;
    measure(&arguments, "find", || {
        let mut rows = 0;
        for key in &some {
            file.find(key, |cell| {
                rows += usize::from(cell.value.len() == 100);
                Ok(())
            })?;
        }
        Ok(rows)
    })?;
    measure(&arguments, "get", || some.iter().map(|key| Ok(rows(file.get(key)?))).sum::<Result<usize>>())?;
    measure(&arguments, "get_many", || Ok(rows(file.get_many(&many)?)))
}
