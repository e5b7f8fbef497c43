"""The owner's other devices over ssh (seeds, "Main sessions on other devices").

Owns one request to another device: its name, the one remote command, the conversation with it, and what became of it
with the certainty that was observed. ``running`` is what programs call. Does not own the sentences
(``libintercom.device_texts``) nor what runs on the other side (``remote``).
"""
