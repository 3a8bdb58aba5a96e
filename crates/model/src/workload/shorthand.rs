//! Parts of a workload as they are written in one word, and what a warm cache takes.

use super::{ClassPlan, ImageFormat, ImagesPlan, SessionPlan, SharedPlan, WorkloadPlan};

/// Pixels of all images of one request: 66 MB before they are encoded.
const MOST_PIXELS: u64 = 22_000_000;

/// Images of a folder that are kept in memory.
const FOLDER_IMAGES: u32 = 1_000;

/// Different prompts of a warm cache, and groups that share a beginning, unless they are given.
const WARM_PROMPTS: u32 = 16;
const HIT_GROUPS: u32 = 8;

/// Sessions of a class do not come quite evenly: shares are exact over a thousand.
const WARM_ROOM: f64 = 1.5;

/// `70%`, or a weight.
pub fn parse_weight(text: &str) -> Option<f64> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (share.is_finite() && share >= 0.0).then_some(share)
}

impl SharedPlan {
    /// `warm`, `warm=PROMPTS`, `hit=SHARE[:GROUPS]` or `tiling=CONTEXTS:TOKENS`.
    pub fn from_cache_state(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n > 0);
        if text == "warm" {
            return Some(Self::Repeat { prompts: WARM_PROMPTS });
        }
        match text.split_once('=')? {
            ("warm", prompts) => Some(Self::Repeat { prompts: number(prompts)? }),
            ("hit", rest) => {
                let (hit, groups) = match rest.split_once(':') {
                    Some((hit, groups)) => (hit, number(groups)?),
                    None => (rest, HIT_GROUPS),
                };
                let share = parse_weight(hit).filter(|share| *share < 1.0)?;
                Some(Self::HitRate { share, groups })
            }
            ("tiling", rest) => {
                let (contexts, tokens) = rest.split_once(':')?;
                Some(Self::Tiling { contexts: number(contexts)?, tokens: number(tokens)? })
            }
            _ => None,
        }
    }
}

impl ImagesPlan {
    /// `COUNT[:WIDTHxHEIGHT[:FORMAT]]`, from a folder where there is one.
    pub fn from_shorthand(text: &str, folder: Option<&str>) -> Option<Self> {
        let mut parts = text.split(':');
        let count = parts.next()?.parse().ok().filter(|count| (1..=64).contains(count))?;
        let (width, height): (u32, u32) = match parts.next() {
            None => (512, 512),
            Some(size) => {
                let (width, height) = size.split_once('x')?;
                (width.parse().ok()?, height.parse().ok()?)
            }
        };
        let format = match parts.next() {
            None | Some("jpeg" | "jpg") => ImageFormat::Jpeg,
            Some("png") => ImageFormat::Png,
            Some(_) => return None,
        };
        let fits = |pixels: u32| (1..=8192).contains(&pixels);
        let pixels = u64::from(width) * u64::from(height) * u64::from(count);
        let is_whole = parts.next().is_none() && fits(width) && fits(height);
        let pool = if folder.is_some() { FOLDER_IMAGES } else { super::default_pool() };
        let folder = folder.map(str::to_owned);
        (is_whole && pixels <= MOST_PIXELS).then_some(Self {
            count,
            folder,
            width,
            height,
            format,
            pool,
        })
    }

    /// One image of a folder for each request, as it lies there.
    pub fn captioned(folder: &str) -> Self {
        Self {
            count: 1,
            folder: Some(folder.to_owned()),
            width: 0,
            height: 0,
            format: ImageFormat::Jpeg,
            pool: FOLDER_IMAGES,
        }
    }
}

impl WorkloadPlan {
    /// Contexts of a rotation, where the workload is nothing else: with one request each, request
    /// *i* has context *i* modulo this number.
    pub fn rotation(&self) -> Option<u64> {
        match self.classes.as_slice() {
            [class] if class.session.is_none() => match class.prefix.as_ref()?.shared? {
                SharedPlan::Tiling { contexts, .. } => Some(u64::from(contexts.max(1))),
                _ => None,
            },
            _ => None,
        }
    }

    /// Requests until each repeated prompt, and each context of a rotation, has been at the server
    /// once, rather too many than too few; 0 where none repeats.
    pub fn requests_to_warm(&self) -> u64 {
        let total: f64 = self.classes.iter().map(|class| class.share).sum();
        let room = if self.classes.len() > 1 { WARM_ROOM } else { 1.0 };
        let needed = self.classes.iter().map(|class| {
            let prompts = f64::from(class.repeated_prompts());
            // Classes take turns by their shares; a session asks several times.
            let sessions = prompts * total / class.share.max(f64::MIN_POSITIVE);
            let requests = class.session.as_ref().map_or(1.0, SessionPlan::most_requests);
            (sessions * requests * room).ceil() as u64
        });
        needed.max().unwrap_or(0)
    }
}

impl ClassPlan {
    fn repeated_prompts(&self) -> u32 {
        match self.prefix.as_ref().and_then(|prefix| prefix.shared) {
            Some(SharedPlan::Repeat { prompts: n } | SharedPlan::Tiling { contexts: n, .. }) => n,
            _ => 0,
        }
    }
}

impl SessionPlan {
    /// Requests of a session, rather too many than too few.
    fn most_requests(&self) -> f64 {
        let turns = self.turns.typical_most();
        let calls = self
            .tools
            .as_ref()
            .map_or(0.0, |tools| tools.calls.typical_most() * (1.0 + f64::from(tools.fan_out)));
        turns * (1.0 + calls)
    }
}
