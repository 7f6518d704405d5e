import { describe, expect, test } from "bun:test";
import { decodeBase64Text, findXmlInText, kindOfPayload } from "./unpack.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

test.each([
  ["<html><p>x", "other"],
  ["\n<DIV class='x'>x", "other"],
  ["<!DOCTYPE html>\n<html>", "other"],
  ["<feedback>", "xml"],
  ["<f:feedback>", "xml"],
  ["<?xml version='1.0'?>", "xml"],
  ["<policy_published>", "xml"],
] as const)("%j is %s by its start", (text, kind) => {
  expect(kindOfPayload(bytesOf(text))).toBe(kind);
});

test("a report quoted in a page is found", () => {
  const found = findXmlInText(bytesOf("<p>See: <feedback><x/></feedback>"));
  expect(new TextDecoder().decode(found ?? new Uint8Array())).toBe("<feedback><x/></feedback>");
});

describe("a text of base64", () => {
  const bytes = Buffer.from(Array.from({ length: 500_001 }, (_, index) => index % 253));

  test.each([[76], [1001], [1_000_000]])(
    "of many steps, in lines of %d characters, is decoded whole",
    async (length) => {
      const text = bytes.toString("base64").replace(new RegExp(`.{${length}}`, "g"), "$&\r\n");
      expect(bytes.equals((await decodeBase64Text(bytesOf(text))) ?? new Uint8Array())).toBe(true);
    },
  );

  test("with other characters in it, or more behind its end, is none", async () => {
    const text = bytes.toString("base64");
    for (const bad of [
      `${text.slice(0, 400_000)}!${text.slice(400_000)}`,
      `QQ==${text}`,
      `${"A".repeat(300_000)}=${text}`,
    ])
      expect(await decodeBase64Text(bytesOf(bad))).toBeNull();
  });
});
