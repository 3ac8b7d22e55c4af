//! The fuzz target `templates`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    lessor_fuzz::bodies::read_templates(data);
});
