//! As much of protoc as prost-build calls: reads `.proto` files and writes a descriptor set.
//!
//! `-o FILE` or `--descriptor_set_out=FILE`, `-I DIR`, `--include_imports`, `--include_source_info` and
//! `--version` are understood; other switches are passed over.

#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let (mut out, mut includes, mut files) = (None, Vec::new(), Vec::new());
    let (mut imports, mut source_info) = (false, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--version" => {
                println!("libprotoc 29.0");
                return Ok(());
            }
            "--include_imports" => imports = true,
            "--include_source_info" => source_info = true,
            "-o" => out = args.next().map(PathBuf::from),
            "-I" => includes.extend(args.next().map(PathBuf::from)),
            _ if let Some(path) = arg.strip_prefix("--descriptor_set_out=") => out = Some(path.into()),
            _ if let Some(path) = arg.strip_prefix("-I") => includes.push(path.into()),
            _ if let Some(path) = arg.strip_prefix("--proto_path=") => includes.push(path.into()),
            _ if arg.starts_with('-') => {}
            _ => files.push(PathBuf::from(arg)),
        }
    }
    let mut compiler = protox::Compiler::new(includes)?;
    compiler.include_imports(imports).include_source_info(source_info).open_files(files)?;
    std::fs::write(out.ok_or("no -o FILE")?, compiler.encode_file_descriptor_set())?;
    Ok(())
}
