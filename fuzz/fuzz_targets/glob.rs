//! The fuzz target `glob`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    lessor_fuzz::bodies::read_glob(data);
});
