//! Runs the target that `FUZZ_TARGET` names on libFuzzer's inputs. With `FUZZ_SEEDS`, writes the target's seeds to that
//! folder instead.
#![cfg_attr(feature = "libfuzzer", no_main)]

#[cfg(feature = "libfuzzer")]
mod libfuzzer {
    use std::sync::OnceLock;

    use coldframe_fuzz::Target;

    static TARGET: OnceLock<Target> = OnceLock::new();

    fn begin() {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let Some(target) = coldframe_fuzz::target(&name) else {
            let names: Vec<&str> = coldframe_fuzz::TARGETS.iter().map(|t| t.name).collect();
            eprintln!("FUZZ_TARGET is one of: {}", names.join(" "));
            std::process::exit(2);
        };
        if let Some(folder) = std::env::var_os("FUZZ_SEEDS") {
            coldframe_fuzz::write_seeds(target, folder.as_ref());
            std::process::exit(0);
        }
        TARGET.set(*target).ok();
    }

    libfuzzer_sys::fuzz_target!(init: begin(), |bytes: &[u8]| {
        if let Some(target) = TARGET.get() {
            (target.run)(bytes);
        }
    });
}

#[cfg(not(feature = "libfuzzer"))]
fn main() {
    eprintln!("built without libFuzzer: use `make fuzz`, or `cargo test` for mutants of the seeds");
    std::process::exit(2);
}
