//! Putting the programs on an interface.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::about::{About, SIZE};
use crate::attachment::Attachment;
use crate::bpffs;
use crate::error::Error;
use crate::family::Family;
use crate::interface::{Interface, Mode, driver, namespace};
use crate::kernel::kernel;
use crate::layout::{BUCKETS, Bucket, CPUS, Class, Counts, Settings, map};
use crate::link;
use crate::load::{self, Maps, Programs, stride};
use crate::permission::{bpf_can_be_used, refused};
use crate::pins::{self, ABOUT, ARRIVE, LINK, Locked, STEER};
use crate::sys::{Map, map_type};
use kernel::cpu::{self, CpuSet};
use kernel::netlink::Link;

/// Largest queue that the kernel gives a CPU, frames (`__cpu_map_entry_alloc` and `cpu_map_update_elem` in
/// `kernel/bpf/cpumap.c`).
pub const LONGEST_QUEUE: u32 = 16384;

/// What [`attach`] is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where.
    pub interface: Interface,
    /// Run by whom. Never changed silently: what does not work in this mode is an error.
    pub mode: Mode,
    /// Settings of the programs. `cpus` and `spare` are filled in by [`attach`], whatever is in them.
    pub settings: Settings,
    /// The CPU of each bucket; each in `cpus`.
    pub buckets: [u32; BUCKETS],
    /// The target CPUs, each once, and how many frames the queue to each holds: 1 to [`LONGEST_QUEUE`].
    pub cpus: Vec<(u32, u32)>,
}

/// Attaches the programs.
///
/// Order: checks; lock; leftovers of a killed process cleared; programs loaded; maps filled; maps and programs pinned;
/// link made and pinned, which is the last step. So no frame meets a half-filled map, and a process that is killed at
/// any moment leaves a complete attachment or an interface without a program (and pins that the next `attach`,
/// [`Attachment::remove`] or [`clear_dead`](crate::clear_dead) clears).
///
/// Frames lost: none by this crate; a driver that resets its rings for XDP loses what they hold.
///
/// The kernel's own preconditions are met where that changes nothing that lasts: the limit of locked memory is raised
/// for this process (only where the kernel wants it, before 5.11), and a BPF file system is mounted on `/sys/fs/bpf`
/// where there is none, in the mount namespace that outlives this process.
///
/// # Errors
///
/// Any of [`Error`]; nothing is left behind.
pub fn attach(plan: &Plan) -> Result<Attachment, Error> {
    let frags = possible(plan)?;
    let locked = pins::create(Family::Steer, &plan.interface)?;
    // Under the lock and before anything of ours is in it: what is there, a killed process left.
    locked.empty()?;
    // Of two errors the first says more than that of cleaning up behind it.
    if let Err(error) = build(plan, frags, &locked) {
        let _ = locked.remove();
        return Err(error);
    }
    let attachment = locked.unlock().and_then(|folder| Attachment::of(plan.interface.clone(), folder));
    attachment.inspect_err(|_| drop(Attachment::remove(&plan.interface)))
}

/// What [`attach`] would find in its way, without changing anything: the driver's own refusal shows only when it is
/// asked to attach, the verifier's only when programs are loaded.
///
/// # Errors
///
/// As [`attach`].
pub fn check(plan: &Plan) -> Result<(), Error> {
    possible(plan).map(drop)
}

/// All that can be known before anything is changed. Gives whether the kernel takes the programs for frames of several
/// buffers.
fn possible(plan: &Plan) -> Result<bool, Error> {
    consistent(plan)?;
    cpus_are_up(plan)?;
    is_free(&plan.interface)?;
    let kernel = kernel();
    if kernel.cpumap_programs == Some(false) {
        return Err(Error::Kernel {
            feature: "programs in maps of CPUs (BPF_MAP_TYPE_CPUMAP)",
            needs: "Linux 5.9",
        });
    }
    Ok(kernel.frags != Some(false) && kernel.percpu_lookup != Some(false))
}

