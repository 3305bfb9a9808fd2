//! Profiles, landing and the model.
