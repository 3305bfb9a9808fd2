//! UDP load.
