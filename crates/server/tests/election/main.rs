//! Pure
