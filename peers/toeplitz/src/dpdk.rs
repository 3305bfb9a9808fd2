//! DPDK's Toeplitz functions, safe to call.

/// Inputs of `N` bytes in the three forms in which DPDK takes them, and the key prepared for it.
pub struct Dpdk<'a, const N: usize> {
    key: [u8; 40],
    matrices: Vec<u64>,
    bytes: &'a [[u8; N]],
    words: Vec<u32>,
    pointers: Vec<*const u8>,
}

mod sys {
    unsafe extern "C" {
        pub safe fn dpdk_has_gfni() -> i32;
        pub fn dpdk_matrices(matrices: *mut u64, key: *const u8, bytes: i32);
        pub fn dpdk_softrss_12(key: *const u8, words: *const u32, hashes: *mut u32, count: i64);
        pub fn dpdk_softrss_36(key: *const u8, words: *const u32, hashes: *mut u32, count: i64);
        pub fn dpdk_gfni_12(matrices: *const u64, inputs: *const u8, hashes: *mut u32, count: i64);
        pub fn dpdk_gfni_36(matrices: *const u64, inputs: *const u8, hashes: *mut u32, count: i64);
        pub fn dpdk_bulk_12(matrices: *const u64, inputs: *const *const u8, hashes: *mut u32, count: i64);
        pub fn dpdk_bulk_36(matrices: *const u64, inputs: *const *const u8, hashes: *mut u32, count: i64);
        pub fn dpdk_chain_into_12(matrices: *const u64, inputs: *const u8, count: i64) -> u32;
        pub fn dpdk_chain_into_36(matrices: *const u64, inputs: *const u8, count: i64) -> u32;
        pub fn dpdk_chain_choice_12(matrices: *const u64, inputs: *const u8, count: i64) -> u32;
        pub fn dpdk_chain_choice_36(matrices: *const u64, inputs: *const u8, count: i64) -> u32;
    }
}

/// Whether this DPDK and this processor have the GFNI functions.
pub fn has_gfni() -> bool {
    sys::dpdk_has_gfni() != 0
}

impl<'a, const N: usize> Dpdk<'a, N> {
    /// A multiple of 64 inputs of 12 or 36 bytes.
    pub fn new(key: &[u8; 40], inputs: &'a [[u8; N]]) -> Dpdk<'a, N> {
        assert!((N == 12 || N == 36) && !inputs.is_empty() && inputs.len().is_multiple_of(64));
        let mut matrices = vec![0; 40];
        // SAFETY: one matrix is written per byte of the key.
        unsafe { sys::dpdk_matrices(matrices.as_mut_ptr(), key.as_ptr(), 40) };
        let words =
            inputs.as_flattened().as_chunks().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
        let pointers = inputs.iter().map(|input| input.as_ptr()).collect();
        Dpdk { key: *key, matrices, bytes: inputs, words, pointers }
    }

    fn count(&self, hashes: &[u32]) -> i64 {
        assert_eq!(hashes.len(), self.bytes.len());
        self.bytes.len() as i64
    }

    /// `rte_softrss`.
    pub fn softrss(&self, hashes: &mut [u32]) {
        let count = self.count(hashes);
        let call = if N == 12 { sys::dpdk_softrss_12 } else { sys::dpdk_softrss_36 };
        // SAFETY: a key of 40 bytes, `N / 4` words and one hash per input.
        unsafe { call(self.key.as_ptr(), self.words.as_ptr(), hashes.as_mut_ptr(), count) }
    }

    /// `rte_thash_gfni`.
    pub fn gfni(&self, hashes: &mut [u32]) {
        let count = self.count(hashes);
        let call = if N == 12 { sys::dpdk_gfni_12 } else { sys::dpdk_gfni_36 };
        // SAFETY: matrices of a 40-byte key, `N` bytes and one hash per input.
        unsafe { call(self.matrices.as_ptr(), self.bytes.as_ptr().cast(), hashes.as_mut_ptr(), count) }
    }

    /// `rte_thash_gfni_bulk`, 32 inputs a call.
    pub fn bulk(&self, hashes: &mut [u32]) {
        let count = self.count(hashes);
        let call = if N == 12 { sys::dpdk_bulk_12 } else { sys::dpdk_bulk_36 };
        // SAFETY: a pointer to `N` bytes and one hash per input, a multiple of 32 of them.
        unsafe { call(self.matrices.as_ptr(), self.pointers.as_ptr(), hashes.as_mut_ptr(), count) }
    }

    /// `rte_thash_gfni`, each hash XORed into the next input.
    pub fn chain_into(&self) -> u32 {
        let call = if N == 12 { sys::dpdk_chain_into_12 } else { sys::dpdk_chain_into_36 };
        // SAFETY: as for `gfni`.
        unsafe { call(self.matrices.as_ptr(), self.bytes.as_ptr().cast(), self.bytes.len() as i64) }
    }

    /// `rte_thash_gfni`, each hash choosing the next of 64 inputs.
    pub fn chain_choice(&self) -> u32 {
        let call = if N == 12 { sys::dpdk_chain_choice_12 } else { sys::dpdk_chain_choice_36 };
        // SAFETY: as for `gfni`; there are at least 64 inputs.
        unsafe { call(self.matrices.as_ptr(), self.bytes.as_ptr().cast(), self.bytes.len() as i64) }
    }
}
