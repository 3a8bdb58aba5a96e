"""Token ids of Python's `tokenizers` and `tiktoken` against ours.

Arguments: the example `ids` of the tokens crate, and a folder to write to. Tokenizers are trained
here, on text that is made here; the texts to encode are chosen to be awkward.
"""

import hashlib
import importlib.metadata
import json
import random
import subprocess
import sys
import unicodedata
from pathlib import Path

import tiktoken
import tiktoken_ext.openai_public as published
from tiktoken.load import load_tiktoken_bpe
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

IDS = sys.argv[1]
FOLDER = Path(sys.argv[2])
SEED = 20240229

# How models of today split text before merging.
GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SINGLE_DIGITS = GPT4.replace("{1,3}", "")

WORDS = (
    "the of and to in is that for it was on are with as they be at one have this from had by word but "
    "what some we can out other were all there when up use your how said an each she which do their "
    "time if will way about many then them write would like so these her long make thing see him two "
    "has look more day could go come did number sound no most people my over know water than call "
    "first who may down side been now find any new work part take get place made live where after "
    "measurement request session latency throughput scheduler distribution percentile histogram "
    "Größe über Straße möglich naïve façade déjà être garçon mañana señor año niño "
    "don't it's we're they'll I've he'd you'm"
).split()
PIECES = [
    "{name}(self, x={number}):\n    return x * {number}\n",
    "if ({name} != {number}) {{ {name}++; }}\n",
    '{{"{name}": [{number}, null, "{name}"]}}\n',
    "你好世界，今天天气很好。",
    "東京タワーへようこそ。",
    "Привет, мир! Как дела? ",
    "안녕하세요 세계 ",
    "مرحبا بالعالم ",
    "🙂🚀 {name} ",
    "{number}.{number} + {number}% = €{number}\t\n\n",
]

AWKWARD = [
    "",
    " ",
    "  ",
    "   leading and trailing   ",
    "a  b   c    d     e",
    "\n",
    "\n\n\n",
    "\r\n\r\n",
    " \n \n  \n",
    "line\nline\r\nline\rline\n\n\nend\n",
    "\t\ttabs\t and spaces \t\n\t",
    "trailing newline \n",
    "non-breaking\u00a0space\u2009thin\u3000wide\u0085next\u2028line\u2029paragraph",
    "\u200bzero\u200dwidth\ufeffbom\u00adsoft",
    "it's IT'S It'S we've WE'VE y'all'd've 'tis ''quoted'' don’t",
    "I\u017fN'\u017f 'ſ 'K \u212aelvin",
    "1 12 123 1234 12345 1234567890 3.14159 1,000,000 0x1F ½ ² ٣ १२ 一二三 Ⅻ",
    "a1b2c3 x1 v2.0.1 2024-02-29T23:59:60Z",
    "!!!??? ... --- === ### $$$ @@@ (((nested [brackets] {here})))",
    "<s> </s> <unk> <pad> [CLS] [SEP] [MASK] <0x41> <|endoftext|> <|begin_of_text|> ▁ ▁▁ Ġ Ċ ##ing",
    "<s>glued</s>",
    "snake_case camelCase PascalCase SCREAMING_CASE kebab-case dotted.name a::b->c",
    "fn main() {\n    println!(\"{}\", 1 << 3);\n\t// comment\n}\n",
    "SELECT * FROM t WHERE a='b' AND c>=1;\n",
    "https://example.org/path?query=1&x=%20#frag user@example.com",
    "é e\u0301 ñ n\u0303 Å A\u030a ﬁ ﬀ Ω Ω ㌀ ｆｕｌｌ　ｗｉｄｔｈ",
    unicodedata.normalize("NFD", "Größe über naïve façade Việt Nam Ångström"),
    unicodedata.normalize("NFC", "Größe über naïve façade Việt Nam Ångström"),
    "z\u0335\u0321\u0322a\u0334\u0322l\u0337\u0323g\u0338o\u0336 \u0301alone \u0301",
    "🙂 👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 🏳️‍🌈 ☺︎ ☺️ 1️⃣",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 𓀀 \U0010ffff \U000e0041 \ue000",
    "清晨的市场總是最熱鬧的地方。東京都，ひらがなカタカナ・한국어",
    "中文English混排123数字",
    "Привет Ελληνικά עברית العربية हिन्दी ภาษาไทย ქართული አማርኛ",
    "אבג\u05b0\u05b1 \u202eright to left\u202c",
    "\x00\x01\x02\x07\x08\x0b\x0c\x0e\x1b[31mred\x1b[0m\x7f\x80\x9f",
    "ÀÉÎÕÜ àéîõü ŒœÆæ ßẞ İıI Σσς Ǆǅǆ",
    "a" * 1000,
    " " * 1000,
    " " * 999 + "x",
    "\n" * 1000,
    "\n" * 500 + " " * 500 + "x",
    "ab" * 700,
    "1" * 1000,
    "!" * 1000,
    "é" * 400,
    "漢" * 400,
    "🙂" * 200,
    "word " * 400,
    "x \n" * 300,
    " " * 20000 + "end",
    "longwordwithoutanyspaces" * 100,
]


