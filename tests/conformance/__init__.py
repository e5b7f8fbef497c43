"""The rules of the wire as numbered vectors, run on both codecs, the broker's core, a live broker and the client."""
