//! The memory of a holding with the allocator of the program, beside `memory` with that of the system.
//!
//! `cargo bench -p lessor-server --bench memory_mimalloc`

#[path = "memory.rs"]
mod memory;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    memory::main();
}
