import { describe, expect, test } from "bun:test";
import { Glob } from "bun";
import fc from "fast-check";
import { looksLikeMessage, MESSAGE_LIMITS, readMessage } from "./message.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text.replaceAll("\n", "\r\n"));
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const read = async (text: string) => {
  const message = await readMessage(bytesOf(text));
  if (!message.ok) throw new Error(message.error);
  return message.value;
};

const multipart = (...parts: readonly string[]): string =>
  `From: R <r@reporter.example>\nSubject: =?utf-8?q?Bericht_f=C3=BCr?= x\nContent-Type: multipart/mixed; boundary=b\n\n` +
  `${parts.map((part) => `--b\n${part}\n`).join("")}--b--\n`;

describe("a message is taken apart", () => {
  test("into its leaves, in order, with the sender and subject", async () => {
    const message = await read(
      multipart("\nwords", "Content-Type: APPLICATION/Zip\n\nPK", "Content-Type: text/html\n\n<p>"),
    );
    expect(message).toMatchObject({ kind: "ordinary", from: "r@reporter.example", subject: "Bericht für x" });
    expect(message.parts.map(({ contentType, bytes }) => [contentType, textOf(bytes).trim()])).toEqual([
      ["text/plain", "words"],
      ["application/zip", "PK"],
      ["text/html", "<p>"],
    ]);
  });

  test("one that is itself the attachment has one part", async () => {
    const message = await read(
      'Content-Type: application/gzip; name="a.gz"\nContent-Transfer-Encoding: base64\n\naGVs\nbG8=\n',
    );
    expect(message.parts).toMatchObject([{ contentType: "application/gzip", name: "a.gz" }]);
    expect(message.parts.map(({ bytes }) => textOf(bytes))).toEqual(["hello"]);
  });

  test.each([
    ["Content-Disposition", 'Content-Disposition: attachment; filename="a.gz"\nContent-Type: x/y; name="b.gz"', "a.gz"],
    ["Content-Type", 'Content-Type: x/y; name="b.gz"', "b.gz"],
    ["Content-Description", "Content-Type: x/y\nContent-Description: c.gz", "c.gz"],
    ["RFC 2231 pieces", 'Content-Disposition: attachment; filename*0="a!";\n filename*1="b.gz"', "a!b.gz"],
    ["RFC 2231 with a character set", "Content-Disposition: attachment; filename*=utf-8''a%C3%BC.gz", "aü.gz"],
    ["encoded words", 'Content-Type: x/y; name="=?utf-8?q?a=C3=BC=2Egz?="', "aü.gz"],
    ["nowhere", "Content-Type: x/y", null],
  ])("its names come from %s", async (_where, header, name) => {
    expect((await read(multipart(`${header}\n\nx`))).parts[0]?.name).toBe(name);
  });

  test("bytes sent as text stay the bytes they are", async () => {
    const bytes = new Uint8Array([0x1f, 0x8b, 8, 0, 0xff, 0xfe, 0x80]);
    const base64 = Buffer.from(bytes).toString("base64");
    for (const type of ["Content-Type: text/plain\n", "Content-Type: text/html; charset=utf-16\n", ""]) {
      const { parts } = await read(multipart(`${type}Content-Transfer-Encoding: base64\n\n${base64}`));
      expect(parts.map((part) => [...part.bytes])).toEqual([[...bytes]]);
    }
  });

  test("an enclosed message stays one part", async () => {
    const { parts } = await read(
      multipart(`Content-Type: message/rfc822\n\n${multipart("\ninner").replaceAll("--b", "--c")}`),
    );
    expect(parts.map(({ contentType }) => contentType)).toEqual(["message/rfc822"]);
  });

  test.each([
    ["a mailbox file's line in front", "From r@x Thu Nov 20\n"],
    ["blank lines in front", "\n\n"],
  ])("with %s", async (_what, front) => {
    expect((await read(front + multipart("\nwords"))).parts).toHaveLength(1);
  });
});

