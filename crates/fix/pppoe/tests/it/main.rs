//! Both ends of a PPPoE session, beside each other and attackers.
