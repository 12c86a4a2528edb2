#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| coldframe_fuzz::cfile(bytes));
