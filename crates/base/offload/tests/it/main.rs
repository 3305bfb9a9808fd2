//! Segments, checksums and coalescing, beside references and the kernel.
