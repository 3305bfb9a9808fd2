//! How many frames a second the generator makes: `cargo run --release -p rxlane-traffic --example rate`.

use rxlane_traffic::{NAMED, Scenario, ScenarioError};
use std::hint::black_box;
use std::time::Instant;

const FRAMES: u32 = 2_000_000;

#[allow(clippy::print_stdout)]
fn main() -> Result<(), ScenarioError> {
    for named in &NAMED {
        let mut traffic = Scenario::named(named.name)?.with_flows(4096).generate(1)?;
        let mut rates: Vec<f64> = (0..5)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..FRAMES {
                    black_box(traffic.next_frame().bytes.len());
                }
                f64::from(FRAMES) / start.elapsed().as_secs_f64() / 1e6
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        println!("{:<12} {:5.1} million frames/s [{:.1}-{:.1}]", named.name, rates[2], rates[0], rates[4]);
    }
    Ok(())
}