describe("what it is for", () => {
  const report = (type: string, part = "text/plain") =>
    `Content-Type: multipart/report; report-type=${type}; boundary=b\n\n--b\nContent-Type: ${part}\n\nx\n--b--\n`;
  test.each([
    [report("delivery-status"), "delivery_report"],
    [report("disposition-notification"), "delivery_report"],
    [report('"feedback-report"'), "failure_report"],
    [report("tlsrpt"), "ordinary"],
    [report("x", "message/delivery-status"), "delivery_report"],
    [report("x", "message/feedback-report"), "failure_report"],
    ["X-Failed-Recipients: a@b.example\n\nx", "delivery_report"],
    ["From: mailer-daemon@x.example\n\nx", "ordinary"],
  ] as const)("%# %j", async (text, kind) => {
    expect((await read(text)).kind).toBe(kind);
  });
});

describe("ceilings", () => {
  const problemOf = async (bytes: Uint8Array) => {
    const message = await readMessage(bytes);
    return message.ok ? null : message.error;
  };

  test("a message of one byte more than allowed is refused", async () => {
    expect(await problemOf(new Uint8Array(MESSAGE_LIMITS.messageBytesMax + 1))).toBe("message_too_large");
  });

  test("headers, nesting, lines and parts without end are refused", async () => {
    const nested = Array.from(
      { length: MESSAGE_LIMITS.multipartDepthMax + 2 },
      (_, depth) => `Content-Type: multipart/mixed; boundary=b${depth}\n\n--b${depth}\n`,
    ).join("");
    const nestedAndClosed = `${nested}\n--b0--\n`;
    const manyParts = multipart(...Array.from({ length: MESSAGE_LIMITS.partsMax + 1 }, () => "\nx"));
    const manyLines = `From: a\n\n${"x\n".repeat(MESSAGE_LIMITS.linesMax)}`;
    const manyBoundaries = multipart(...Array.from({ length: MESSAGE_LIMITS.dashLinesMax }, () => ""));
    const longHeader = `Subject: ${"x".repeat(MESSAGE_LIMITS.headerBytesMax)}\n\nx`;
    const endlessHeader = `Subject: x\n${"X-A: y\n".repeat(MESSAGE_LIMITS.headerBytesMax)}`;
    expect(await problemOf(bytesOf(endlessHeader))).toBe("message_too_complex");
    for (const text of [nested, nestedAndClosed, manyParts, longHeader, manyLines, manyBoundaries])
      expect(await problemOf(bytesOf(text))).toBe("message_too_complex");
  });
});

test("a message of many lines leaves turns to the rest of the process", async () => {
  let turns = 0;
  let isRead: boolean = false;
  const count = (): void => {
    turns++;
    if (!isRead) setImmediate(count);
  };
  setImmediate(count);
  await read(`From: a\n\n${"\n".repeat(400_000)}`);
  isRead = true;
  expect(turns).toBeGreaterThan(10);
});

test("a large message leaves turns to the rest of the process", async () => {
  const order: string[] = [];
  setImmediate(() => order.push("the rest"));
  await read(`From: a\n\n${"<b>&amp;</b>\n".repeat(20_000)}`);
  order.push("the message");
  expect(order).toEqual(["the rest", "the message"]);
});

test.each([76, 1_000_000])("base64 in lines of %d characters is decoded to the bytes it stands for", async (length) => {
  const bytes = Buffer.from(Array.from({ length: 600_000 }, (_, index) => index % 251));
  const lines = bytes.toString("base64").replace(new RegExp(`.{${length}}`, "g"), "$&\n");
  for (const text of [
    `Content-Transfer-Encoding: base64\n\n${lines}`,
    multipart(`Content-Transfer-Encoding: base64\n\n${lines}`),
  ]) {
    const { parts } = await read(text);
    expect(parts.map((part) => bytes.equals(part.bytes))).toEqual([true]);
  }
});

