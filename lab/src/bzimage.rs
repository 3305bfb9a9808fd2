//! The kernel in Linux's image for x86 (<https://docs.kernel.org/arch/x86/boot.html>): QEMU starts the bare one, too, by the
//! entry of PVH, and a guest that need not unpack it saves 2 s of an emulated CPU.

use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Offsets of fields of the setup header, bytes from the start of the file.
const SETUP_SECTORS: usize = 0x1f1;
const MAGIC: usize = 0x202;
const PAYLOAD: usize = 0x248;
const PAYLOAD_LENGTH: usize = 0x24c;

/// Behind a packed payload stands its unpacked size.
const SIZE: usize = 4;

/// Writes the bare kernel of `image`, an ELF file, to `bare`.
///
/// # Errors
///
/// `image` is no such image, is packed in another way than Debian's, or what unpacks it is missing; `bare` cannot be written.
pub(crate) fn unpack(image: &Path, bare: &Path) -> Result<()> {
    let bytes = fs::read(image).with_context(|| format!("{}", image.display()))?;
    let packed = payload(&bytes).with_context(|| format!("{} is no bzImage", image.display()))?;
    let unpack = match packed {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "xz",
        _ => anyhow::bail!("{}: neither zstd nor xz", image.display()),
    };
    let mut input = tempfile::tempfile()?;
    input.write_all(packed)?;
    input.rewind()?;
    let output = File::create(bare).with_context(|| format!("{}", bare.display()))?;
    let done = Command::new(unpack).arg("-dc").stdin(input).stdout(output).stderr(Stdio::null()).status();
    let done = done.with_context(|| format!("{unpack} (make deps installs it)"))?;
    ensure!(done.success(), "{}: {unpack} cannot unpack it", image.display());
    Ok(())
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| image.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    (image.get(MAGIC..MAGIC + 4)? == b"HdrS").then_some(())?;
    // The boot sector is one more; 0 is 4, for old programs that boot.
    let sectors = match *image.get(SETUP_SECTORS)? {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * 512 + usize::try_from(number(PAYLOAD)?).ok()?;
    let length = usize::try_from(number(PAYLOAD_LENGTH)?).ok()?.checked_sub(SIZE)?;
    image.get(start..start.checked_add(length)?)
}
