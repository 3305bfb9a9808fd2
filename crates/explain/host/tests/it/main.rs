//! Text of many tools, collectors, settings and the live machine.
