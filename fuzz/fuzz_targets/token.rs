//! The fuzz target `token`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    lessor_fuzz::bodies::read_token(data);
});
