"""Words: small functions of text."""


def shorten(text: str, width: int) -> str:
    """The text, or what of it and three dots is no longer than width."""
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."


def wrap(text: str, width: int) -> list[str]:
    """The words in lines that are no longer than width; a word that is longer has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def slug(text: str) -> str:
    """The words in lower case, with - between them; untitled without any."""
    spaced = "".join(character if character.isalnum() else " " for character in text)
    return "-".join(spaced.lower().split()) or "untitled"
