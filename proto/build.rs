//! Compiles `doorman.proto` with protox, so that a machine with only Rust builds it.
//!
//! prost does not tell an absent required field from a zero. In everything that a holder sends we therefore turn
//! "required" into "optional" before generating: the bytes are the same, and `message.rs` can refuse what is missing.

use std::path::PathBuf;

use prost::Message;
use prost_types::field_descriptor_proto::Label;

/// Messages that travel inside requests without being called one.
const INSIDE_REQUESTS: [&str; 6] =
    ["Lease", "PriorityBandAggregate", "DemandBucket", "DomainHits", "DomainEntry", "JobNews"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=doorman.proto");
    let descriptors = protox::compile(["doorman.proto"], ["."])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    // Reflection serves the file as it is written.
    std::fs::write(out.join("doorman.bin"), descriptors.encode_to_vec())?;

    let mut relaxed = descriptors;
    for message in relaxed.file.iter_mut().flat_map(|file| &mut file.message_type) {
        let name = message.name();
        if !name.ends_with("Request") && !INSIDE_REQUESTS.contains(&name) {
            continue;
        }
        for field in &mut message.field {
            if field.label() == Label::Required {
                field.set_label(Label::Optional);
            }
        }
    }

    let grpc = std::env::var_os("CARGO_FEATURE_GRPC").is_some();
    tonic_prost_build::configure()
        .build_client(grpc)
        .build_server(grpc)
        .codec_path("crate::codec::MessageCodec")
        .compile_fds(relaxed)?;
    Ok(())
}