/// Whether a program could be pinned, and the interface has none.
pub(crate) fn is_free(interface: &Interface) -> Result<(), Error> {
    if interface.namespace != namespace()? {
        let problem = format!("{} is in another network namespace than this thread", interface.name);
        return Err(Error::Plan(problem));
    }
    // Gone, it says so.
    interface.link()?;
    bpf_can_be_used()?;
    bpffs::can_be_used()?;
    interface.is_free()
}

fn consistent(plan: &Plan) -> Result<(), Error> {
    let wrong = |problem: String| Err(Error::Plan(problem));
    if plan.cpus.is_empty() {
        return wrong("it names no CPU".to_owned());
    }
    for (index, &(cpu, queue)) in plan.cpus.iter().enumerate() {
        if cpu as usize >= CPUS {
            return wrong(format!("CPU {cpu} is beyond the {CPUS} that steering knows"));
        }
        if plan.cpus.iter().take(index).any(|&(before, _)| before == cpu) {
            return wrong(format!("it names CPU {cpu} twice"));
        }
        if !(1..=LONGEST_QUEUE).contains(&queue) {
            return wrong(format!(
                "a queue of {queue} frames for CPU {cpu}: the kernel takes 1 to {LONGEST_QUEUE}"
            ));
        }
    }
    let is_target = |cpu: u32| plan.cpus.iter().any(|&(target, _)| target == cpu);
    if let Some(bucket) = plan.buckets.iter().position(|&cpu| !is_target(cpu)) {
        return wrong(format!("bucket {bucket} has a CPU that is no target"));
    }
    let known = Class::ALL.iter().fold(0, |bits, class| bits | class.bit());
    if plan.settings.classes & known == 0 || plan.settings.classes & !known != 0 {
        return wrong(format!("{:#x} is no set of classes", plan.settings.classes));
    }
    if plan.settings.symmetric > 1 {
        return wrong(format!("symmetric is 0 or 1, not {}", plan.settings.symmetric));
    }
    Ok(())
}

fn cpus_are_up(plan: &Plan) -> Result<(), Error> {
    let unread = |source| Error::System { doing: "read which CPUs there are".to_owned(), source };
    let (possible, online) = (cpu::possible().map_err(unread)?, cpu::online().map_err(unread)?);
    for &(cpu, _) in &plan.cpus {
        if !possible.contains(cpu) {
            return Err(Error::NoCpu { cpu, possible: possible.list() });
        }
        if !online.contains(cpu) {
            return Err(Error::CpuOffline { cpu });
        }
    }
    Ok(())
}

/// The error that names the program on an interface.
pub(crate) fn occupied(interface: &Interface) -> Result<Error, Error> {
    let name = interface.name.clone();
    Ok(match interface.program()? {
        Some(program) => match (&program.ours, &program.envelope) {
            (Some(attached), _) => Family::Steer.attached(&name, attached),
            (None, Some(attached)) => Family::Envelope.attached(&name, attached),
            (None, None) => Error::Foreign { interface: name, program: Box::new(program) },
        },
        // It was taken off since.
        None => Error::Locked { interface: name },
    })
}

/// Loads, fills, pins, and attaches last.
fn build(plan: &Plan, frags: bool, locked: &Locked) -> Result<(), Error> {
    let system = |doing: &str| {
        let doing = doing.to_owned();
        |source| Error::System { doing, source }
    };
    let possible = cpu::possible().map_err(system("read which CPUs there are"))?;
    let highest = possible.iter().last().unwrap_or_default();
    let entries = highest.saturating_add(1).min(CPUS as u32);
    let settings = Settings { cpus: entries, spare: 0, ..plan.settings };
    let (programs, maps) = load::load(load::objects(frags), &settings, entries, locked)?;
    fill(plan, &programs, &maps)?;
    let about = about(&About { frags, settings })
        .map_err(|source| refused(format!("make the map {ABOUT}"), source))?;
    let folder = &locked.0;
    folder.pin(about.fd(), ABOUT)?;
    folder.pin(programs.arrive.as_fd(), ARRIVE)?;
    folder.pin(programs.steer.as_fd(), STEER)?;
    // From here to the pin, the program is on the interface only as long as this process lives.
    let link = create_link(&plan.interface, plan.mode, programs.steer.as_fd())?;
    folder.pin(link.as_fd(), LINK)
}

