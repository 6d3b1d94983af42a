# SPDX-License-Identifier: Apache-2.0
"""Pages of SQLite files that no SQLite writes: the same bytes used many times (sqlite.org/fileformat2.html, sections 1.6 and 2.1)."""
import pathlib
import sqlite3
import struct

PAGE = 512
LEAF, INTERIOR = 13, 5
MOST_LOCAL = PAGE - 35  # of a record, on its own page
LEAST_LOCAL = (PAGE - 12) * 32 // 255 - 23


def varint(number):
    """Seven bits a byte, the first ones first."""
    digits = [number & 0x7F]
    while number > 0x7F:
        number >>= 7
        digits.append(0x80 | number & 0x7F)
    return bytes(reversed(digits))


def record(values):
    """Of whole numbers and texts; None where a row id stands for the column."""
    types, body = b"", b""
    for value in values:
        data = b"" if value is None else value.encode() if isinstance(value, str) else struct.pack(">q", value)
        types += varint(0 if value is None else 13 + 2 * len(data) if isinstance(value, str) else 6)
        body += data
    assert len(types) < 100
    return bytes([len(types) + 1]) + types + body


class Pages:
    """A database file with small pages; pages are added at its end, and the tree of a table is replaced."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        database = sqlite3.connect(path)
        database.executescript(f"PRAGMA page_size = {PAGE}; VACUUM")
        self.roots = {"sqlite_master": 1}
        self.roots |= dict(database.execute("SELECT name, rootpage FROM sqlite_master WHERE type = 'table'"))
        database.close()
        self.bytes = bytearray(self.path.read_bytes())

    def add(self, page=b""):
        """The number of the new page."""
        self.bytes += page.ljust(PAGE, b"\0")
        return len(self.bytes) // PAGE

    def add_overflow(self, data):
        """The first page of a chain with this data."""
        parts = [data[i:i + PAGE - 4] for i in range(0, len(data), PAGE - 4)]
        first = len(self.bytes) // PAGE + 1
        for i, part in enumerate(parts):
            self.add(struct.pack(">I", first + i + 1 if i + 1 < len(parts) else 0) + part)
        return first

    def put(self, number, page):
        self.bytes[(number - 1) * PAGE:number * PAGE] = page.ljust(PAGE, b"\0")

    def write(self):
        self.bytes[28:32] = struct.pack(">I", len(self.bytes) // PAGE)
        self.path.write_bytes(self.bytes)


def leaf(cells, pointers=1):
    """A page of records. `pointers` is how often each is pointed to."""
    content, offsets = b"", []
    for cell in cells:
        content = cell + content
    at = PAGE - len(content)
    for cell in reversed(cells):
        offsets.insert(0, at)
        at += len(cell)
    offsets = [offset for offset in offsets for _ in range(pointers)]
    head = struct.pack(">BHHHB", LEAF, 0, len(offsets), PAGE - len(content), 0) + b"".join(struct.pack(">H", offset) for offset in offsets)
    assert len(head) + len(content) <= PAGE
    return head.ljust(PAGE - len(content), b"\0") + content


def interior(children, start=0):
    """A page of pages: (number, largest row id in it) of each. The file's first page begins with the file's header."""
    *most, (last, _) = children
    content, offsets = b"", []
    for number, rowid in most:
        content = struct.pack(">I", number) + varint(rowid) + content
        offsets.append(PAGE - len(content))
    head = struct.pack(">BHHHBI", INTERIOR, 0, len(offsets), PAGE - len(content), 0, last) + b"".join(struct.pack(">H", offset) for offset in offsets)
    assert start + len(head) + len(content) <= PAGE
    return head.ljust(PAGE - start - len(content), b"\0") + content


def local_bytes(size):
    """How much of a long record stays on its page."""
    fitting = LEAST_LOCAL + (size - LEAST_LOCAL) % (PAGE - 4)
    return fitting if fitting <= MOST_LOCAL else LEAST_LOCAL


def share_texts(path, table, make_values, num_rows, text_bytes):
    """Rows with long texts, each with its own beginning and all with the same rest."""
    pages = Pages(path)
    whole = record(make_values(0, text_bytes))
    local = local_bytes(len(whole))
    chain = pages.add_overflow(whole[local:])
    cells = [varint(len(whole)) + varint(i + 1) + record(make_values(i, text_bytes))[:local] + struct.pack(">I", chain) for i in range(num_rows)]
    fill_table(pages, table, cells)
    pages.write()


def fill_table(pages, table, cells, pointers=1):
    per_page = (PAGE - 8) // (max(map(len, cells)) + 2 * pointers)
    children = [(pages.add(leaf(cells[i:i + per_page], pointers)), min(i + per_page, len(cells))) for i in range(0, len(cells), per_page)]
    while len(children) > 30:
        children = [(pages.add(interior(children[i:i + 30])), children[min(i + 30, len(children)) - 1][1]) for i in range(0, len(children), 30)]
    root = pages.roots[table]
    start = 100 if root == 1 else 0
    pages.put(root, bytes(pages.bytes[:start]) + interior(children, start))


def share_records(path, table, cell, num_pages):
    """Pages in which every pointer is to the same record."""
    pages = Pages(path)
    fill_table(pages, table, [cell] * num_pages, pointers=(PAGE - 8 - len(cell)) // 2)
    pages.write()


def share_leaves(path, table, cells, depth):
    """A tree in which every page names the next one thirty times."""
    pages = Pages(path)
    page = pages.add(leaf(cells))
    for _ in range(depth):
        page = pages.add(interior([(page, 1)] * 30))
    pages.put(pages.roots[table], interior([(page, 1)] * 30))
    pages.write()
