//! Functions of the kernel's PPPoE driver: lines of `/proc/kallsyms`, and of its BTF by `bpftool btf dump` or `strings`.
//!
//! `pppoe_gro_receive` (drivers/net/ppp/pppoe.c) came with Linux 7.2 and was backported, so that a release alone says little. That it
//! is missing shows only in a listing of the whole driver: a driver that is not loaded has no names at all, and `grep pppoe_r` shows
//! some of those of one that is.

use super::{Context, Line, Outcome, Section, Tool};
use crate::{Fact, PppoeDriver, Snapshot, Symbols};

/// `/proc/kallsyms` (`s_show()` in kernel/kallsyms.c), and `nm` of the module, which prints the same.
pub(super) static KALLSYMS: Tool = Tool {
    name: "/proc/kallsyms",
    command: |command| command.reads("/proc/kallsyms"),
    heading: |text| symbol(text).is_some_and(|name| name.starts_with(PREFIX)),
    open: |context| Box::new(Names::new(Symbols::Kallsyms, context)),
};

/// The types of the driver, or of a kernel that has it built in.
pub(super) static BTF: Tool = Tool {
    name: "/sys/kernel/btf",
    command: |command| {
        matches!(command.program, "bpftool" | "strings")
            && command.path.is_some_and(|path| path.starts_with("/sys/kernel/btf/"))
    },
    heading: |text| dumped(text).is_some_and(|name| name.starts_with(PREFIX)),
    open: |context| Box::new(Names::new(Symbols::Btf, context)),
};

const PREFIX: &str = "pppoe_";
/// Coalesces what is in PPPoE.
const COALESCES: &str = "pppoe_gro_receive";
/// In every driver that there is.
const RECEIVES: &str = "pppoe_rcv";
/// So many names are those of the whole driver, which has more than twenty (Linux 5.10 to 7.3).
const WHOLE: usize = 8;

struct Names {
    symbols: Symbols,
    /// Whether something between the kernel and the text may have cut the listing.
    is_cut: bool,
    names: usize,
    receives: Option<Fact<PppoeDriver>>,
}

impl Names {
    fn new(symbols: Symbols, context: &Context) -> Names {
        let mut words = context.command.iter().flat_map(|command| command.split_whitespace());
        let is_cut = words.any(|word| matches!(word, "head" | "tail"));
        Names { symbols, is_cut, names: 0, receives: None }
    }
}

impl Section for Names {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        let name = match self.symbols {
            Symbols::Kallsyms => symbol(text),
            // `strings` prints nothing but the name.
            Symbols::Btf => {
                dumped(text).or_else(|| (line.command.is_some() && is_name(text)).then_some(text))
            }
        };
        let Some(name) = name else { return Outcome::Over };
        // Compilers append `.llvm.1234` and the like.
        let name = name.split('.').next().unwrap_or(name);
        if !name.starts_with(PREFIX) {
            return Outcome::Taken;
        }
        self.names += 1;
        let fact = |coalesces| line.fact(PppoeDriver { coalesces, symbols: self.symbols });
        match name {
            COALESCES => snapshot.pppoe_driver = Some(fact(true)),
            RECEIVES => self.receives = Some(fact(false)),
            _ => {}
        }
        Outcome::Taken
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        if self.names >= WHOLE && !self.is_cut && snapshot.pppoe_driver.is_none() {
            snapshot.pppoe_driver = self.receives.take();
        }
    }
}

/// The name in `ffffffffc0a5b2d0 t pppoe_rcv [pppoe]`; addresses are zeros for whoever may not see them.
fn symbol(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let is_address = matches!(address.len(), 8 | 16) && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_end = words.next().is_none_or(|module| module.starts_with('['));
    (is_address && kind.len() == 1 && is_name(name) && is_end).then_some(name)
}

/// The name in `[131072] FUNC 'pppoe_rcv' type_id=131071 linkage=static`.
fn dumped(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix('[')?.split_once("] ")?;
    let (kind, rest) = rest.split_once(" '")?;
    let (name, _) = rest.split_once('\'')?;
    (kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') && is_name(name)).then_some(name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'))
}
