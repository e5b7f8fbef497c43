"""A session's end: what one program does with what reaches it, so that nothing admitted is lost.

Owns no name itself. The pure modules (``entries``, ``states``, ``inbox``, ``tracker``, ``framing``, ``pages``,
``receipts``, ``guards`` and what they stand on) decide; the others read, write and wait for them.
"""
