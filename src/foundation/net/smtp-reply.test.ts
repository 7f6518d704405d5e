import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { z } from "zod";
import { createReplyParser, parseReply, REPLY_LIMITS } from "./smtp-reply.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const latin1Bytes = (text: string) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

const fixtureReplies = (): string[] => {
  const directory = fileURLToPath(new URL("../../../fixtures/replies", import.meta.url));
  return readdirSync(directory).flatMap((name) =>
    z
      .array(z.object({ reply: z.string() }))
      .parse(JSON.parse(readFileSync(`${directory}/${name}`, "utf8")))
      .map((fixture) => fixture.reply),
  );
};

const ROWS: ReadonlyArray<readonly [claim: string, text: string, code: number, enhanced: string | null, text: string]> =
  [
    ["a code alone is a reply", "250", 250, null, ""],
    ["a code with a lone separator is a reply", "250 ", 250, null, ""],
    ["a tab separates as well as a space", "250\tOK", 250, null, "OK"],
    ["the enhanced code is split from the text", "550 5.1.1 User unknown", 550, "5.1.1", "User unknown"],
    ["the enhanced code may stand alone", "550 5.1.1", 550, "5.1.1", ""],
    ["the enhanced code may end in a colon", "550 5.1.1: User unknown", 550, "5.1.1", "User unknown"],
    [
      "the enhanced code may touch the address",
      "550 5.1.1<a@b.example> unknown",
      550,
      "5.1.1",
      "<a@b.example> unknown",
    ],
    ["a hash before the enhanced code is tolerated", "550 #5.1.0 Address rejected.", 550, "5.1.0", "Address rejected."],
    [
      "an enhanced code in qmail's brackets counts",
      "550 sorry, no mailbox (#5.1.1)",
      550,
      "5.1.1",
      "sorry, no mailbox",
    ],
    ["an enhanced code behind one word counts", "550 cuda_nsu 5.1.1 unknown", 550, "5.1.1", "cuda_nsu unknown"],
    ["a code said twice is said once", "550 550 5.1.1 User unknown", 550, "5.1.1", "User unknown"],
    ["zeros before the digits of an enhanced code vanish", "550 5.01.010 x", 550, "5.1.10", "x"],
    ["an IP address is no enhanced code", "550 5.1.1.7 is listed", 550, null, "5.1.1.7 is listed"],
    ["a number of four digits is no enhanced code", "550 5.1.1000 x", 550, null, "5.1.1000 x"],
    ["an enhanced code of another class is ignored", "450 5.1.1 User unknown", 450, null, "User unknown"],
    ["an enhanced code on the first line only counts", "550-5.1.1 no\n550 such user", 550, "5.1.1", "no\nsuch user"],
    ["an enhanced code on the last line only counts", "550-no\n550 5.1.1 such user", 550, "5.1.1", "no\nsuch user"],
    ["of several enhanced codes the last line's counts", "550-5.7.1 a\n550 5.1.1 b", 550, "5.1.1", "a\nb"],
    ["of several codes the last line's counts", "250-fine\r\n550 5.1.1 not", 550, "5.1.1", "fine\nnot"],
    ["a bare LF ends a line", "550-a\n550 b\n", 550, null, "a\nb"],
    ["literal backslash-n before a code ends a line", "550-5.1.1 a\\n550 5.1.1 b", 550, "5.1.1", "a\nb"],
    ["literal CR LF escapes end a line", "550-a\\r\\n550 b\\r\\n", 550, null, "a\nb"],
    ["a backslash-n inside a word is text", "550 DOM\\nobody unknown", 550, null, "DOM\\nobody unknown"],
    ["NUL and bare CR become spaces", "550 a\u0000b\rc", 550, null, "a b c"],
  ];

for (const [claim, input, code, enhanced, text] of ROWS) {
  test(claim, () => {
    const result = parseReply(input);
    expect(result.ok && { code: result.value.code, enhanced: result.value.enhanced, text: result.value.text }).toEqual({
      code,
      enhanced,
      text,
    });
  });
}

test.each([
  ["", "not_a_reply"],
  ["hello", "not_a_reply"],
  ["25", "not_a_reply"],
  ["2500 x", "not_a_reply"],
  ["250OK", "not_a_reply"],
  [" 250 OK", "not_a_reply"],
  ["\ufeff250 OK", "not_a_reply"],
  ["\u0662\u0665\u0660 OK", "not_a_reply"],
  ["250-first\nsecond\n250 third", "not_a_reply"],
  ["199 x", "code_out_of_range"],
  ["600 x", "code_out_of_range"],
  ["000 x", "code_out_of_range"],
  ["250-", "incomplete"],
  ["250-a\r\n250-b\r\n", "incomplete"],
  ["250 OK\r\n550 no", "trailing_text"],
  ["250 OK\r\n550-no", "trailing_text"],
  [`250 ${"x".repeat(50_000)}`, "line_too_long"],
] as const)("%p is not one reply: %s", (text, problem) => {
  expect(parseReply(text)).toEqual({ ok: false, error: problem });
});

test("lines keep what text strips, and raw keeps what lines strip", () => {
  const result = parseReply("550-5.1.1 a\r\n550 5.1.1 b\u0001");
  expect(result.ok && [result.value.lines, result.value.raw]).toEqual([
    ["5.1.1 a", "5.1.1 b "],
    ["550-5.1.1 a", "550 5.1.1 b\u0001"],
  ]);
});

