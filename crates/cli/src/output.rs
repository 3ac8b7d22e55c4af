//! The output of a command: its own `print!` and `println!`, for which a reader who has had enough is no fault.
//!
//! Those of the standard library panic when a pipe is closed, as `lessor status | head` does.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// As that of the standard library, but when nobody reads any more the process ends.
macro_rules! print {
    ($($arguments:tt)*) => { $crate::output::write_or_end(format_args!($($arguments)*)) };
}

/// As that of the standard library, but when nobody reads any more the process ends.
macro_rules! println {
    ($($arguments:tt)*) => { $crate::output::write_or_end(format_args!("{}\n", format_args!($($arguments)*))) };
}

/// Writes to standard output. If it is closed the process ends well, and if it cannot be written to it ends with the reason.
pub(crate) fn write_or_end(text: fmt::Arguments<'_>) {
    match write(text) {
        Ok(true) => {}
        Ok(false) => std::process::exit(0),
        Err(error) => {
            eprintln!("error: cannot write to standard output: {error}");
            std::process::exit(1);
        }
    }
}

/// Writes to standard output. Returns whether anybody reads it.
pub(crate) fn write(text: fmt::Arguments<'_>) -> io::Result<bool> {
    let mut output = io::stdout().lock();
    match output.write_fmt(text).and_then(|()| output.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits until nobody reads standard output any more, without writing to it; for ever where that is not to be seen, as of a
/// file.
#[expect(
    deprecated,
    reason = "what replaces it is unsafe, as a file may be closed meanwhile, and standard output is not"
)]
pub(crate) async fn hang_up() {
    // What cannot be waited for, as a file, nobody leaves.
    if let Ok(output) = AsyncFd::with_interest(io::stdout(), Interest::ERROR)
        && output.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
