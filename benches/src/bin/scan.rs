//! Reads a file, or a directory that is one table, repeatedly on one thread and prints the cost of each pass, one JSON object per
//! line.
//!
//! ```text
//! scan FILE [--schema DDL] [--serde text|binary] [--columns a,b] [--filter CONDITION] [--on-error raise|skip] [--passes 6]
//!      [--batch-rows 65536] [--source file|memory]
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use coldframe::predicate::parse::condition;
use coldframe::{
    Error, File, OnError, OpenOptions, Result, Scan, SchemaSpec, Side, Source, open, open_source,
    parse_option,
};
use coldframe_benches as _; // for its allocator
use coldframe_testing::folder::MemoryFolder;
use rustix::time::{ClockId, clock_gettime};

/// The command line.
struct Arguments {
    file: String,
    options: OpenOptions,
    scan: Scan,
    filter: Option<String>,
    passes: u32,
    in_memory: bool,
}

fn arguments() -> Result<Arguments> {
    let mut file = None;
    let mut parsed = Arguments {
        file: String::new(),
        options: OpenOptions::default(),
        scan: Scan { threads: 1, ..Scan::default() },
        filter: None,
        passes: 6,
        in_memory: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if !argument.starts_with("--") {
            file = Some(argument);
            continue;
        }
        let value = arguments.next().ok_or_else(|| Error::invalid(format!("{argument} needs a value")))?;
        let number = || {
            value.parse::<u32>().map_err(|_| Error::invalid(format!("{argument}: {value:?} is not a number")))
        };
        match argument.as_str() {
            "--schema" => parsed.options.schema = Some(SchemaSpec::Ddl(value)),
            "--columns" => parsed.scan.columns = Some(value.split(',').map(str::to_owned).collect()),
            "--filter" => parsed.filter = Some(value),
            "--on-error" if value == "skip" => parsed.scan.on_error = OnError::Skip,
            "--on-error" if value == "raise" => parsed.scan.on_error = OnError::Raise,
            "--passes" => parsed.passes = number()?,
            "--batch-rows" => parsed.scan.batch_rows = usize::try_from(number()?).unwrap_or(usize::MAX),
            "--source" => parsed.in_memory = value == "memory",
            option => {
                let name = option.trim_start_matches('-').replace('-', "_");
                let value = parse_option(None, Side::Open, &name, &value)?;
                parsed.options.extra.insert(name, value);
            }
        }
    }
    parsed.file =
        file.ok_or_else(|| Error::invalid("usage: scan FILE [--schema DDL] [--serde S] [--columns a,b]"))?;
    Ok(parsed)
}

/// Reads a file or a directory into memory.
fn load(path: &str) -> Result<Source> {
    if !Path::new(path).is_dir() {
        return Ok(Source::file(path, Arc::new(Bytes::from(std::fs::read(path)?))));
    }
    Ok(MemoryFolder::load(Path::new(path)).source())
}

fn open_again(arguments: &Arguments, memory: Option<&Source>) -> Result<File> {
    match memory {
        None => open(&arguments.file, None, &arguments.options),
        Some(source) => open_source(source.clone(), None, &arguments.options, Vec::new()),
    }
}

fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "seconds of a process")]
    let seconds = now.tv_sec as f64;
    seconds + f64::from(u32::try_from(now.tv_nsec).unwrap_or(0)) / 1e9
}

/// The scan that the command line asks for.
fn scan_of(arguments: &Arguments, file: &File) -> Result<Scan> {
    let filter = arguments.filter.as_deref().map(|text| condition(text)?.bind(&file.schema())).transpose()?;
    Ok(Scan { predicate: filter, ..arguments.scan.clone() })
}

/// Scans the file once; returns the rows and the bytes of Arrow.
fn pass(file: &File, scan: &Scan) -> Result<(u64, u64)> {
    let (mut rows, mut bytes) = (0, 0);
    for split in file.whole()? {
        let mut reader = file.scan(scan, &split)?;
        while let Some(batch) = reader.next_batch()? {
            rows += u64::try_from(batch.num_rows()).unwrap_or(0);
            bytes += u64::try_from(batch.get_array_memory_size()).unwrap_or(0);
        }
    }
    Ok((rows, bytes))
}

#[expect(clippy::print_stdout, reason = "the program prints its results")]
fn main() -> Result<()> {
    let arguments = arguments()?;
    let memory = if arguments.in_memory { Some(load(&arguments.file)?) } else { None };
    for n in 1..=arguments.passes {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        let file = open_again(&arguments, memory.as_ref())?;
        let opened = cpu_seconds() - cpu;
        let (rows, bytes) = pass(&file, &scan_of(&arguments, &file)?)?;
        let (cpu, wall) = (cpu_seconds() - cpu, wall.elapsed().as_secs_f64());
        println!(
            "{{\"reader\": \"coldframe\", \"file\": {:?}, \"pass\": {n}, \"rows\": {rows}, \"arrow_bytes\": {bytes}, \
             \"open_cpu_s\": {opened:.6}, \"cpu_s\": {cpu:.4}, \"wall_s\": {wall:.4}}}",
            arguments.file
        );
    }
    Ok(())
}