describe("boundaries", () => {
  const partsOf = async (text: string) => (await read(text)).parts.map(({ bytes }) => textOf(bytes));
  const head = "Content-Type: multipart/mixed; boundary=b\n\n";
  test.each([
    ["may be followed by blanks", "--b \t\n\none\n--b-- \n", ["one\n"]],
    ["are no longer ones with more behind them", "--b\n\none\n--bx\n--b--x\n--b--\n", ["one\n--bx\n--b--x\n"]],
    ["end parts without a body", "--b\nX: y\n--b\n\ntwo\n--b--\n", ["two\n"]],
    ["begin with two dashes and nothing else", "--b\n\none\nxxb\n--\n--b--\n", ["one\nxxb\n--\n"]],
    ["may be missing at the end", "--b\n\none", ["one\n"]],
    ["leave preamble and epilogue out", "preamble\n--b\n\none\n--b--\nepilogue\n", ["one\n"]],
    [
      "of the multipart around end what is open inside",
      "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\none\n--b\n\ntwo\n--c\nthree\n--b--\n",
      ["one\n", "two\n--c\nthree\n"],
    ],
  ])("%s", async (_what, text, parts) => {
    expect(await partsOf(head + text)).toEqual(parts);
  });
});

test("lines that only begin like the boundaries of many multiparts are read in linear time", async () => {
  const nested = "Content-Type: multipart/mixed; boundary=b\n\n--b\n".repeat(MESSAGE_LIMITS.multipartDepthMax - 1);
  const blanks = " ".repeat(12 * 1024 * 1024);
  const startMs = performance.now();
  const { parts } = await read(`${nested}\n--b${blanks}x\n--b--${blanks}\n`);
  expect(parts.map(({ bytes }) => bytes.length)).toEqual([blanks.length + 5]);
  // Where each multipart looks at each blank, this takes several seconds.
  expect(performance.now() - startMs).toBeLessThan(2_000);
});

test("a fixture that is cut anywhere is read without an error, and gives no more than it has", async () => {
  const folder = new URL("../../../fixtures/dmarc/reports/mails/", import.meta.url).pathname;
  for (const file of new Glob("*.eml").scanSync(folder)) {
    const bytes = await Bun.file(folder + file).bytes();
    for (let end = 0; end <= bytes.length; end += 7) {
      const message = await readMessage(bytes.subarray(0, end));
      const partBytes = message.ok ? message.value.parts.reduce((sum, part) => sum + part.bytes.length, 0) : 0;
      expect(partBytes).toBeLessThanOrEqual(end + 1);
    }
  }
});

test("what begins like a message is distinguished from what does not", () => {
  for (const text of ["From: a", "Received : x", "\n\nX-a: b", "From a@b Thu\nTo: c"]) {
    expect(looksLikeMessage(bytesOf(`${text}\n`))).toBe(true);
  }
  for (const text of ["", "<?xml version=':'?>", '{"a": 1}', "words, and: words", "PK\u0003\u0004:", "nothing"]) {
    expect(looksLikeMessage(bytesOf(`${text}\n`))).toBe(false);
  }
});

test("any bytes give a message or a problem, and parts that are not larger than the message", async () => {
  const line = fc.oneof(
    fc.constantFrom(
      "--b",
      "--b--",
      "",
      "Content-Type: multipart/mixed; boundary=b",
      "Content-Transfer-Encoding: base64",
    ),
    fc.string(),
  );
  const property = fc.asyncProperty(fc.array(line, { maxLength: 30 }), async (lines) => {
    const bytes = bytesOf(lines.join("\n"));
    const message = await readMessage(bytes);
    const partBytes = message.ok ? message.value.parts.reduce((sum, part) => sum + part.bytes.byteLength, 0) : 0;
    // Decoding never adds bytes; line ends and characters that are no UTF-8 are the decoder's.
    expect(partBytes).toBeLessThanOrEqual(bytes.byteLength * 3);
  });
  await fc.assert(property, { numRuns: 300 });
});

test("many parts, each too short for a turn of its own, are decoded in turns", async () => {
  const part = `\n${"=".repeat(60 * 1024)}`;
  const bytes = bytesOf(multipart(...Array.from({ length: 60 }, () => part)));
  let turns = 0;
  let isDone: boolean = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const message = await readMessage(bytes);
  isDone = true;
  expect(message.ok && message.value.parts.length).toBe(60);
  expect(turns).toBeGreaterThan(10);
});
