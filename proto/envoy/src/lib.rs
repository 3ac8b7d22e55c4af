//! Messages of Envoy's rate limit service, version 3: those that Lessor reads and writes, with the fields that it knows.
//!
//! The files below `protos` are written for this, under the licence of Lessor. Packages, names, numbers and types are Envoy's, as
//! they have to be for both to understand each other; no text, comment or option of its files is copied, nor any message or field
//! that is not read or written here.

/// `envoy`.
#[allow(missing_docs, unused_qualifications, clippy::all, reason = "made by a program")]
pub mod envoy {
    /// `envoy.config`.
    pub mod config {
        /// `envoy.config.core`.
        pub mod core {
            /// `envoy.config.core.v3`.
            pub mod v3 {
                include!(concat!(env!("OUT_DIR"), "/envoy.config.core.v3.rs"));
            }
        }
    }
    /// `envoy.extensions`.
    pub mod extensions {
        /// `envoy.extensions.common`.
        pub mod common {
            /// `envoy.extensions.common.ratelimit`.
            pub mod ratelimit {
                /// `envoy.extensions.common.ratelimit.v3`.
                pub mod v3 {
                    include!(concat!(env!("OUT_DIR"), "/envoy.extensions.common.ratelimit.v3.rs"));
                }
            }
        }
    }
    /// `envoy.service`.
    pub mod service {
        /// `envoy.service.ratelimit`.
        pub mod ratelimit {
            /// `envoy.service.ratelimit.v3`.
            pub mod v3 {
                include!(concat!(env!("OUT_DIR"), "/envoy.service.ratelimit.v3.rs"));
            }
        }
    }
    /// `envoy.type`.
    pub mod r#type {
        /// `envoy.type.v3`.
        pub mod v3 {
            include!(concat!(env!("OUT_DIR"), "/envoy.r#type.v3.rs"));
        }
    }
}

pub use self::envoy::config::core::v3::HeaderValue;
pub use self::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
pub use self::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{Entry, RateLimitOverride};
pub use self::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
pub use self::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus, RateLimit};
pub use self::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
#[cfg(feature = "grpc")]
pub use self::envoy::service::ratelimit::v3::{rate_limit_service_client, rate_limit_service_server};
pub use self::envoy::r#type::v3::RateLimitUnit;
