# SPDX-License-Identifier: Apache-2.0
"""Makes the files of this folder anew: python3 make.py, with the packages tokenizers and tiktoken."""
import base64
import json
import os

import tiktoken
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

here = os.path.dirname(os.path.abspath(__file__))
LEARNT = [
    "The quick brown fox jumps over the lazy dog; the dog doesn't mind, and it'll sleep.\n" * 3,
    "local function add(a, b)\n  return a + b -- numbers, 123 and 4567\nend\n\n\tprint(add(1, 2))\n" * 2,
    "Größe, naïve café, Straße; größere Straßen. 日本語のテキスト、日本語。 한국어 텍스트 🎉👩‍👩‍👧\n" * 2,
]
READ = LEARNT + [
    "", " ", "\n", "\t\t  \n\n x", "spaces   end   ", "don't I'LL we've THEY'RE", "½ Ⅷ ٣٤٥ 12345678901",
    "no\u00a0break \u2003em \u180e old", "line\r\nends\r\n\r\n", "a" * 500 + "\u3042" * 50, "<|end|>text<|end|><pad> x",
    "\u017f'\u017f ' s's", "e\u0301 combining \u0915\u094d\u0937",
]
BYTES = pre_tokenizers.ByteLevel.alphabet()


def train(cutter, size, special, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer, tokenizer.decoder = cutter, decoders.ByteLevel()
    tokenizer.train_from_iterator(LEARNT, trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=BYTES, show_progress=False))
    return tokenizer


letters = train(pre_tokenizers.ByteLevel(add_prefix_space=True), 360, ["<|end|>", "<pad>"])
THREE = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
         r"\s+(?!\S)|\s+")
split = train(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(THREE), "isolated"),
                                       pre_tokenizers.Digits(individual_digits=True),
                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
              340, ["<s>", "</s>"], ignore_merges=True)
split.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
plain = train(pre_tokenizers.ByteLevel(add_prefix_space=False), 330, [])

seen = [b for b in range(256) if 32 < b < 127 or 160 < b < 256 and b != 173]
letter_of = {chr(b): b for b in seen}
for place, byte in enumerate(b for b in range(256) if b not in seen):
    letter_of[chr(256 + place)] = byte
names = {i: t for t, i in plain.get_vocab().items()}
ranks = {bytes(letter_of[c] for c in names[i]): i for i in sorted(names)}
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
          r"\s+(?!\S)|\s")
tik = tiktoken.Encoding("small", pat_str=CL100K, mergeable_ranks=ranks, special_tokens={"<|end|>": len(ranks)})

letters.save(os.path.join(here, "byte_level.json"), pretty=False)
split.save(os.path.join(here, "split.json"), pretty=False)
with open(os.path.join(here, "small.tiktoken"), "w") as file:
    for token, rank in ranks.items():
        file.write("%s %d\n" % (base64.b64encode(token).decode(), rank))
with open(os.path.join(here, "expected.json"), "w") as file:
    json.dump({"learnt": LEARNT, "read": READ,
               "byte_level": [letters.encode(t).ids for t in READ],
               "split": [split.encode(t).ids for t in READ],
               "split_plain": [split.encode(t, add_special_tokens=False).ids for t in READ],
               "tiktoken": [tik.encode(t, allowed_special="all") for t in READ],
               "tiktoken_text": [tik.encode(t, disallowed_special=()) for t in READ],
               "trained": plain.get_vocab()}, file, ensure_ascii=True)
