"""Chat models and embeddings: prompts, structured replies, reply reading, and usage."""
