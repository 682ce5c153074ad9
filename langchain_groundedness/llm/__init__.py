"""Chat models: prompts, structured replies, reply reading, timeouts and usage."""
