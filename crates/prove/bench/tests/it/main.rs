//! UDP load.

mod udp;
