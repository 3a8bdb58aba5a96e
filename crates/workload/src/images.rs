//! Images in addition to the text: generated or from files, encoded once, and shared as data URLs.

mod captions;
mod check;
mod files;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goodput_model::random::{Domain, RandomStream};
use goodput_model::{ImageFormat, ImagesPlan};

use crate::WorkloadError;

/// Largest image, as a file or in its pixels.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// As cameras and phones write them.
const JPEG_QUALITY: u8 = 85;

/// The images that requests share.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Images {
    /// At least one.
    pub(crate) images: Vec<Image>,
    /// Files and rows left out, by reason.
    pub(crate) skipped: BTreeMap<String, u64>,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// `data:image/png;base64,…`
    pub(crate) url: Arc<str>,
    /// What the folder or the table says about it.
    pub(crate) caption: Option<Arc<str>>,
}

/// The different images of a plan. Of files these are the first ones by name; those that are no
/// whole images are refused, or left out and counted.
pub(crate) fn load_image_pool(
    plan: &ImagesPlan,
    seed: u64,
    skip_invalid: bool,
) -> Result<Images, WorkloadError> {
    if plan.pool == 0 {
        return Err(image_error("images: `pool` is 0, and must be at least 1", "use 1 or more"));
    }
    if let Some(folder) = &plan.folder {
        return files::from_files(Path::new(folder), plan.pool as usize, skip_invalid);
    }
    let kind = match plan.format {
        ImageFormat::Jpeg => "jpeg",
        ImageFormat::Png => "png",
    };
    let images = (0..u64::from(plan.pool)).map(|number| {
        let bytes = generate_image(plan, &mut RandomStream::new(seed, Domain::Images, number))?;
        Ok(Image { url: data_url(kind, &bytes), caption: None })
    });
    Ok(Images { images: images.collect::<Result<_, _>>()?, skipped: BTreeMap::new() })
}

fn image_error(message: impl Into<String>, hint: &str) -> WorkloadError {
    WorkloadError { message: message.into(), hint: hint.to_owned() }
}

fn data_url(kind: &str, bytes: &[u8]) -> Arc<str> {
    let mut url = format!("data:image/{kind};base64,");
    STANDARD.encode_string(bytes, &mut url);
    url.into()
}

/// One image of noise over a gradient, which no codec makes small.
fn generate_image(plan: &ImagesPlan, stream: &mut RandomStream) -> Result<Vec<u8>, WorkloadError> {
    let side = |pixels: u32| u16::try_from(pixels).ok().filter(|&pixels| pixels > 0);
    let sides = side(plan.width).zip(side(plan.height));
    let fits =
        |&(width, height): &(u16, u16)| u64::from(width) * u64::from(height) * 3 <= MAX_BYTES;
    let (width, height) = sides.filter(fits).ok_or_else(|| {
        let asked = format!("images: {} x {} pixels", plan.width, plan.height);
        let why = "a side must be 1 to 65535, and the total at most 22 million pixels";
        image_error(format!("{asked}: {why}"), "use a size such as 1024x1024")
    })?;
    let pixels = noise_pixels(width, height, stream);
    let mut bytes = Vec::new();
    let encoded = match plan.format {
        ImageFormat::Png => {
            encode_png(&mut bytes, width, height, &pixels).map_err(|e| e.to_string())
        }
        ImageFormat::Jpeg => {
            let mut jpeg = jpeg_encoder::Encoder::new(&mut bytes, JPEG_QUALITY);
            jpeg.set_sampling_factor(jpeg_encoder::SamplingFactor::R_4_2_0);
            jpeg.encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb)
                .map_err(|e| e.to_string())
        }
    };
    encoded.map_err(|why| {
        image_error(format!("images: cannot be encoded: {why}"), "use another size")
    })?;
    Ok(bytes)
}

/// Three quarters noise, one quarter gradient: each byte holds 7.6 bits that nothing predicts.
fn noise_pixels(width: u16, height: u16, stream: &mut RandomStream) -> Vec<u8> {
    let mut noise = Noise { bits: 0, left: 0 };
    let mut pixels = Vec::with_capacity(usize::from(width) * usize::from(height) * 3);
    for y in 0..u32::from(height) {
        let down = y * 63 / u32::from(height);
        for x in 0..u32::from(width) {
            let across = x * 63 / u32::from(width);
            for slope in [across, down, 63 - across] {
                let random = u32::from(noise.next_byte(stream)) * 3 / 4;
                // At most 63 + 191.
                pixels.push((slope + random) as u8);
            }
        }
    }
    pixels
}

/// Random bytes, eight from each draw.
struct Noise {
    bits: u64,
    left: u32,
}

impl Noise {
    fn next_byte(&mut self, stream: &mut RandomStream) -> u8 {
        if self.left == 0 {
            *self = Self { bits: stream.next_bits(), left: 8 };
        }
        let byte = self.bits as u8;
        self.bits >>= 8;
        self.left -= 1;
        byte
    }
}

/// Stored without compression, which would gain nothing: so the bytes do not change with the
/// version of a compressor.
fn encode_png(
    bytes: &mut Vec<u8>,
    width: u16,
    height: u16,
    pixels: &[u8],
) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(bytes, width.into(), height.into());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_deflate_compression(png::DeflateCompression::NoCompression);
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()
}

#[cfg(test)]
mod tests;
