//! The fuzz targets. `make fuzz` runs them with libFuzzer; `cargo test` runs them on mutants of the seeds and needs
//! only a compiler.

pub mod archive;
pub mod files;
pub mod roundtrip;
pub mod values;

use std::path::Path;

use coldframe::Limits;

/// A fuzz target: a function of any bytes that panics if it finds an error.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The target's name, for `FUZZ_TARGET`.
    pub name: &'static str,
    /// Runs one input.
    pub run: fn(&[u8]),
    /// The initial inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! targets {
    ($($name:ident: $run:path, $seeds:expr;)*) => {
        /// All targets.
        pub const TARGETS: &[Target] = &[$(Target { name: stringify!($name), run: $run, seeds: $seeds }),*];
    };
}

targets! {
    orc: files::orc, || files::files_of("orc");
    rcfile: files::rcfile, || files::files_of("rcfile");
    hfile: files::hfile, || files::files_of("hfile");
    cfile: files::cfile, files::cfiles;
    redfile: files::redfile, || files::files_of("redfile");
    kudu: files::kudu, files::kudu_directories;
    hudi: files::hudi, files::hudi_tables;
    hudi_data: files::hudi_data, files::hudi_data_tables;
    acid: files::acid, files::acid_tables;
    avro: values::avro, values::avro_seeds;
    codec: values::codec, roundtrip::seeds;
    text_cells: values::text_cells, roundtrip::seeds;
    lazy_binary_cells: values::lazy_binary_cells, roundtrip::seeds;
    salvage: values::salvage, roundtrip::seeds;
    write_orc: roundtrip::orc, roundtrip::seeds;
    write_rcfile: roundtrip::rcfile, roundtrip::seeds;
    write_hfile: roundtrip::hfile, roundtrip::seeds;
    write_cfile: roundtrip::cfile, roundtrip::seeds;
    write_redfile: roundtrip::redfile, roundtrip::seeds;
}

/// The target with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

/// Writes the seeds of a target into a folder, one file each.
pub fn write_seeds(target: &Target, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder for seeds");
    for (number, seed) in (target.seeds)().into_iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number:03}")), seed).expect("a folder for seeds");
    }
}

/// Limits so small that a file is refused before the fuzzer's own limits apply.
pub fn limits() -> Limits {
    Limits {
        max_block_bytes: 16 << 20,
        max_metadata_bytes: 4 << 20,
        max_unit_rows: Some(1 << 16),
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coldframe_testing::{Dice, mutate};
    use std::collections::BTreeMap;
    use std::panic::{catch_unwind, set_hook};
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    /// The location and the message of the last panic.
    static LAST: Mutex<String> = Mutex::new(String::new());

    /// The maximum time for one input; if it takes longer, that is a finding.
    const TOO_LONG: Duration = Duration::from_secs(20);

    /// Runs the seeds and their mutants, for `FUZZ_SECONDS` (by default 2) seconds for each target, or only
    /// for `FUZZ_TARGET` if that is set. Continues after a finding, and keeps one finding of each kind.
    #[test]
    fn mutants_of_the_seeds_find_no_error() {
        let number =
            |name: &str, or: u64| std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(or);
        let (seconds, seed) = (number("FUZZ_SECONDS", 2), number("FUZZ_SEED", 1));
        let only = std::env::var("FUZZ_TARGET").ok();
        set_hook(Box::new(|panic| *LAST.lock().unwrap() = panic.to_string()));
        let mut findings: BTreeMap<String, String> = BTreeMap::new();
        for target in TARGETS.iter().filter(|t| only.as_ref().is_none_or(|name| t.name == name)) {
            let seeds = (target.seeds)();
            let (mut dice, start, mut runs) = (Dice::new(seed), Instant::now(), 0usize);
            while runs < seeds.len() || start.elapsed() < Duration::from_secs(seconds) {
                let bytes = match seeds.get(runs) {
                    Some(seed) => seed.clone(),
                    None => mutate::shaken(&seeds[dice.below(seeds.len())], &mut dice).to_vec(),
                };
                let run_start = Instant::now();
                let mut what = match catch_unwind(|| (target.run)(&bytes)) {
                    Ok(()) if run_start.elapsed() < TOO_LONG => String::new(),
                    Ok(()) => "an input takes too long".to_owned(),
                    Err(_) => LAST.lock().unwrap().clone(),
                };
                if !what.is_empty() {
                    // Digits are ignored, since offsets and numbers differ between inputs.
                    let kind: String = what.chars().filter(|c| !c.is_ascii_digit()).take(150).collect();
                    let path = std::env::temp_dir().join(format!("coldframe-{}-{seed}-{runs}", target.name));
                    what.insert_str(0, &format!("{}: {}: ", target.name, path.display()));
                    findings.entry(format!("{} {kind}", target.name)).or_insert_with(|| {
                        std::fs::write(&path, &bytes).unwrap();
                        what
                    });
                }
                runs += 1;
            }
            println!("{}: {runs} runs of {} seeds", target.name, seeds.len());
            assert!(!seeds.is_empty(), "{}", target.name);
        }
        drop(std::panic::take_hook());
        let findings: Vec<String> = findings.into_values().collect();
        assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    }
}
