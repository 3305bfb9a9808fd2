//! Numbers of attributes (IANA, "RADIUS Types") and of vendors (IANA, "Private Enterprise Numbers").

pub(crate) const USER_NAME: u8 = 1;
pub(crate) const USER_PASSWORD: u8 = 2;
pub(crate) const CHAP_PASSWORD: u8 = 3;
pub(crate) const NAS_IP_ADDRESS: u8 = 4;
pub(crate) const SERVICE_TYPE: u8 = 6;
pub(crate) const FRAMED_PROTOCOL: u8 = 7;
pub(crate) const FRAMED_IP_ADDRESS: u8 = 8;
pub(crate) const FILTER_ID: u8 = 11;
pub(crate) const FRAMED_MTU: u8 = 12;
pub(crate) const REPLY_MESSAGE: u8 = 18;
pub(crate) const FRAMED_ROUTE: u8 = 22;
pub(crate) const CLASS: u8 = 25;
pub(crate) const VENDOR_SPECIFIC: u8 = 26;
pub(crate) const SESSION_TIMEOUT: u8 = 27;
pub(crate) const IDLE_TIMEOUT: u8 = 28;
pub(crate) const CALLING_STATION_ID: u8 = 31;
pub(crate) const NAS_IDENTIFIER: u8 = 32;
pub(crate) const PROXY_STATE: u8 = 33;
pub(crate) const ACCT_STATUS_TYPE: u8 = 40;
pub(crate) const ACCT_INPUT_OCTETS: u8 = 42;
pub(crate) const ACCT_OUTPUT_OCTETS: u8 = 43;
pub(crate) const ACCT_SESSION_ID: u8 = 44;
pub(crate) const ACCT_AUTHENTIC: u8 = 45;
pub(crate) const ACCT_SESSION_TIME: u8 = 46;
pub(crate) const ACCT_INPUT_PACKETS: u8 = 47;
pub(crate) const ACCT_OUTPUT_PACKETS: u8 = 48;
pub(crate) const ACCT_TERMINATE_CAUSE: u8 = 49;
pub(crate) const ACCT_INPUT_GIGAWORDS: u8 = 52;
pub(crate) const ACCT_OUTPUT_GIGAWORDS: u8 = 53;
pub(crate) const EVENT_TIMESTAMP: u8 = 55;
pub(crate) const CHAP_CHALLENGE: u8 = 60;
pub(crate) const NAS_PORT_TYPE: u8 = 61;
pub(crate) const MESSAGE_AUTHENTICATOR: u8 = 80;
pub(crate) const ACCT_INTERIM_INTERVAL: u8 = 85;
pub(crate) const NAS_PORT_ID: u8 = 87;
pub(crate) const FRAMED_POOL: u8 = 88;
pub(crate) const NAS_IPV6_ADDRESS: u8 = 95;
pub(crate) const FRAMED_IPV6_PREFIX: u8 = 97;
pub(crate) const FRAMED_IPV6_ROUTE: u8 = 99;
pub(crate) const ERROR_CAUSE: u8 = 101;
pub(crate) const DELEGATED_IPV6_PREFIX: u8 = 123;

/// Microsoft (RFC 2548).
pub(crate) const MICROSOFT: u32 = 311;
pub(crate) const MS_CHAP_CHALLENGE: u8 = 11;
pub(crate) const MS_CHAP2_RESPONSE: u8 = 25;
pub(crate) const MS_CHAP2_SUCCESS: u8 = 26;

/// MikroTik.
pub(crate) const MIKROTIK: u32 = 14_988;
pub(crate) const MIKROTIK_RATE_LIMIT: u8 = 8;

/// The Wi-Fi Alliance (WISPr).
pub(crate) const WISPR: u32 = 14_122;
pub(crate) const WISPR_BANDWIDTH_MAX_UP: u8 = 7;
pub(crate) const WISPR_BANDWIDTH_MAX_DOWN: u8 = 8;

/// Juniper's ERX.
pub(crate) const ERX: u32 = 4874;
pub(crate) const ERX_INGRESS_POLICY_NAME: u8 = 10;
pub(crate) const ERX_EGRESS_POLICY_NAME: u8 = 11;

/// The Broadband Forum (RFC 4679).
pub(crate) const ADSL_FORUM: u32 = 3561;
pub(crate) const AGENT_CIRCUIT_ID: u8 = 1;
pub(crate) const AGENT_REMOTE_ID: u8 = 2;
