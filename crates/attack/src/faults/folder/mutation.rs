//! Ways to damage one file, each a function of a seed.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use goodput_model::random::{Domain, RandomStream};

use crate::case::Skip;

/// A kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// Bytes that are cut off, flipped, zeroed or there twice.
    Bytes,
    /// Numbers that are no longer what they were.
    Numbers,
    /// Frames of a log with right checksums and wrong content.
    Frames,
    /// Something else in the place of the file.
    Places,
    /// A gigabyte that takes no room.
    Sparse,
    /// As much as a file of its kind may hold, of what takes most memory.
    Bulk,
}

/// One damage to one file.
pub(super) struct Mutation {
    pub(super) name: String,
    change: FolderChange,
}

enum FolderChange {
    Bytes(Vec<u8>),
    Gone,
    Folder,
    Pipe,
    Socket,
    Link(PathBuf),
    /// These bytes, then zeros without room on the disk.
    Sparse(Vec<u8>),
}

/// Extreme numbers.
const ODD: [&str; 8] =
    ["-1", "0", "1e308", "18446744073709551616", "9223372036854775807", "nan", "1e-320", "\"\""];

/// Varints that are as large as they can be, and larger.
const VARINTS: [&[u8]; 2] =
    [&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], &[0xff; 11]];

const SEED: u64 = 20_261_118;
const HEAD: usize = 8;

impl Family {
    pub(super) const ALL: [Self; 6] =
        [Self::Bytes, Self::Numbers, Self::Frames, Self::Places, Self::Sparse, Self::Bulk];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bytes => "damaged bytes",
            Self::Numbers => "odd numbers",
            Self::Frames => "wrong frames",
            Self::Places => "links, pipes and gaps",
            Self::Sparse => "a sparse gigabyte",
            Self::Bulk => "files at their limit",
        }
    }

    /// The damages of this kind that a file can have. `mine` is a file outside of the folder.
    pub(super) fn mutations(self, file: &str, whole: &[u8], mine: &Path) -> Vec<Mutation> {
        let index = file
            .bytes()
            .fold(u64::from(self as u8), |sum, byte| sum * 31 % 65_521 + u64::from(byte));
        let mut random = RandomStream::new(SEED, Domain::Sampling, index);
        let is_log = file_ending(file) == Some("log");
        match self {
            Self::Bytes => (0..2).flat_map(|_| byte_mutations(&mut random, whole)).collect(),
            Self::Numbers if is_log => Vec::new(),
            Self::Numbers => ODD.iter().map(|odd| odd_number(&mut random, whole, odd)).collect(),
            Self::Frames if is_log => frame_mutations(&mut random, whole),
            Self::Frames => Vec::new(),
            Self::Places => path_mutations(mine),
            Self::Bulk => bulk_mutations(file),
            Self::Sparse => [whole.len(), HEAD.min(whole.len()), 0]
                .map(|kept| {
                    Mutation::new(
                        format!("{kept} bytes and zeros"),
                        FolderChange::Sparse(whole[..kept].to_vec()),
                    )
                })
                .into(),
        }
    }
}

impl Mutation {
    fn new(name: impl Into<String>, change: FolderChange) -> Self {
        Self { name: name.into(), change }
    }

    pub(super) fn is_not_plain(&self) -> bool {
        !matches!(
            self.change,
            FolderChange::Bytes(_) | FolderChange::Sparse(_) | FolderChange::Gone
        )
    }

    /// Puts it in the place of the file.
    pub(super) fn apply(&self, path: &Path) -> Result<(), Skip> {
        remove_path(path)?;
        match &self.change {
            FolderChange::Bytes(bytes) => fs::write(path, bytes)?,
            FolderChange::Gone => {}
            FolderChange::Folder => fs::create_dir(path)?,
            FolderChange::Socket => drop(UnixListener::bind(path)?),
            FolderChange::Link(to) => symlink(to, path)?,
            FolderChange::Pipe => {
                let made = Command::new("mkfifo").arg(path).status()?;
                if !made.success() {
                    return Err(Skip::Unavailable("no mkfifo".to_owned()));
                }
            }
            FolderChange::Sparse(bytes) => {
                fs::write(path, bytes)?;
                File::options().write(true).open(path)?.set_len(1 << 30)?;
            }
        }
        Ok(())
    }
}

fn file_ending(file: &str) -> Option<&str> {
    Path::new(file).extension()?.to_str()
}

/// Removes whatever is there, and follows no link.
pub(super) fn remove_path(path: &Path) -> std::io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

fn byte_mutations(random: &mut RandomStream, whole: &[u8]) -> Vec<Mutation> {
    let length = whole.len() as u64;
    let mut at = || random.next_below(length) as usize;
    let (cut, zero, twice) = (at(), at(), at());
    let flips: Vec<usize> = (0..4).map(|_| at()).collect();
    let (mut flipped, mut zeroed) = (whole.to_vec(), whole.to_vec());
    for place in flips {
        flipped[place] ^= 1 << (place % 8);
    }
    let end = whole.len().min(zero + 64);
    zeroed[zero..end].fill(0);
    let doubled = [&whole[..twice], &whole[twice / 2..]].concat();
    [
        (format!("cut at {cut}"), whole[..cut].to_vec()),
        ("four flipped bits".to_owned(), flipped),
        (format!("zeros at {zero}"), zeroed),
        (format!("twice up to {twice}"), doubled),
    ]
    .map(|(name, bytes)| Mutation::new(name, FolderChange::Bytes(bytes)))
    .into()
}

