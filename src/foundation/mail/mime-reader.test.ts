import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeBody, readTransferEncoding, type TransferEncoding } from "./mime-reader.ts";

const decode = async (text: string, encoding: TransferEncoding): Promise<string> =>
  Buffer.from(await decodeBody(Buffer.from(text, "latin1"), encoding)).toString("latin1");

test.each([
  ["base64", "base64"],
  ["BASE64", "base64"],
  ["(comment) Base64 x", "base64"],
  ["Quoted-Printable;", "quoted-printable"],
  ["8bit", "identity"],
  ["", "identity"],
] as const)("%j is %s", (value, encoding) => {
  expect(readTransferEncoding(value)).toBe(encoding);
});

describe("base64", () => {
  test.each([
    ["aGVs\r\nbG8=", "hello"],
    ["a G*V\0s-bG8", "hello"],
    ["aGVs=bG8=", "hello"],
    ["aA==aA==", "hh"],
    ["aGVsb", "hel"],
    ["====", ""],
    ["", ""],
  ])("%j is %j", async (text, decoded) => {
    expect(await decode(text, "base64")).toBe(decoded);
  });

  test("of any bytes, broken into lines anywhere and padded or not, is those bytes", async () => {
    const property = fc.asyncProperty(
      fc.uint8Array({ maxLength: 60 }),
      fc.array(fc.nat(80), { maxLength: 4 }),
      fc.boolean(),
      async (bytes, breaks, isPadded) => {
        let text = Buffer.from(bytes).toString("base64");
        if (!isPadded) text = text.replaceAll("=", "");
        for (const at of breaks) text = `${text.slice(0, at)}\r\n${text.slice(at)}`;
        expect([...(await decodeBody(Buffer.from(text), "base64"))]).toEqual([...bytes]);
      },
    );
    await fc.assert(property, { numRuns: 500 });
  });
});

describe("quoted-printable", () => {
  test.each([
    ["a=3Db\r\n", "a=b\n"],
    ["=c3=BC", "\u00c3\u00bc\n"],
    ["soft =\r\nbreak\r\n", "soft break\n"],
    ["no=\n", "no"],
    ["=4", "=4\n"],
    ["=ZZ=", "=ZZ"],
    ["=\r\r\nx", "x\n"],
    ["=3=3D", "=3=\n"],
  ])("%j is %j", async (text, decoded) => {
    expect(await decode(text, "quoted-printable")).toBe(decoded);
  });
});

describe("other bodies", () => {
  test.each([
    ["one\r\ntwo", "one\ntwo\n"],
    ["one\r\r\n\n", "one\n\n"],
    ["a\rb\r", "a\rb\n"],
    ["\r", "\n"],
    ["", ""],
  ])("%j is %j", async (text, decoded) => {
    expect(await decode(text, "identity")).toBe(decoded);
  });
});

const MANY = 2 * 1024 * 1024;
test.each([
  ["padding", "QQ==", "base64"],
  ["a line of escapes", "=3C", "quoted-printable"],
  ["equals signs", "=", "quoted-printable"],
  ["returns", "\r", "identity"],
  ["returns that end no line", "\rx", "identity"],
] as const)("nothing but %s is decoded in turns", async (_what, unit, encoding) => {
  let turns = 0;
  let isDone: boolean = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await decodeBody(Buffer.from(unit.repeat(MANY / unit.length)), encoding);
  isDone = true;
  expect(turns).toBeGreaterThan(3);
});
