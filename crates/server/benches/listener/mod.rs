//! The report of a client that shows the last grant that it was told.

use lessor_proto::ResourceId;
use lessor_proto::message::{Band, Bands, Grant, Has, Report};

pub(crate) fn report(resource: ResourceId, band: Band, grant: Option<&Grant>) -> Report {
    Report {
        resource,
        bands: Bands::from_elem(band, 1),
        has: grant.map(|grant| Has {
            capacity: grant.capacity,
            order: grant.order,
            token: grant.token.clone(),
            lasts: None,
            expiry: 0,
        }),
        held: grant.map(|grant| grant.capacity),
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    }
}
