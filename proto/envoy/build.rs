//! Compiles the files below `protos` with protox, so that a machine with only Rust builds them.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=protos");
    let descriptors = protox::compile(["envoy/service/ratelimit/v3/rls.proto"], ["protos"])?;
    let grpc = std::env::var_os("CARGO_FEATURE_GRPC").is_some();
    tonic_prost_build::configure()
        .build_client(grpc)
        .build_server(grpc)
        .build_transport(false)
        .compile_fds(descriptors)?;
    Ok(())
}
