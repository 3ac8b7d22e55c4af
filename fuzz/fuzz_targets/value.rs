//! The fuzz target `value`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    lessor_fuzz::bodies::read_value(data);
});
