"""Text processing: words, sentences, markdown blocks and quotes, with character offsets."""
