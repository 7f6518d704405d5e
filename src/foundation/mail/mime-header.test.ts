import { describe, expect, test } from "bun:test";
import { decodeEncodedWords, firstAddress, readHeaderFields, readParameterField } from "./mime-header.ts";

const fields = (text: string) => [...readHeaderFields(text.split("\n").map((line) => Buffer.from(line)))];

describe("header fields", () => {
  test("are unfolded; of two with one name the first counts", () => {
    expect(fields("Subject: a\n  b\n\tc\nX : y\nsubject: z")).toEqual([
      ["subject", "a  b\tc"],
      ["x", "y"],
    ]);
  });

  test("are distinguished from lines that only look like them", () => {
    expect(fields("\u00a0From: a\n\ufeffFrom: b\nno colon\n From: c")).toEqual([
      ["\u00a0from", "a"],
      ["\ufefffrom", "b"],
      ["no colon from", "c"],
    ]);
  });
});

describe("parameters", () => {
  test.each([
    ['a/b; name="x;y"; boundary=c', { name: "x;y", boundary: "c" }],
    ["a/b;NAME = x ;flag; boundary=c", { name: "x", flag: "", boundary: "c" }],
    ['a/b; name="a \\"b\\" \\\\"', { name: 'a "b" \\' }],
    ["a/b; name=C:\\files\\a.txt", { name: "C:\\files\\a.txt" }],
    ["a/b; name=report(1).xml (a comment)", { name: "report(1).xml" }],
    ['a/b; name="x" junk; name=y', { name: "x" }],
    ['a/b; boundary="unclosed', { boundary: "unclosed" }],
    ["a/b; name*1=b; name*0=a", { name: "ab" }],
    ["a/b; name*0*=utf-8'de'a%C3; name*1*=%BC; name*2=%41", { name: "aü%41" }],
    ["a/b; name*=iso-8859-1''%FC", { name: "ü" }],
    ["a/b; name*=''x", { name: "x" }],
    ["a/b; name*=no-such-charset''%FC", { name: "ü" }],
  ])("of %s", (field, parameters) => {
    const read = readParameterField(field);
    expect([read.value, Object.fromEntries(read.parameters)]).toEqual(["a/b", parameters]);
  });

  test("the value has neither comments nor quotes", () => {
    expect(readParameterField(' Text/"Plain" (comment)').value).toBe("text/plain");
  });
});

describe("encoded words", () => {
  test.each([
    ["a =?utf-8?q?b=C3=BC_c?= d", "a bü c d"],
    ["=?utf-8?B?w7w=?= =?utf-8?q?x?=", "üx"],
    ["=?utf-8?q?=C3?= =?utf-8?q?=BC?=", "ü"],
    ["=?utf-8?q?a?= b =?utf-8?q?c?=", "a b c"],
    ["=?iso-8859-1*en?q?=FC?=", "ü"],
    ["=?no-such?q?=FC?=", "ü"],
    ["=?utf-8?x?a?= =?", "=?utf-8?x?a?= =?"],
    ["=?utf-8?q?a=ZZ=?=", "a=ZZ="],
  ])("%s", (text, decoded) => {
    expect(decodeEncodedWords(text)).toBe(decoded);
  });
});

test.each([
  ["R <r@x.example>, <s@y.example>", "r@x.example"],
  ['"a <x@y>" <r@x.example>', "r@x.example"],
  ["r@x.example (R)", "r@x.example"],
  ["MAILER-DAEMON", null],
  ["", null],
])("the address in %j is %p", (field, address) => {
  expect(firstAddress(field)).toBe(address);
});

test("fields that would take a careless reader the square of their length are read at once", () => {
  const [long, many] = [120_000, 20_000];
  readParameterField(`a/b;${"*".repeat(long)}=1`);
  readParameterField(`a/b${';a="\\"'.repeat(many)}`);
  readParameterField(`a/b; name=${" (".repeat(long / 2)}`);
  firstAddress('"\\'.repeat(long / 2));
  firstAddress("a".repeat(long));
  decodeEncodedWords("=?u?q?".repeat(many));
  decodeEncodedWords("=?u?q?a?= ".repeat(many));
}, 5_000);
