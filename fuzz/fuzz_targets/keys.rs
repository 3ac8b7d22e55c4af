//! The fuzz target `keys`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    lessor_fuzz::bodies::read_keys(data);
});
