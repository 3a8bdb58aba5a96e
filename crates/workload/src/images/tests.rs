use std::{fs, io};

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;

fn plan(format: ImageFormat, width: u32, height: u32) -> ImagesPlan {
    ImagesPlan { count: 1, folder: None, width, height, format, pool: 3 }
}

fn bytes(image: &Image) -> Vec<u8> {
    STANDARD.decode(image.url.split_once("base64,").unwrap().1).unwrap()
}

fn hash(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

#[test]
fn the_same_plan_gives_the_same_bytes_everywhere() {
    let png = load_image_pool(&plan(ImageFormat::Png, 20, 10), 42, false).unwrap();
    let jpeg = load_image_pool(&plan(ImageFormat::Jpeg, 20, 10), 42, false).unwrap();
    assert!(png.images[1].url.starts_with("data:image/png;base64,iVBORw0KGgo"));
    assert!(jpeg.images[1].url.starts_with("data:image/jpeg;base64,/9j/"));
    assert_eq!(
        hash(&bytes(&png.images[1])),
        "9b36c4fb27dab18666c120228975e41d91e9b36a8ec0032eb51511a031463ee5"
    );
    assert_eq!(
        hash(&bytes(&jpeg.images[1])),
        "5a46b1c3db3214b17cb70353f5d99b50bfa2bbe7759ee98c04b6f711bdd16d83"
    );
}

#[test]
fn images_differ_by_seed_and_number() {
    let one = load_image_pool(&plan(ImageFormat::Png, 8, 8), 1, false).unwrap();
    let other = load_image_pool(&plan(ImageFormat::Png, 8, 8), 2, false).unwrap();
    assert_eq!(one.images.len(), 3);
    assert_ne!(one.images[0], one.images[1]);
    assert_ne!(one.images[0], other.images[0]);
    assert_eq!(one, load_image_pool(&plan(ImageFormat::Png, 8, 8), 1, false).unwrap());
}

#[test]
fn pixels_survive_and_cannot_be_compressed() {
    let image = &load_image_pool(&plan(ImageFormat::Png, 200, 100), 7, false).unwrap().images[0];
    let bytes = bytes(image);
    let mut reader = png::Decoder::new(io::Cursor::new(&bytes)).read_info().unwrap();
    let mut decoded = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut decoded).unwrap();
    assert_eq!((info.width, info.height, info.color_type), (200, 100, png::ColorType::Rgb));
    assert_eq!(decoded, noise_pixels(200, 100, &mut RandomStream::new(7, Domain::Images, 0)));
    // Even the hardest compression leaves nine tenths: 192 values of noise are 7.6 of 8 bits.
    let mut small = Vec::new();
    let mut encoder = png::Encoder::new(&mut small, 200, 100);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    encoder.write_header().unwrap().write_image_data(&decoded).unwrap();
    assert!(small.len() * 10 >= decoded.len() * 9, "{} of {}", small.len(), decoded.len());
    // As quality and halved colors leave it, noise keeps more than a bit of each of 8.
    let jpeg = &load_image_pool(&plan(ImageFormat::Jpeg, 200, 100), 7, false).unwrap().images[0];
    let share = self::bytes(jpeg).len() as f64 / decoded.len() as f64;
    assert!(share > 0.2, "{share}");
}

#[test]
fn sizes_out_of_range_are_refused() {
    for (width, height) in [(0, 10), (10, 0), (65_536, 1), (60_000, 60_000), (u32::MAX, u32::MAX)] {
        let error = load_image_pool(&plan(ImageFormat::Png, width, height), 1, false).unwrap_err();
        assert!(error.to_string().contains(&format!("{width} x {height} pixels")));
    }
    let none = ImagesPlan { pool: 0, ..plan(ImageFormat::Png, 1, 1) };
    assert!(load_image_pool(&none, 1, false).unwrap_err().to_string().contains("`pool` is 0"));
}

fn whole_gif() -> Vec<u8> {
    let mut bytes = b"GIF89a\x01\0\x01\0\0\0\0".to_vec();
    bytes.extend(b",\0\0\0\0\x01\0\x01\0\0\x02\x01\0\0;");
    bytes
}

/// A container around a header that says 5 x 3; what follows is not looked at.
fn whole_webp(name: [u8; 4]) -> Vec<u8> {
    let data: &[u8] = match &name {
        b"VP8X" => &[0, 0, 0, 0, 4, 0, 0, 2, 0, 0],
        b"VP8L" => &[0x2f, 4, 0x80, 0, 0, 0],
        _ => &[0, 0, 0, 0x9d, 0x01, 0x2a, 5, 0, 3, 0],
    };
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((12 + data.len() as u32).to_le_bytes());
    bytes.extend(b"WEBP");
    bytes.extend(name);
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend(data);
    bytes
}

