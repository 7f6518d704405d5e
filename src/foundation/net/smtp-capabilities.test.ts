import { expect, test } from "bun:test";
import { NO_CAPABILITIES, readCapabilities, type SmtpCapabilities } from "./smtp-capabilities.ts";
import { parseReply } from "./smtp-reply.ts";

const offered = (lines: readonly string[]) => {
  const all = ["mx.example", ...lines];
  const reply = parseReply(all.map((line, i) => `250${i === all.length - 1 ? " " : "-"}${line}`).join("\r\n"));
  if (!reply.ok) throw new Error(reply.error);
  return readCapabilities(reply.value);
};

const rows: ReadonlyArray<readonly [readonly string[], Partial<SmtpCapabilities>]> = [
  [[], {}],
  [["PIPELINING"], { pipelining: true }],
  [["pipelining", "StartTLS "], { pipelining: true, starttls: true }],
  [["8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"], { eightBitMime: true, smtputf8: true, enhancedStatusCodes: true }],
  [["SIZE 35882577"], { sizeBytesMax: 35_882_577 }],
  [["SIZE=1000"], { sizeBytesMax: 1_000 }],
  [["SIZE"], {}],
  [["SIZE 0"], {}],
  [["SIZE lots"], {}],
  [["AUTH=PLAIN LOGIN", "X-PIPELINING", "PIPELININGS", ""], {}],
];
for (const [lines, expected] of rows) {
  test(`${JSON.stringify(lines)} is read as ${JSON.stringify(expected)}`, () => {
    expect(offered(lines)).toEqual({ ...NO_CAPABILITIES, ...expected });
  });
}

test("the first line is the server's name, not an offer", () => {
  const reply = parseReply("250-PIPELINING\r\n250 SIZE 1");
  expect(reply.ok && readCapabilities(reply.value).pipelining).toBe(false);
});