fn about(about: &About) -> io::Result<Map> {
    let map = Map::create(map_type::ARRAY, SIZE as u32, 1, ABOUT)?;
    map.update(0, &about.to_octets())?;
    Ok(map)
}

fn fill(plan: &Plan, programs: &Programs, maps: &Maps) -> Result<(), Error> {
    let failed = |map: &str| {
        let doing = format!("fill the map {map}");
        |source| refused(doing, source)
    };
    for (number, &cpu) in (0..).zip(&plan.buckets) {
        let bucket = Bucket { cpu, spare: 0, lost: 0 };
        maps.buckets.update(number, &bucket_to_octets(&bucket)).map_err(failed(map::BUCKETS))?;
    }
    maps.counts
        .update(0, &counts_at_start(plan, maps).map_err(failed(map::COUNTS))?)
        .map_err(failed(map::COUNTS))?;
    for &(cpu, queue) in &plan.cpus {
        use std::os::fd::AsRawFd;
        // struct bpf_cpumap_val: the size of the queue, the program.
        let program = programs.arrive.as_raw_fd();
        let entry = [queue.to_ne_bytes(), program.to_ne_bytes()].concat();
        maps.cpus.update(cpu, &entry).map_err(|source| match source.raw_os_error() {
            Some(libc::ENODEV) => {
                Error::NoCpu { cpu, possible: cpu::possible().map(CpuSet::list).unwrap_or_default() }
            }
            _ => refused(format!("make a queue of {queue} frames to CPU {cpu}"), source),
        })?;
    }
    Ok(())
}

/// The values of all CPUs: nothing counted, every bucket where it should be.
fn counts_at_start(plan: &Plan, maps: &Maps) -> io::Result<Vec<u8>> {
    let mut one = vec![0; stride(&maps.counts)];
    let current: Vec<u8> = plan.buckets.iter().flat_map(|cpu| cpu.to_ne_bytes()).collect();
    let put = |value: &mut [u8], offset: usize, octets: &[u8]| {
        if let Some(place) = value.get_mut(offset..offset + octets.len()) {
            place.copy_from_slice(octets);
        }
    };
    put(&mut one, offset_of!(Counts, current), &current);
    let mut all = Vec::new();
    for own in cpu::possible()?.iter() {
        put(&mut one, offset_of!(Counts, own_cpu), &own.to_ne_bytes());
        all.extend_from_slice(&one);
    }
    Ok(all)
}

/// A bucket as it is in memory.
pub(crate) fn bucket_to_octets(bucket: &Bucket) -> Vec<u8> {
    let &Bucket { cpu, spare, lost } = bucket;
    [&cpu.to_ne_bytes()[..], &spare.to_ne_bytes(), &lost.to_ne_bytes()].concat()
}

/// Puts a program on an interface, for as long as the link is open or pinned.
pub(crate) fn create_link(
    interface: &Interface,
    mode: Mode,
    program: BorrowedFd<'_>,
) -> Result<OwnedFd, Error> {
    let refusal = match link::create(interface.index, program, mode) {
        Ok(link) => return Ok(link),
        Err(refusal) => refusal,
    };
    let known = interface.link()?;
    match refusal.error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) if known.xdp.is_some() => Err(occupied(interface)?),
        Some(libc::EPERM | libc::EACCES) => {
            Err(refused(format!("attach to {}", interface.name), refusal.error))
        }
        Some(libc::EOPNOTSUPP) if mode == Mode::Native => Err(Error::NoNative {
            interface: interface.name.clone(),
            driver: driver(&known),
            said: refusal.message,
        }),
        number => Err(Error::Refused {
            interface: interface.name.clone(),
            mode,
            driver: driver(&known),
            advice: advice(number, &known, mode, refusal.message.is_some()),
            said: refusal.message,
            source: refusal.error,
        }),
    }
}