fn all_kinds() -> Vec<(&'static str, Vec<u8>)> {
    let one = |format| bytes(&load_image_pool(&plan(format, 9, 5), 1, false).unwrap().images[0]);
    vec![
        ("png", one(ImageFormat::Png)),
        ("jpeg", one(ImageFormat::Jpeg)),
        ("gif", whole_gif()),
        ("webp", whole_webp(*b"VP8X")),
        ("webp", whole_webp(*b"VP8L")),
        ("webp", whole_webp(*b"VP8 ")),
    ]
}

#[test]
fn whole_images_are_told_from_parts() {
    for (kind, bytes) in all_kinds() {
        assert_eq!(check::image_kind(&bytes), Ok(kind));
        for length in 0..bytes.len() {
            assert!(check::image_kind(&bytes[..length]).is_err(), "{kind} cut at {length}");
        }
        let half = check::image_kind(&bytes[..bytes.len() - 1]).unwrap_err();
        assert!(half.starts_with("truncated"), "{kind}: {half}");
    }
    assert!(check::image_kind(b"<html>").unwrap_err().starts_with("not an image"));
    let mut flat = all_kinds().swap_remove(0).1;
    flat[16..20].fill(0);
    assert!(check::image_kind(&flat).unwrap_err().contains("zero pixels"));
    let mut flat = all_kinds().swap_remove(2).1;
    flat[8] = 0;
    assert!(check::image_kind(&flat).unwrap_err().contains("zero pixels"));
}

proptest! {
    #[test]
    fn any_bytes_are_an_image_or_not(random: Vec<u8>, which in 0usize..6, place: usize, byte: u8) {
        let mut bytes = all_kinds().swap_remove(which).1;
        let place = place % bytes.len();
        bytes[place] = byte;
        let _ = check::image_kind(&bytes);
        bytes.truncate(12);
        bytes.extend(&random);
        let _ = check::image_kind(&bytes);
        let _ = check::image_kind(&random);
    }
}

fn folder(files: &[(&str, &[u8])]) -> (tempfile::TempDir, ImagesPlan) {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let mut plan = plan(ImageFormat::Png, 0, 0);
    plan.folder = Some(folder.path().display().to_string());
    (folder, plan)
}

fn captions(images: &Images) -> Vec<Option<&str>> {
    images.images.iter().map(|image| image.caption.as_deref()).collect()
}

#[test]
fn a_folder_is_taken_in_the_order_of_its_names() {
    let gif = whole_gif();
    let jpeg = all_kinds().swap_remove(1).1;
    let files: &[(&str, &[u8])] = &[
        ("b.PNG", &gif),
        ("a.jpg", &jpeg),
        ("sub/c.gif", &gif),
        ("d.webp", &gif),
        ("notes.md", b"x"),
        ("a.txt", b" A dog.\n"),
        ("b.txt", b" \n"),
    ];
    let (_kept, mut plan) = folder(files);
    plan.pool = 10;
    let images = load_image_pool(&plan, 1, false).unwrap();
    let kinds: Vec<&str> = images.images.iter().map(|i| i.url.split(';').next().unwrap()).collect();
    // By content, whatever the name says.
    assert_eq!(kinds, ["data:image/jpeg", "data:image/gif", "data:image/gif", "data:image/gif"]);
    assert_eq!(bytes(&images.images[0]), jpeg);
    assert_eq!(captions(&images), [Some("A dog."), None, None, None]);
    plan.pool = 1;
    assert_eq!(load_image_pool(&plan, 1, false).unwrap().images.len(), 1);
}