def made_text(generator, paragraphs):
    for _ in range(paragraphs):
        parts = [generator.choice(WORDS) for _ in range(generator.randrange(5, 40))]
        parts[0] = parts[0].capitalize()
        piece = generator.choice(PIECES)
        name = "_".join(generator.choice(WORDS) for _ in range(2))
        number = generator.randrange(10 ** generator.randrange(1, 8))
        yield " ".join(parts) + ". " + piece.format(name=name, number=number)


def drawn_texts(generator, count):
    """Random neighbours: of awkward texts, words, spaces, and any characters at all."""
    spaces = [" ", "  ", "\n", "\t", "\r\n", "", "\u00a0", "'", ".", "\u0301"]
    for _ in range(count):
        text = ""
        for _ in range(generator.randrange(1, 30)):
            kind = generator.randrange(6)
            if kind == 0:
                text += generator.choice(AWKWARD)[: generator.randrange(1, 12)]
            elif kind == 1:
                text += chr(generator.choice([generator.randrange(0x20, 0x250), generator.randrange(0x250, 0xD800), generator.randrange(0xE000, 0x20000)]))
            else:
                text += generator.choice(WORDS) + generator.choice(spaces)
        yield text


def byte_level_bpe(split, normalizer=None):
    tokenizer = Tokenizer(models.BPE(ignore_merges=split is not None))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if split is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        parts = [pre_tokenizers.Split(Regex(split), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return tokenizer, trainers.BpeTrainer(vocab_size=3000, special_tokens=["<|begin_of_text|>", "<|endoftext|>"], initial_alphabet=alphabet, show_progress=False)


def metaspace_bpe(with_normalizer):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if with_normalizer:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    return tokenizer, trainers.BpeTrainer(vocab_size=2500, special_tokens=["<unk>", "<s>", "</s>", *bytes_], limit_alphabet=150, max_token_length=12, show_progress=False)


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return tokenizer, trainers.WordPieceTrainer(vocab_size=2000, special_tokens=special, show_progress=False)


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer, trainers.UnigramTrainer(vocab_size=1500, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False)


def trained(folder):
    """Files of tokenizers of every usual kind."""
    kinds = {
        "byte-level BPE, GPT-2's split": byte_level_bpe(None),
        "byte-level BPE, the split of Llama 3": byte_level_bpe(GPT4),
        "byte-level BPE, the split of Qwen": byte_level_bpe(SINGLE_DIGITS, normalizers.NFC()),
        "BPE with byte fallback, Metaspace": metaspace_bpe(False),
        "BPE with byte fallback, normalizer": metaspace_bpe(True),
        "WordPiece": word_piece(),
        "Unigram": unigram(),
    }
    text = list(made_text(random.Random(SEED), 1500))
    for number, (kind, (tokenizer, trainer)) in enumerate(kinds.items()):
        tokenizer.train_from_iterator(text, trainer)
        # What a count must not obey: a first token, a limit, filling up.
        first = next(iter(sorted(tokenizer.get_added_tokens_decoder().items())))
        if kind != "Unigram":
            tokenizer.post_processor = processors.TemplateProcessing(single=f"{first[1].content} $A", special_tokens=[(first[1].content, first[0])])
        tokenizer.enable_truncation(8)
        tokenizer.enable_padding(length=16, pad_token=first[1].content)
        path = folder / f"{number}.json"
        tokenizer.save(str(path))
        rules = json.loads(path.read_text())
        # The bytes are tokens, but not such as may be spelt out.
        rules["added_tokens"] = [token for token in rules["added_tokens"] if not token["content"].startswith("<0x")]
        if kind == "Unigram":
            exact_scores(rules["model"])
        path.write_text(json.dumps(rules, ensure_ascii=False))
        yield kind, path


def exact_scores(model):
    """Scores with few digits: their sums are exact in any order, and every reader gets the same number.

    As trained, paths of the same pieces in another order differ by the last bit of a sum, and a
    reader that rounds a score's 17th digit otherwise takes the other path.
    """
    model["vocab"] = [[piece, round(score * 1024) / 1024] for piece, score in model["vocab"]]


def ours(name, texts):
    lines = "".join(json.dumps({"tokenizer": str(name), "text": text}) + "\n" for text in texts)
    done = subprocess.run([IDS], input=lines, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"{name}: {done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(kind, name, texts, encode):
    answers = ours(name, texts)
    assert len(answers) == len(texts), f"{kind}: {len(answers)} answers to {len(texts)} texts"
    tokens = 0
    for text, answer in zip(texts, answers, strict=True):
        expected = encode(text)
        tokens += len(expected)
        assert answer == expected, f"{kind}: {text[:80]!r}: {answer}, not {expected}"
    assert tokens > len(texts), f"{kind}: only {tokens} tokens"
    return tokens


def check_files(texts):
    files = list(trained(FOLDER))
    (packed,) = [file for file in importlib.metadata.files("anthropic") if file.name == "tokenizer.json"]
    files.append(("a published vocabulary", Path(packed.locate())))
    for kind, path in files:
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        yield compare(kind, path, texts, lambda text: tokenizer.encode(text, add_special_tokens=False).ids)


def check_vocabularies(texts):
    """The publisher's own code, with the vocabularies that are built into ours in place of a download."""
    hashes = {}

    def load(url, expected_hash=None):
        name = url.rsplit("/", 1)[1]
        dump = subprocess.run([IDS, "dump", name.removesuffix(".tiktoken")], capture_output=True, check=True).stdout
        hashes[name] = (hashlib.sha256(dump).hexdigest(), expected_hash)
        (FOLDER / name).write_bytes(dump)
        return load_tiktoken_bpe(str(FOLDER / name), expected_hash)

    published.load_tiktoken_bpe = load
    for name in ["cl100k_base", "o200k_base", "p50k_base", "r50k_base"]:
        encoding = tiktoken.Encoding(**getattr(published, name)())
        found, expected = hashes[f"{name}.tiktoken"]
        assert found == expected, f"{name}: the vocabulary's hash is {found}, not {expected}"
        built_in = [name] if name in ("cl100k_base", "o200k_base") else []
        for source in [*built_in, FOLDER / f"{name}.tiktoken"]:
            yield compare(f"tiktoken {name}", source, texts, encoding.encode_ordinary)


def main():
    texts = AWKWARD + list(drawn_texts(random.Random(SEED), 400))
    counts = [*check_files(texts), *check_vocabularies(texts)]
    print(f"  {sum(counts)} ids of {len(texts)} texts by {len(counts)} tokenizers are those of the Python packages", file=sys.stderr)


main()