test("bytes that are not UTF-8 are read as Latin-1", () => {
  const [reply] = createReplyParser().push(latin1Bytes("550 Empf\u00e4nger unbekannt\r\n"));
  expect(reply?.ok && reply.value.text).toBe("Empf\u00e4nger unbekannt");
});

test("several replies in one chunk come out in order", () => {
  const replies = createReplyParser().push(bytes("250 a\r\n550-b\r\n550 c\r\n451 d\r\n"));
  expect(replies.map((reply) => reply.ok && reply.value.code)).toEqual([250, 550, 451]);
});

test("a line well above 512 octets is accepted", () => {
  expect(parseReply(`550 ${"x".repeat(3000)}`).ok).toBe(true);
});

test("after a problem the parser is silent and holds nothing", () => {
  const parser = createReplyParser();
  expect(parser.push(bytes("250-a\r\njunk\r\n250 b\r\n"))).toEqual([{ ok: false, error: "not_a_reply" }]);
  expect(parser.push(bytes("250 OK\r\n"))).toEqual([]);
  expect(parser.bufferedBytes()).toBe(0);
});

const endless = (chunk: string, chunks: number) => {
  const parser = createReplyParser();
  const piece = bytes(chunk);
  let held = 0;
  const problems: string[] = [];
  for (let sent = 0; sent < chunks; sent++) {
    for (const result of parser.push(piece)) if (!result.ok) problems.push(result.error);
    held = Math.max(held, parser.bufferedBytes());
  }
  return { held, problems };
};

test.each([
  ["an endless line", "x".repeat(1000), "line_too_long"],
  ["an endless line of single digits", "2", "line_too_long"],
  ["an endless line of CRs", "\r".repeat(1000), "line_too_long"],
  ["an endless line of NULs", "\0".repeat(1000), "line_too_long"],
  ["an endless multi-line reply", "250-hello\r\n", "too_many_lines"],
  ["an endless multi-line reply of long lines", `250-${"x".repeat(2000)}\r\n`, "reply_too_long"],
  ["an endless multi-line reply of empty lines", "250-\n", "too_many_lines"],
  ["a flood of replies in one chunk", "250 x\r\n".repeat(1000), "too_many_replies"],
] as const)("%s ends in one problem, in bounded memory", (_claim, chunk, problem) => {
  const { held, problems } = endless(chunk, 5000);
  expect(problems).toEqual([problem]);
  expect(held).toBeLessThanOrEqual(REPLY_LIMITS.lineBytesMax + REPLY_LIMITS.replyBytesMax);
});

test("every fixture split at every byte gives the same reply", () => {
  for (const fixture of fixtureReplies()) {
    const wire = bytes(`${fixture.replaceAll("\n", "\r\n")}\r\n`);
    const whole = createReplyParser().push(wire);
    expect(whole.length).toBe(1);
    for (let at = 1; at < wire.length; at++) {
      const parser = createReplyParser();
      const parts = [...parser.push(wire.subarray(0, at)), ...parser.push(wire.subarray(at))];
      if (!Bun.deepEquals(parts, [...whole])) throw new Error(`split at ${at} differs: ${fixture}`);
    }
  }
});

test("chunks of any sizes give the same replies", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom("250 ok\r\n", "550-5.1.1 a\r\n550 5.1.1 b\n", "421 \u00e4\u6f22\r\n", "x\n", "250-\r\n"),
        { maxLength: 12 },
      ),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
      (texts, sizes) => {
        const wire = bytes(texts.join(""));
        const parser = createReplyParser();
        const parts: unknown[] = [];
        for (let start = 0, turn = 0; start < wire.length; turn++) {
          const size = sizes[turn % sizes.length] ?? 1;
          parts.push(...parser.push(wire.subarray(start, start + size)));
          start += size;
        }
        expect(parts).toEqual([...createReplyParser().push(wire)]);
      },
    ),
  );
});

test("arbitrary bytes never throw, and at most one problem is reported, last", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 20 }), (chunks) => {
      const parser = createReplyParser({ lineBytesMax: 64, replyBytesMax: 256, linesMax: 4, repliesPerPushMax: 4 });
      const results = chunks.flatMap((chunk) => {
        const answers = parser.push(chunk);
        expect(parser.bufferedBytes()).toBeLessThanOrEqual(64 + 256);
        return answers;
      });
      expect(results.slice(0, -1).every((result) => result.ok)).toBe(true);
    }),
  );
});

test("an enhanced code never contradicts the code", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[2-5]\d\d[ -][245]\.\d{1,3}\.\d{1,3} \w*$/), (text) => {
      const result = parseReply(text);
      if (result.ok && result.value.enhanced !== null)
        expect(result.value.enhanced[0]).toBe(String(result.value.code)[0]);
    }),
  );
});

test("a line is read the same when it comes again, also after many others", () => {
  const lines = ["250 2.1.5 Ok", "550-5.1.1 no such user", "550 5.1.1 <a@example.com> unknown", "554 sorry (#5.7.1)"];
  const first = lines.map((line) => parseReply(line));
  expect(lines.map((line) => parseReply(line))).toEqual(first);
  for (let n = 0; n < 5_000; n++) expect(parseReply(`250 2.0.0 queued as ${n}`)).toMatchObject({ ok: true });
  expect(lines.map((line) => parseReply(line))).toEqual(first);
});
