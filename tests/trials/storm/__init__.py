"""The start storm: a hundred starters at once, random kills, idle exits of 50 ms, witnesses outside."""
