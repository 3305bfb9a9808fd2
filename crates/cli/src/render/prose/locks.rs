//! Locks of the kernel in words: what they protect, and how CPUs wait less for them.

use doctor::facts::Lock;

pub(super) fn lock(lock: Lock) -> &'static str {
    match lock {
        Lock::TransmitQueue => "a transmit queue or its queue discipline",
        Lock::Conntrack => "the connection table",
        Lock::Iommu => "the IOMMU's addresses",
        Lock::Pages => "the allocator of pages",
        Lock::Slab => "the allocator of small objects",
        Lock::Backlog => "a CPU's backlog",
        Lock::Ppp => "a PPP interface",
        Lock::Socket => "a socket",
    }
}

pub(super) fn less_contention(lock: Lock) -> &'static str {
    match lock {
        Lock::TransmitQueue => {
            "a queue discipline for each transmit queue (`mq` as root, `tc qdisc show` shows what there is), as many transmit queues \
             as CPUs, XPS; a shaper of the whole interface cannot be divided so"
        }
        Lock::Conntrack => {
            "as many buckets of the connection table as entries (net.netfilter.nf_conntrack_buckets), and `notrack` rules for what \
             needs no tracking"
        }
        Lock::Iommu => "`iommu.passthrough=1` on the kernel's command line, where the devices are trusted",
        Lock::Pages | Lock::Slab => {
            "fewer buffers that one CPU takes and another gives back: GRO, fewer CPUs in RPS masks and in steering, a newer driver \
             that recycles its pages"
        }
        Lock::Backlog => "an RPS mask of more CPUs, none of which takes interrupts",
        Lock::Ppp => "a fast path for forwarded flows; packets of one session take this lock in turn",
        Lock::Socket => "several sockets for what one receives (SO_REUSEPORT)",
    }
}
