import { describe, expect, test } from "bun:test";
import { IMAP_REPLY_LIMITS, ImapReplyLimits } from "./imap-reply-limits.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What the limits say to a text in chunks of a size, and the chunk at which they say it. */
const take = (text: string, chunkBytes = 65_536) => {
  const limits = new ImapReplyLimits();
  limits.begin("read messages");
  const all = bytes(text);
  for (let at = 0; at < all.length; at += chunkBytes) {
    const excess = limits.take(all.subarray(at, at + chunkBytes));
    if (excess !== null) return { excess, atByte: at };
  }
  return null;
};

const uids = (count: number): string => Array.from({ length: count }, (_, n) => 4_000_000_000 + n).join(" ");
const message = (n: number, size: number): string =>
  `* ${n} FETCH (UID ${n} RFC822.SIZE ${size} INTERNALDATE "01-Jan-2026 10:00:00 +0000" BODY[]<0> {${size}}\r\n${" (\r\n".repeat(size / 4)})\r\n`;

describe("what the service asks for is within the limits", () => {
  test.each([
    ["10,000 UIDs", `* SEARCH ${uids(10_000)}\r\nA1 OK done\r\n`],
    ["100 messages of 80 kB", Array.from({ length: 100 }, (_, n) => message(n + 1, 80_000)).join("")],
    ["one message of 25 MiB", message(1, 25 * 1024 * 1024)],
    ["a literal of nothing", "* LIST () NIL {0}\r\n\r\n"],
    ["a thousand folders", '* LIST (\\HasNoChildren) "/" "Reports"\r\n'.repeat(1_000)],
  ])("%s", (_, text) => expect(take(text)).toBeNull());
});

describe("what floods is named, at the limit and not after it", () => {
  test.each([
    ["responses", "2,000", "* 7 EXISTS\r\n".repeat(500_000), 26_000],
    ["words", "20,000", `* SEARCH ${uids(900_000)}\r\n`, 230_000],
    ["words", "20,000", "(".repeat(1_000_000), 66_000],
    ["literals", "1,000", `* 1 FETCH (${"X {0}\r\n ".repeat(500_000)}`, 66_000],
    ["bytes of protocol", "1,048,576", "x".repeat(4_000_000), 1_050_000],
    ["bytes", "67,108,864", `* 1 FETCH (BODY[] {100000000}\r\n${"x".repeat(70_000_000)}`, 67_200_000],
  ])("%s: more than %s", (unit, limit, text, atByteMax) => {
    const { excess, atByte } = take(text) ?? { excess: null, atByte: 0 };
    expect(excess).toBe(`The server sent more than ${limit} ${unit} when it was to read messages.`);
    expect(atByte).toBeLessThan(atByteMax);
  });
});

test("each command begins anew", () => {
  const limits = new ImapReplyLimits();
  for (let command = 0; command < 10; command += 1) {
    limits.begin("search the folder");
    expect(limits.take(bytes("* 7 EXISTS\r\n".repeat(IMAP_REPLY_LIMITS.responses)))).toBeNull();
  }
  expect(limits.take(bytes("* 7 EXISTS\r\n"))).toContain("2,000 responses");
});

test("literals are recognized wherever the bytes are split", () => {
  const inside = "* 1 FETCH (X {9999999}\r\n ";
  const literals = new ImapReplyLimits();
  const text = bytes(
    `* 1 FETCH (UID 1 BODY[] {${inside.length}}\r\n${inside} A {0}\r\n B ~{3}\r\n({)\r\n)\r\n${"* 1 EXISTS\r\n".repeat(1_997)}`,
  );
  for (const byte of text) expect(literals.take(Uint8Array.of(byte))).toBeNull();
  expect(literals.take(bytes("* 1 EXISTS\r\n"))).toBeNull();
  expect(literals.take(bytes("* 1 EXISTS\r\n"))).toContain("responses");
});

test("a size of a literal that is padded beyond what is read is refused: its content would not be counted", () => {
  expect(take(`* 1 FETCH (BODY[] {${"0".repeat(40)}5}\r\n`)?.excess).toContain("invalid literal");
});