/// One number of a text, chosen by chance, becomes another one.
fn odd_number(random: &mut RandomStream, whole: &[u8], odd: &str) -> Mutation {
    let is_part = |at: usize| whole.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'.');
    let begins: Vec<usize> =
        (1..whole.len()).filter(|&at| whole[at].is_ascii_digit() && !is_part(at - 1)).collect();
    let Some(&begin) = begins.get(random.next_below(begins.len() as u64) as usize) else {
        return Mutation::new("no number", FolderChange::Gone);
    };
    let end = (begin..=whole.len()).find(|&at| !is_part(at)).unwrap_or(begin);
    let changed = [&whole[..begin], odd.as_bytes(), &whole[end..]].concat();
    Mutation::new(format!("{odd} at {begin}"), FolderChange::Bytes(changed))
}

fn path_mutations(mine: &Path) -> Vec<Mutation> {
    vec![
        Mutation::new("removal", FolderChange::Gone),
        Mutation::new("a folder in place", FolderChange::Folder),
        Mutation::new("a pipe in place", FolderChange::Pipe),
        Mutation::new("a socket in place", FolderChange::Socket),
        Mutation::new("a link to /dev/zero", FolderChange::Link("/dev/zero".into())),
        Mutation::new("a link to a file elsewhere", FolderChange::Link(mine.to_owned())),
        Mutation::new("a link to nothing", FolderChange::Link("nowhere".into())),
    ]
}

/// 16 MiB may be in a plan, a manifest and the like, 64 MiB in a summary.
fn bulk_mutations(file: &str) -> Vec<Mutation> {
    let (small, large) = ((16 << 20) - 64, (64 << 20) - 64);
    let zeros = |size: usize| format!("{{\"x\":[{}0]}}", "0,".repeat(size / 2 - 8));
    let texts = match file.rsplit('/').next() {
        Some("summary.json") => vec![("zeros", zeros(large))],
        Some("manifest.json" | "asks.jsonl") => vec![("zeros", zeros(small))],
        _ if file_ending(file) == Some("toml") => vec![
            ("brackets", format!("a = {}", "[".repeat(small))),
            ("empty lines", "\n".repeat(small)),
        ],
        _ => Vec::new(),
    };
    let made = |(name, text): (&str, String)| {
        Mutation::new(format!("{name} to the limit"), FolderChange::Bytes(text.into_bytes()))
    };
    texts.into_iter().map(made).collect()
}

fn frame_mutations(random: &mut RandomStream, whole: &[u8]) -> Vec<Mutation> {
    let messages = split_messages(whole);
    let Some(longest) = messages.iter().max_by_key(|message| message.len()) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut add = |name: String, messages: &[Vec<u8>]| {
        all.push(Mutation::new(name, FolderChange::Bytes(frame_messages(whole, messages))));
    };
    for _ in 0..4 {
        let mut changed = messages.clone();
        let at = random.next_below(changed.len() as u64) as usize;
        let place = random.next_below(changed[at].len().max(1) as u64) as usize;
        if let Some(byte) = changed[at].get_mut(place) {
            *byte = random.next_bits() as u8;
        }
        add(format!("byte {place} of frame {at}"), &changed);
        let varint = VARINTS[place % 2];
        changed[at]
            .splice(place..(place + 1).min(longest.len()).max(place), varint.iter().copied());
        add(format!("a huge number at {place} of frame {at}"), &changed);
    }
    // Field 4 is an instant, field 19 a list of gaps, fields 6 and 25 are text.
    for field in [1u8, 3, 4, 5, 9, 15] {
        let large = [&[field << 3][..], VARINTS[0]].concat();
        let changed: Vec<Vec<u8>> = messages.iter().map(|m| [&m[..], &large].concat()).collect();
        add(format!("field {field} at its largest"), &changed);
    }
    let text = |m: &Vec<u8>| [&m[..], b"\x32\x0b<b>\x1b[2J\x07</b"].concat();
    add("control characters".to_owned(), &messages.iter().map(text).collect::<Vec<_>>());
    add("frames thrice".to_owned(), &[&messages[..], &messages, &messages].concat());
    add("reverse order".to_owned(), &messages.iter().rev().cloned().collect::<Vec<_>>());
    add("empty frames".to_owned(), &vec![Vec::new(); 9]);
    add("a frame of a mebibyte".to_owned(), &[vec![8; 1 << 20], longest.clone()]);
    all
}

/// The messages of a log.
fn split_messages(whole: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut rest = whole.get(HEAD..).unwrap_or_default();
    while let Some((head, behind)) = rest.split_at_checked(HEAD) {
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some((message, next)) = behind.split_at_checked(length) else { break };
        all.push(message.to_vec());
        rest = next;
    }
    all
}

/// A log of these messages, with the checksums that they should have.
fn frame_messages(whole: &[u8], messages: &[Vec<u8>]) -> Vec<u8> {
    let mut log = whole[..HEAD].to_vec();
    for message in messages {
        log.extend((message.len() as u32).to_le_bytes());
        log.extend(checksum(message).to_le_bytes());
        log.extend(message);
    }
    log
}

/// CRC-32 as in zip files.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), step))
}
