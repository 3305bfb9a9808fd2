//! The field reports.

mod reports;
