"""Evidence: from documents to batches of passages that fit a judge, with exact offsets."""

__all__: list[str] = []
