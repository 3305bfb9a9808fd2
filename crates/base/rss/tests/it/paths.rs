//! Every path gives the hash of the bit-by-bit reference.

use proptest::prelude::*;
use rxlane_rss::{HashKey, InputTooLong, KeyError, Path, PrepareError, Toeplitz};

/// The paths that this processor has, each prepared for the key.
pub fn paths(key: &HashKey) -> Vec<Toeplitz> {
    Path::ALL
        .into_iter()
        .filter_map(|path| match Toeplitz::with_path(key, path) {
            Err(PrepareError::Path(_)) => None,
            prepared => Some(prepared.unwrap()),
        })
        .collect()
}

fn key(lengths: impl Strategy<Value = usize>) -> impl Strategy<Value = HashKey> {
    lengths
        .prop_flat_map(|length| proptest::collection::vec(any::<u8>(), length))
        .prop_map(|bytes| HashKey::from_bytes(&bytes).unwrap())
}

/// Inputs of `N` bytes that start `skew` bytes behind an address with the alignment of the allocation.
fn skewed<const N: usize>(bytes: &[u8], skew: usize) -> &[[u8; N]] {
    bytes[skew..].as_chunks().0
}

#[test]
#[allow(clippy::print_stdout, reason = "says which paths the machine could test")]
fn what_was_tested_is_visible() {
    let tested: Vec<Path> = paths(&HashKey::MICROSOFT).iter().map(Toeplitz::path).collect();
    println!("paths of this processor: {tested:?}");
    assert!(tested.contains(&Path::Scalar) && tested.contains(&Path::Tables));
    assert_eq!(Toeplitz::new(&HashKey::MICROSOFT).unwrap().path(), *tested.last().unwrap());
    for path in Path::ALL {
        assert_eq!(path.is_available(), tested.contains(&path));
    }
}

#[test]
fn each_bit_selects_its_key_window() {
    // The hash is linear, so inputs with one bit set pin down the whole function.
    for toeplitz in paths(&HashKey::MICROSOFT) {
        for bit in 0..36 * 8 {
            let mut input = [0; 36];
            input[bit / 8] = 0x80 >> (bit % 8);
            let expected = HashKey::MICROSOFT.hash(&input).unwrap();
            assert_eq!(toeplitz.hash_36(&input), expected, "{:?} bit {bit}", toeplitz.path());
            let mut hashes = [0; 1];
            toeplitz.hash_batch_36(&[input], &mut hashes);
            assert_eq!(hashes, [expected], "{:?} batch, bit {bit}", toeplitz.path());
            if bit < 12 * 8 {
                let mut hashes = [0; 1];
                toeplitz.hash_batch_12(&[*input.first_chunk().unwrap()], &mut hashes);
                assert_eq!(hashes, [expected], "{:?} batch, bit {bit}", toeplitz.path());
            }
        }
    }
}

#[test]
fn a_key_must_cover_ipv6() {
    let short = HashKey::from_bytes(&[1; 39]).unwrap();
    assert_eq!(Toeplitz::new(&short).unwrap_err(), KeyError::TooShort { bytes: 39 });
    assert_eq!(short.hash(&[0; 36]), Err(InputTooLong { input: 36, covered: 35 }));
    assert!(short.hash(&[0; 35]).is_ok());
}

/// Holds every path's batches of inputs at this alignment, `count` at most, to the reference.
fn check_batches(key: &HashKey, bytes: &[u8], skew: usize, count: usize) {
    macro_rules! check {
        ($length:literal, $batch:ident, $toeplitz:ident) => {
            let inputs = skewed::<$length>(bytes, skew);
            let inputs = &inputs[..count.min(inputs.len())];
            // Two values behind the end must survive.
            let mut hashes = vec![0xdead_beef; inputs.len() + 2];
            $toeplitz.$batch(inputs, &mut hashes);
            let expected = inputs.iter().map(|input| key.hash(input).unwrap());
            let expected: Vec<u32> = expected.chain([0xdead_beef; 2]).collect();
            assert_eq!(hashes, expected, "{:?}, {} inputs of {}", $toeplitz.path(), inputs.len(), $length);
        };
    }
    for toeplitz in paths(key) {
        check!(12, hash_batch_12, toeplitz);
        check!(36, hash_batch_36, toeplitz);
    }
}

#[test]
fn every_batch_length_and_alignment() {
    let bytes: Vec<u8> = (0..36 * 70 + 64_u32).map(|i| (i * i / 7 + i) as u8).collect();
    for count in 0..=67 {
        check_batches(&HashKey::MICROSOFT, &bytes, count % 64, count);
    }
    for toeplitz in paths(&HashKey::MICROSOFT) {
        // Fewer places than inputs.
        let mut hashes = [0; 5];
        toeplitz.hash_batch_12(&skewed::<12>(&bytes, 3)[..20], &mut hashes);
        assert_eq!(hashes[4], HashKey::MICROSOFT.hash(&skewed::<12>(&bytes, 3)[4]).unwrap());
    }
}

proptest! {
    #[test]
    fn fixed_lengths_agree(key in key(40_usize..=60), input in any::<[u8; 36]>()) {
        for toeplitz in paths(&key) {
            let path = toeplitz.path();
            let reference = |length: usize| key.hash(&input[..length]).unwrap();
            prop_assert_eq!(toeplitz.hash_8(input.first_chunk().unwrap()), reference(8), "{:?}", path);
            prop_assert_eq!(toeplitz.hash_12(input.first_chunk().unwrap()), reference(12), "{:?}", path);
            prop_assert_eq!(toeplitz.hash_32(input.first_chunk().unwrap()), reference(32), "{:?}", path);
            prop_assert_eq!(toeplitz.hash_36(&input), reference(36), "{:?}", path);
        }
    }

    #[test]
    fn any_length_agrees_or_is_refused(
        key in key(40_usize..=256),
        input in proptest::collection::vec(any::<u8>(), 0..=256),
    ) {
        let expected = key.hash(&input);
        prop_assert_eq!(expected.is_ok(), input.len() <= key.bytes().len() - 4);
        for toeplitz in paths(&key) {
            prop_assert_eq!(toeplitz.hash(&input), expected, "{:?}", toeplitz.path());
        }
    }

    #[test]
    fn batches_agree(
        key in key(40_usize..=60),
        bytes in proptest::collection::vec(any::<u8>(), 64..36 * 40),
        skew in 0_usize..64,
    ) {
        check_batches(&key, &bytes, skew, usize::MAX);
    }
}