#[test]
fn captions_come_from_lists() {
    let gif = whole_gif();
    let coco = br#"{"info": {}, "images": [{"id": 7, "file_name": "a.gif"}, {"id": "x", "file_name": "b.gif"},
        {"id": 9, "file_name": "elsewhere.gif"}], "annotations": [
        {"id": 1, "image_id": 7, "caption": "First. "}, {"id": 2, "image_id": 7, "caption": "Second."},
        {"id": 3, "image_id": "x", "caption": "Other."}, {"id": 4, "image_id": 8, "caption": "None."}]}"#;
    let lines = b"{\"file\": \"a.gif\", \"caption\": \"First.\"}\n\n{\"image\": \"in/b.gif\", \"text\": \"Other.\"}";
    let table = b"file,caption\na.gif,\"First.\"\nb.gif,Other.\n";
    let lists: [(&str, &[u8], &str); 4] = [
        ("captions.json", coco, "b.gif"),
        ("annotations/captions_val.json", coco, "in/b.gif"),
        ("captions.jsonl", lines, "in/b.gif"),
        ("captions.csv", table, "b.gif"),
    ];
    for (name, list, second) in lists {
        let outlines = ("annotations/instances.json", b"{broken".as_slice());
        let files = [("a.gif", gif.as_slice()), (second, &gif), (name, list), outlines];
        let used = if name.starts_with("annotations") { &files[..] } else { &files[..3] };
        let (_kept, plan) = folder(used);
        let images = load_image_pool(&plan, 1, false).unwrap();
        assert_eq!(captions(&images), [Some("First."), Some("Other.")], "{name}");
    }
    let quoted = captions::parse_csv_line(r#"a.png,"He said ""no"", twice""#);
    assert_eq!(quoted, Some(("a.png".to_owned(), "He said \"no\", twice".to_owned())));
}

#[test]
fn wrong_lists_are_refused_by_line() {
    let gif = whole_gif();
    let error = |name: &str, list: &[u8]| {
        let (kept, plan) = folder(&[("a.gif", &gif), (name, list)]);
        let error = load_image_pool(&plan, 1, true).unwrap_err();
        assert!(error.hint.contains("file_name"));
        let place = kept.path().join(name).display().to_string();
        error.to_string().strip_prefix(&place).unwrap().to_owned()
    };
    assert!(error("captions.json", b"{\"images\": [\n").contains("line 2"));
    assert_eq!(error("captions.json", b"{\"images\": []}"), ": no array `annotations`");
    let second = ": line 2: no file with its caption";
    assert_eq!(
        error("captions.jsonl", b"{\"file\":\"a\",\"caption\":\"b\"}\n{\"file\":1}"),
        second
    );
    assert_eq!(error("captions.csv", b"a.gif,x\nno comma\n"), second);
    assert_eq!(error("captions.csv", b"a.gif,x\n\xff\n"), ": line 2: not UTF-8");
    assert_eq!(error("a.txt", b"\xff"), ": line 1: not UTF-8");
}

#[test]
fn broken_images_are_refused_or_counted() {
    let gif = whole_gif();
    let cut = &gif[..gif.len() - 1];
    let files: &[(&str, &[u8])] =
        &[("a.gif", cut), ("b.png", b"<html>"), ("c.gif", &gif), ("d.jpg", b""), ("e.png", cut)];
    let (kept, mut plan) = folder(files);
    let large = kept.path().join("f.png");
    // A hole takes no room on the disk.
    fs::File::create(&large).unwrap().set_len(MAX_BYTES + 1).unwrap();
    plan.pool = 10;
    let error = load_image_pool(&plan, 1, false).unwrap_err().to_string();
    let first = kept.path().join("a.gif");
    assert_eq!(error, format!("{}: truncated: its end is missing", first.display()));
    let images = load_image_pool(&plan, 1, true).unwrap();
    assert_eq!(images.images.len(), 1);
    let skipped: Vec<(&str, u64)> = images.skipped.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    assert_eq!(
        skipped,
        [
            ("larger than 64 MiB", 1),
            ("not an image: expected PNG, JPEG, WebP or GIF", 2),
            ("truncated: its end is missing", 2)
        ]
    );
}

#[test]
fn a_folder_without_images_is_refused() {
    let (_kept, plan) = folder(&[("a.png", b"no")]);
    assert!(
        load_image_pool(&plan, 1, true)
            .unwrap_err()
            .to_string()
            .contains("no image in it (1 left out)")
    );
    let (kept, plan) = folder(&[]);
    assert!(
        load_image_pool(&plan, 1, false)
            .unwrap_err()
            .to_string()
            .contains("no image in it (0 left out)")
    );
    drop(kept);
    assert!(load_image_pool(&plan, 1, false).unwrap_err().to_string().contains("No such file"));
}

