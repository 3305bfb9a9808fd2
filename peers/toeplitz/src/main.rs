//! The Toeplitz hash of rxlane against DPDK's `rte_softrss`, `rte_thash_gfni` and `rte_thash_gfni_bulk`.
//!
//! Both are called in one program, turn by turn, over the same 8192 random inputs, and timed in CPU time of
//! the thread. Before anything is measured every variant has to give the same hashes. DPDK's functions are
//! inlined into C loops compiled for this very processor (-march=native), rxlane's are compiled for any
//! x86-64 and choose at run time, as in a program that is installed from a package.

mod dpdk;
mod measure;

use dpdk::Dpdk;
use measure::compare;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rxlane_rss::{HashKey, Path, Toeplitz};
use std::hint::black_box;
use std::process::ExitCode;

const INPUTS: usize = 8192;

fn inputs<const N: usize>(generator: &mut impl Rng) -> Vec<[u8; N]> {
    let mut inputs = vec![[0; N]; INPUTS];
    inputs.iter_mut().for_each(|input| generator.fill_bytes(input));
    inputs
}

/// The calls of rxlane that depend on the input's length.
trait Length<const N: usize> {
    fn single(&self, input: &[u8; N]) -> u32;
    fn batch(&self, inputs: &[[u8; N]], hashes: &mut [u32]);
}

impl Length<12> for Toeplitz {
    #[inline(always)]
    fn single(&self, input: &[u8; 12]) -> u32 {
        self.hash_12(input)
    }

    fn batch(&self, inputs: &[[u8; 12]], hashes: &mut [u32]) {
        self.hash_batch_12(inputs, hashes);
    }
}

impl Length<36> for Toeplitz {
    #[inline(always)]
    fn single(&self, input: &[u8; 36]) -> u32 {
        self.hash_36(input)
    }

    fn batch(&self, inputs: &[[u8; 36]], hashes: &mut [u32]) {
        self.hash_batch_36(inputs, hashes);
    }
}

fn singles<const N: usize>(toeplitz: &Toeplitz, inputs: &[[u8; N]], hashes: &mut [u32])
where
    Toeplitz: Length<N>,
{
    for (hash, input) in hashes.iter_mut().zip(inputs) {
        *hash = toeplitz.single(input);
    }
}

fn chain_into<const N: usize>(toeplitz: &Toeplitz, inputs: &[[u8; N]]) -> u32
where
    Toeplitz: Length<N>,
{
    inputs.iter().fold(0, |hash: u32, input| {
        let mut input = *input;
        if let Some(first) = input.first_chunk_mut() {
            *first = (u32::from_ne_bytes(*first) ^ hash).to_ne_bytes();
        }
        toeplitz.single(&input)
    })
}

fn chain_choice<const N: usize>(toeplitz: &Toeplitz, inputs: &[[u8; N]]) -> u32
where
    Toeplitz: Length<N>,
{
    let Some(few) = inputs.first_chunk::<64>() else { return 0 };
    (0..inputs.len()).fold(0, |hash: u32, i| toeplitz.single(&few[i.wrapping_add(hash as usize) & 63]))
}

/// What is required of each comparison, in the order in which they are made.
struct Targets {
    portable: f64,
    latency: f64,
    single: f64,
    batch: f64,
}

/// Checks that all agree, then measures. The error names who disagrees.
fn bench<const N: usize>(name: &str, generator: &mut impl Rng, targets: Targets) -> Result<(), String>
where
    Toeplitz: Length<N>,
{
    let inputs: Vec<[u8; N]> = inputs(generator);
    let key = HashKey::MICROSOFT;
    let bytes = key.bytes().try_into().map_err(|_| "the key has 40 bytes")?;
    let peer = Dpdk::new(bytes, &inputs);
    // What this processor lacks is left out below.
    let path = |path| Toeplitz::with_path(&key, path).map_err(|error| error.to_string());
    let tables = path(Path::Tables)?;
    let best = Toeplitz::new(&key).map_err(|error| error.to_string())?;
    let (mut peers, mut own) = (vec![0; INPUTS], vec![0; INPUTS]);

    peer.softrss(&mut peers);
    let expected = peers.clone();
    let same = |who: &str, hashes: &[u32]| match hashes == expected {
        true => Ok(()),
        false => Err(format!("{name}: {who} differs from rte_softrss")),
    };
    for toeplitz in Path::ALL.into_iter().filter_map(|p| path(p).ok()) {
        singles(&toeplitz, &inputs, &mut own);
        same(&format!("{} single", toeplitz.path()), &own)?;
        own.fill(0);
        toeplitz.batch(&inputs, &mut own);
        same(&format!("{} batch", toeplitz.path()), &own)?;
    }
    let line = |what: &str, peer: &str| format!("{name} {what} : {peer}");
    compare(
        &line("tables", "rte_softrss"),
        INPUTS,
        targets.portable,
        &mut || peer.softrss(black_box(&mut peers)),
        &mut || singles(black_box(&tables), &inputs, &mut own),
    );
    if !dpdk::has_gfni() {
        println!("{name}: rte_thash_gfni is not compiled in or this processor lacks GFNI; not compared");
        return Ok(());
    }
    peer.gfni(&mut peers);
    same("rte_thash_gfni", &peers)?;
    peer.bulk(&mut peers);
    same("rte_thash_gfni_bulk", &peers)?;
    if peer.chain_into() != chain_into(&best, &inputs) || peer.chain_choice() != chain_choice(&best, &inputs)
    {
        return Err(format!("{name}: chained hashes differ"));
    }
    let single = format!("{} single", best.path());
    for (who, toeplitz) in [(&single, &best), (&"tables single".to_owned(), &tables)] {
        compare(
            &line(&format!("{who}, latency (into)"), "gfni"),
            INPUTS,
            targets.latency,
            &mut || _ = black_box(peer.chain_into()),
            &mut || _ = black_box(chain_into(black_box(toeplitz), &inputs)),
        );
        compare(
            &line(&format!("{who}, latency (choice)"), "gfni"),
            INPUTS,
            targets.latency,
            &mut || _ = black_box(peer.chain_choice()),
            &mut || _ = black_box(chain_choice(black_box(toeplitz), &inputs)),
        );
    }
    compare(
        &line(&single, "gfni"),
        INPUTS,
        targets.single,
        &mut || peer.gfni(black_box(&mut peers)),
        &mut || singles(black_box(&best), &inputs, &mut own),
    );
    for toeplitz in [Path::Pclmul, Path::Vpclmul, Path::Gfni].into_iter().filter_map(|p| path(p).ok()) {
        compare(
            &line(&format!("{} batch", toeplitz.path()), "gfni_bulk"),
            INPUTS,
            targets.batch,
            &mut || peer.bulk(black_box(&mut peers)),
            &mut || toeplitz.batch(black_box(&inputs), &mut own),
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
    println!(
        "{:<46} {:>22} {:>20} {:>23}  target\n{:<46} {:>22} {:>20}",
        "median [least-greatest] of 31 turns",
        "DPDK, ns a hash",
        "rxlane, ns a hash",
        "times faster",
        "",
        "",
        ""
    );
    let ipv4 = Targets { portable: 15.0, latency: 2.0, single: 1.0, batch: 3.5 };
    let ipv6 = Targets { portable: 10.0, latency: 2.0, single: 1.3, batch: 2.0 };
    let result =
        bench::<12>("IPv4", &mut generator, ipv4).and_then(|()| bench::<36>("IPv6", &mut generator, ipv6));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-toeplitz: {error}");
            ExitCode::FAILURE
        }
    }
}
