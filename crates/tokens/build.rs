//! Packs the vocabularies that are built in. The library has them as 5 MB of text, of which 1.5 MB remain.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "vocabularies")]
    vocabularies::pack();
}

#[cfg(feature = "vocabularies")]
#[expect(clippy::expect_used, reason = "a build without its vocabularies must not go on")]
mod vocabularies {
    use std::path::PathBuf;

    use tiktoken_rs::CoreBPE;

    /// The usual trade between time and size of compression.
    const LEVEL: u8 = 6;

    pub(crate) fn pack() {
        let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("Cargo names a folder"));
        let built_in = [
            ("cl100k_base", tiktoken_rs::cl100k_base()),
            ("o200k_base", tiktoken_rs::o200k_base()),
        ];
        for (name, vocabulary) in built_in {
            let tokens = tokens(&vocabulary.expect("the library reads its own vocabulary"));
            let packed = miniz_oxide::deflate::compress_to_vec(&tokens, LEVEL);
            std::fs::write(folder.join(name), packed).expect("the folder can be written to");
        }
    }

    /// Each token behind its length, in the order of ranks. Special tokens lie behind a gap.
    fn tokens(vocabulary: &CoreBPE) -> Vec<u8> {
        let mut bytes = Vec::new();
        for token in (0..).map_while(|rank| vocabulary.decode_bytes(&[rank]).ok()) {
            bytes.push(u8::try_from(token.len()).expect("tokens are short"));
            bytes.extend(token);
        }
        bytes
    }
}
