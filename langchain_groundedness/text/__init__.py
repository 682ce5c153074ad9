"""Text as such: words, sentences, markdown blocks and quotes, with character offsets."""
