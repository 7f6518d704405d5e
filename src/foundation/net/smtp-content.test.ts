import { expect, test } from "bun:test";
import fc from "fast-check";
import { ContentDecoder } from "./smtp-content.ts";

/** What a decoder makes of chunks: the content and what follows it, as latin1; no rest while the content has not ended. */
const decode = (chunks: readonly string[]): { content: string; rest: string | null } => {
  const decoder = new ContentDecoder();
  const pieces: Uint8Array[] = [];
  for (const [index, chunk] of chunks.entries()) {
    const rest = decoder.push(Buffer.from(chunk, "latin1"), (piece) => pieces.push(Uint8Array.from(piece)));
    if (rest === null) continue;
    const following = [Buffer.from(rest).toString("latin1"), ...chunks.slice(index + 1)].join("");
    return { content: Buffer.concat(pieces).toString("latin1"), rest: following };
  }
  return { content: Buffer.concat(pieces).toString("latin1"), rest: null };
};

/** The same by the text of the RFC: the content ends at CRLF.CRLF, then every line loses a stuffed dot. */
const decodeSlowly = (wire: string): { content: string; rest: string | null } => {
  const end = `\r\n${wire}`.indexOf("\r\n.\r\n");
  const stuffed = end === -1 ? wire : wire.slice(0, end);
  return { content: stuffed.replace(/(^|\n)\.\./g, "$1."), rest: end === -1 ? null : wire.slice(end + 3) };
};

const FRAGMENTS = ["\r\n", "\n", "\r", ".", "..", ".\r\n", "\r\n.\r\n", "x", "\0", " "];

test("the content is the same wherever the chunks are cut", () => {
  const property = fc.property(
    fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 20 }),
    fc.array(fc.nat(40), { maxLength: 8 }),
    (fragments, cuts) => {
      // Closed by an end, so that nothing is held back.
      const wire = `${fragments.join("")}\r\n.\r\nMAIL`;
      const offsets = [0, ...cuts.filter((cut) => cut < wire.length).toSorted((a, b) => a - b), wire.length];
      const chunks = offsets.slice(1).map((to, index) => wire.slice(offsets[index], to));
      expect(decode(chunks)).toEqual(decodeSlowly(wire));
    },
  );
  fc.assert(property, { numRuns: 5_000 });
});

test("every single byte may be a chunk", () => {
  for (const wire of [
    "..one\r\n.\r\n",
    ".\r\n",
    "\r\n.\r\nQUIT",
    "a\n..b\r\n...\r\n.\r\r\n.\r\n",
    "x\r\n.y\r\n.\r\n",
  ]) {
    expect(decode([...wire])).toEqual(decodeSlowly(wire));
  }
});
