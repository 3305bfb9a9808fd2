//! Profiles, and where frames land.

mod admission;
mod landing;
mod profiles;
mod stacked;
