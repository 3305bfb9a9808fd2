//! `rxlane bench send --remote`.

use super::super::stop_by_signals;
use super::address;
use crate::output::{CommandResult, Lacks, Outcome, Output};
use anyhow::anyhow;
use bench::request::{self, Served};
use bench::udp::PORT;
use format::{plural, printable, thousands};
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;

/// Sends what the targets ask for, until a signal ends it. Listens on `own`, or on all addresses.
pub fn serve(out: &mut Output, targets: &[String], own: Option<IpAddr>) -> CommandResult {
    let from = targets.iter().map(|target| Ok(address(target)?.ip().to_canonical()));
    let from = from.collect::<anyhow::Result<Vec<IpAddr>>>()?;
    let stop = stop_by_signals()?;
    writeln!(out, "Sending what {} asks for (TCP port {PORT}); SIGINT (^C) ends it.", targets.join(" or "))?;
    out.flush()?;
    let (mut result, mut is_any) = (Ok(()), false);
    let mut report = |served: &Served| {
        is_any |= served.result.is_ok();
        result = print(out, served);
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let mut serve =
        |address: IpAddr| request::serve(SocketAddr::new(address, PORT), &from, &stop, &mut report);
    let served = match own {
        Some(own) => serve(own),
        // A kernel without IPv6 has IPv4.
        None => match serve(Ipv6Addr::UNSPECIFIED.into()) {
            Err(error) if error.kind() != ErrorKind::AddrInUse => serve(Ipv4Addr::UNSPECIFIED.into()),
            served => served,
        },
    };
    served.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            anyhow!("TCP port {PORT} is taken: does another rxlane bench send --remote run?")
        }
        _ => Lacks(format!("cannot listen on TCP port {PORT}: {error}")).into(),
    })?;
    result?;
    Ok(if is_any { Outcome::Success } else { Outcome::Negative })
}

fn print(out: &mut Output, Served { from, request, result }: &Served) -> io::Result<()> {
    let requested = request.as_ref().map_or_else(String::new, |request| {
        let (threads, flows) =
            (plural(request.threads.into(), "thread"), plural(request.flows.into(), "flow"));
        format!(" for {threads}, {flows}, {} bytes", request.payload)
    });
    let from = from.ip().to_canonical();
    match result {
        Ok(answer) => {
            let (sent, rate) =
                (thousands(answer.sent), thousands((answer.sent as f64 / answer.seconds) as u64));
            writeln!(
                out,
                "{from} asked{requested}: {sent} sent in {:.1} s, {rate} packets/s",
                answer.seconds
            )?;
        }
        Err(why) => writeln!(out, "{from} asked{requested}: {}", printable(why))?,
    }
    out.flush()
}