/// A table in Parquet: a grey and a red picture of one pixel, each with its caption, and one that is
/// cut off.
const TABLE: &str = "UEFSMRUEFZQDFZQDTBUGFQASAABGAAAAiVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk\
    +M9QDwADhgGAWjR9awAAAABJRU5ErkJggkYAAACJUE5HDQoaCgAAAA1JSERSAAAAAQAAAAEIBgAAAB8VxIkAAAANSURB\
    VHjaY/zPwFAPAASFAYCEqYwhAAAAAElFTkSuQmCCMgAAAIlQTkcNChoKAAAADUlIRFIAAAABAAAAAQgGAAAAHxXEiQAA\
    AA1JREFUeNpj/M/AUA8AFQAVFBUULBUGFRAVBhUGAAACAAAABgICAyQAFQQVUhVSTBUGFQASAAAKAAAAQSBncmV5IGRv\
    dAkAAABBIHJlZCBkb3QKAAAASGFsZiBhIGRvdBUAFRQVFCwVBhUQFQYVBgAAAgAAAAYBAgMkABkSAhkYQIlQTkcNChoK\
    AAAADUlIRFIAAAABAAAAAQgGAAAAHxXEiQAAAA1JREFUeNpjZPjPUA8AA4YBgFo0fWsAAAAASUUZGECJUE5HDQoaCgAA\
    AA1JSERSAAAAAQAAAAEIBgAAAB8VxIkAAAANSURBVHjaY/zPwFAPAASFAYCEqYwhAAAAAElGFQIZFgApNgAABgAZEgIZ\
    GApBIGdyZXkgZG90GRgKSGFsZiBhIGRvdBUCGRYAKSYABgAZHBa8AxU2FgAAGRb8AgAZHBbgBBU2FgAAGRY6ABUCGUxI\
    BnNjaGVtYRUEADUCGAVpbWFnZRUCABUMJQIYBWJ5dGVzABUMJQIYB2NhcHRpb24lAAAWBhkcGSwmABwVDBk1AAYQGSgF\
    aW1hZ2UFYnl0ZXMVABYGFuoDFuoDJrwDJggcNgAoQIlQTkcNChoKAAAADUlIRFIAAAABAAAAAQgGAAAAHxXEiQAAAA1J\
    REFUeNpj/M/AUA8ABIUBgISpjCEAAAAASUYYQIlQTkcNChoKAAAADUlIRFIAAAABAAAAAQgGAAAAHxXEiQAAAA1JREFU\
    eNpjZPjPUA8AA4YBgFo0fWsAAAAASUUSEgAZLBUEFQAVAgAVABUQFQIAPBb8Aik2AAAGAAAWjAgVHhaWBRWoAgAmABwV\
    DBk1AAYQGRgHY2FwdGlvbhUAFgYWpAEWpAEm4AQm8gMcNgAoCkhhbGYgYSBkb3QYCkEgZ3JleSBkb3QREQAZLBUEFQAV\
    AgAVABUQFQIAPBY6KSYABgAAFqoIFRwWvgcVTgAWjgUWBiYIFo4FFAAAKBlwYXJxdWV0LXJzIHZlcnNpb24gNTkuMy4y\
    GSwcAAAcAAAArAEAAFBBUjE=";

/// Folders have their images first, then their tables; a file and a pattern have tables alone.
#[test]
fn pictures_of_tables_come_with_their_captions() {
    let table = STANDARD.decode(TABLE).unwrap();
    let gif = whole_gif();
    let files: &[(&str, &[u8])] =
        &[("b.parquet", &table), ("a.parquet", &table), ("z.gif", &gif), ("t.txt", b"x")];
    let (kept, mut plan) = folder(files);
    let path = |name: &str| Some(kept.path().join(name).display().to_string());
    plan.pool = 3;
    let both = [Some("A grey dot"), Some("A red dot")];
    let images = load_image_pool(&plan, 1, false).unwrap();
    assert_eq!(captions(&images), [None, both[0], both[1]]);
    assert!(images.images[1].url.starts_with("data:image/png;base64,"));
    assert_ne!(images.images[1].url, images.images[2].url);
    // The third row of a table is not a whole picture.
    plan.pool = 10;
    plan.folder = path("a.parquet");
    let error = load_image_pool(&plan, 1, false).unwrap_err();
    let expected = "a.parquet, row 3: its picture is truncated: its end is missing";
    assert!(error.message.ends_with(expected), "{}", error.message);
    assert!(error.hint.contains("--skip-invalid"), "{}", error.hint);
    let images = load_image_pool(&plan, 1, true).unwrap();
    assert_eq!((captions(&images), images.skipped.values().sum()), (both.to_vec(), 1));
    plan.folder = path("?.parquet");
    let images = load_image_pool(&plan, 1, true).unwrap();
    assert_eq!((captions(&images), images.skipped.values().sum()), ([both, both].concat(), 2));
    plan.folder = path("none-*.parquet");
    let error = load_image_pool(&plan, 1, true).unwrap_err();
    assert!(error.message.contains("no file has such a name"), "{}", error.message);
}
