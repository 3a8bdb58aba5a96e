//! Whether bytes are a whole image: beginning, size and end, without decoding the pixels.

const NOT_AN_IMAGE: &str = "not an image: expected PNG, JPEG, WebP or GIF";
const TRUNCATED: &str = "truncated: its end is missing";
const EMPTY: &str = "damaged: its size is zero pixels";

/// The kind of an image as in `image/png`, by its content, or what is wrong with it.
pub(super) fn image_kind(bytes: &[u8]) -> Result<&'static str, String> {
    let (kind, outcome) = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        ("png", png_size(bytes))
    } else if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        ("jpeg", jpeg_size(bytes))
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        ("gif", gif_size(bytes))
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        ("webp", webp_size(bytes))
    } else {
        return Err(NOT_AN_IMAGE.to_owned());
    };
    let (width, height) = outcome.ok_or(TRUNCATED)?;
    if width == 0 || height == 0 { Err(EMPTY.to_owned()) } else { Ok(kind) }
}

/// Width and height; `None` where the bytes end too early.
type Size = Option<(u32, u32)>;

fn read_u32_be(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

fn read_two_bytes(bytes: &[u8], at: usize) -> Option<[u8; 2]> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok()
}

/// A chain of chunks (length, name, data, checksum) from IHDR to IEND.
fn png_size(bytes: &[u8]) -> Size {
    let size = (read_u32_be(bytes, 16)?, read_u32_be(bytes, 20)?);
    let mut at = 8usize;
    loop {
        let length = read_u32_be(bytes, at)? as usize;
        let name = bytes.get(at + 4..at + 8)?;
        let next = at.checked_add(12)?.checked_add(length)?;
        bytes.get(..next)?;
        match name {
            b"IEND" => return Some(size),
            // Nothing else can come first, and it has one length.
            _ if at == 8 && (name != b"IHDR" || length != 13) => return Some((0, 0)),
            _ => at = next,
        }
    }
}

/// Segments up to the frame's size and the beginning of the scan; after that, an end marker.
fn jpeg_size(bytes: &[u8]) -> Size {
    let mut size = (0, 0);
    let mut at = 2usize;
    loop {
        let [start, marker] = read_two_bytes(bytes, at)?;
        if start != 0xff {
            return Some((0, 0));
        }
        // Filling, and markers that stand alone.
        if marker == 0xff {
            at += 1;
            continue;
        }
        if matches!(marker, 0x01 | 0xd0..=0xd7) {
            at += 2;
            continue;
        }
        let length = usize::from(u16::from_be_bytes(read_two_bytes(bytes, at + 2)?));
        if length < 2 || marker == 0xd9 {
            return Some((0, 0));
        }
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            let height = u16::from_be_bytes(read_two_bytes(bytes, at + 5)?);
            let width = u16::from_be_bytes(read_two_bytes(bytes, at + 7)?);
            size = (width.into(), height.into());
        }
        at += 2 + length;
        if marker == 0xda {
            let scan = bytes.get(at..)?;
            return scan.windows(2).rev().any(|two| two == [0xff, 0xd9]).then_some(size);
        }
    }
}

fn gif_size(bytes: &[u8]) -> Size {
    let width = u16::from_le_bytes(read_two_bytes(bytes, 6)?);
    let height = u16::from_le_bytes(read_two_bytes(bytes, 8)?);
    // Some writers fill up with zeros.
    let last = bytes.iter().rev().find(|&&byte| byte != 0);
    (bytes.len() > 13 && last == Some(&0x3b)).then_some((width.into(), height.into()))
}

/// A container that says its length, and a first chunk that says the size.
fn webp_size(bytes: &[u8]) -> Size {
    let length = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?) as usize;
    bytes.get(..length.checked_add(8)?)?;
    let three = |at: usize| {
        let bytes = bytes.get(at..at + 3)?;
        bytes.iter().rev().try_fold(0u32, |sum, &byte| Some(sum << 8 | u32::from(byte)))
    };
    match bytes.get(12..16)? {
        b"VP8X" => Some((three(24)? + 1, three(27)? + 1)),
        b"VP8L" => {
            let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
            (*bytes.get(20)? == 0x2f).then_some(())?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => {
            let side =
                |at| Some(u32::from(u16::from_le_bytes(read_two_bytes(bytes, at)?)) & 0x3fff);
            (bytes.get(23..26)? == [0x9d, 0x01, 0x2a]).then_some(())?;
            Some((side(26)?, side(28)?))
        }
        _ => Some((0, 0)),
    }
}