/// The way out, and where the driver does not say what is wrong, what usually is.
fn advice(number: Option<i32>, link: &Link, mode: Mode, has_said: bool) -> Option<String> {
    if mode == Mode::Generic {
        return None;
    }
    let generic = "`--mode generic` asks nothing of the driver".to_owned();
    let name = &link.name;
    let mtu = format!(" (it is {})", link.mtu);
    let causes = match number? {
        libc::EINVAL | libc::ERANGE => format!(
            "an MTU that is too long for XDP{mtu}, LRO (`ethtool -K {name} lro off`), header split or too many queues \
             (`ethtool -L {name}`)"
        ),
        libc::ENOMEM | libc::ENOSPC => format!(
            "that XDP takes transmit queues of its own, of which fewer receive queues (`ethtool -L {name}`) leave some"
        ),
        _ => return Some(generic),
    };
    if has_said {
        return Some(generic);
    }
    Some(format!("the usual cause is {causes}; the kernel's log may say which; {generic}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Interface;
    use testkit::netns::{Namespace, Veth, probe};
    use testkit::require;

    /// No kernel here is old enough to want them; that they load, pass the verifier and can be attached is seen here.
    #[test]
    fn the_programs_for_older_kernels_are_attached() {
        let Some(()) = require("bpf", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth { queues: 2, ..Veth::pair("wan0", "peer0") }).expect("a pair");
        let frags = namespace.inside(|| {
            let interface = Interface::find("wan0")?;
            let mut plan = Plan { interface: interface.clone(), cpus: vec![(0, 512)], ..plan() };
            plan.buckets = [0; _];
            let locked = pins::create(Family::Steer, &interface)?;
            build(&plan, false, &locked).and_then(|()| {
                let attachment = Attachment::of(interface, locked.unlock()?)?;
                let frags = attachment.frags();
                attachment.detach(std::time::Duration::from_secs(1))?;
                Ok(frags)
            })
        });
        assert!(!frags.expect("attached"));
    }

    fn plan() -> Plan {
        let settings = Settings {
            key: [7; _],
            classes: Class::Pppoe.bit(),
            symmetric: 0,
            cpus: 0,
            spare: 0,
            hold_ns: 1,
        };
        Plan {
            interface: Interface { name: "wan0".to_owned(), index: 7, namespace: 1 },
            mode: Mode::Native,
            settings,
            buckets: std::array::from_fn(|bucket| bucket as u32 % 2),
            cpus: vec![(0, 512), (1, 512)],
        }
    }

    #[test]
    fn a_plan_that_contradicts_itself_is_refused_with_the_reason() {
        assert!(consistent(&plan()).is_ok());
        type Change = fn(&mut Plan);
        let cases: [(Change, &str); 8] = [
            (|plan| plan.cpus.clear(), "no CPU"),
            (|plan| plan.cpus.push((1, 512)), "CPU 1 twice"),
            (|plan| plan.cpus.push((1024, 512)), "CPU 1024 is beyond"),
            (|plan| plan.cpus[1].1 = 0, "queue of 0"),
            (|plan| plan.cpus[1].1 = LONGEST_QUEUE + 1, "queue of 16385"),
            (|plan| plan.buckets[9] = 2, "bucket 9"),
            (|plan| plan.settings.classes = 0, "no set of classes"),
            (|plan| plan.settings.classes = 1 << 31, "no set of classes"),
        ];
        for (change, said) in cases {
            let mut plan = plan();
            change(&mut plan);
            let error = consistent(&plan).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
