import { expect, test, describe } from "bun:test";
import {
  NO_CAPABILITIES,
  readCapabilities,
  type SmtpCapabilities,
  envelopeCommands,
  greetingCommand,
  RECIPIENTS_MAX,
} from "./smtp-handshake.ts";
import { parseReply } from "./smtp-reply.ts";
import fc from "fast-check";

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

const commandsFor = (recipient: string, smtputf8 = false) =>
  envelopeCommands({ mailFrom: "", recipients: [recipient], smtputf8 }, false);

describe("envelope", () => {
  for (const [mailFrom, smtputf8, eightBitMime, mail] of [
    ["", false, true, "MAIL FROM:<>"],
    ["us@probe.example", false, false, "MAIL FROM:<us@probe.example>"],
    ["", true, false, "MAIL FROM:<> SMTPUTF8"],
    ["", true, true, "MAIL FROM:<> BODY=8BITMIME SMTPUTF8"],
  ] as const) {
    test(`the sender "${mailFrom}" becomes ${mail}`, () => {
      expect(envelopeCommands({ mailFrom, recipients: ["a@x.example"], smtputf8 }, eightBitMime).mail).toBe(mail);
    });
  }

  for (const recipient of [
    "ada@x.example",
    "o'neil+tag@x.example",
    '"a b"@x.example',
    '"a<b>c"@x.example',
    '"a\\"b\\\\c"@x.example',
    "postmaster@[192.0.2.1]",
    "postmaster@[IPv6:2001:db8::1]",
  ]) {
    test(`${recipient} goes on the wire as it is`, () => {
      expect(commandsFor(recipient).rcpts).toEqual([`RCPT TO:<${recipient}>`]);
    });
  }

  for (const recipient of [
    "",
    "a@x.example\r\nDATA",
    "a@x.example\nDATA",
    "a@x.example\rDATA",
    "a\0@x.example",
    "a@x.example> NOTIFY=SUCCESS",
    "a@x.example>",
    "<a@x.example",
    "a b@x.example",
    '"a@x.example',
    '"a\r\nb"@x.example',
    '"a\\\nb"@x.example',
    "a\u0085b@x.example",
    "jörg@x.example",
    `${"a".repeat(400)}@x.example`,
  ]) {
    test(`${JSON.stringify(recipient.slice(0, 40))} is a bug, not a command`, () => {
      expect(() => commandsFor(recipient)).toThrow("not a mailbox for the wire");
    });
  }

  test("a sender is looked at as closely as a recipient", () => {
    const envelope = { mailFrom: "a@x.example>\r\nDATA", recipients: ["a@x.example"], smtputf8: false };
    expect(() => envelopeCommands(envelope, false)).toThrow("not a mailbox");
  });

  test("non-ASCII needs SMTPUTF8", () => {
    expect(commandsFor("jörg@x.example", true).rcpts).toEqual(["RCPT TO:<jörg@x.example>"]);
  });

  for (const count of [0, RECIPIENTS_MAX + 1]) {
    test(`${count} recipients are a bug`, () => {
      const recipients = Array.from({ length: count }, (_, index) => `a${index}@x.example`);
      expect(() => envelopeCommands({ mailFrom: "", recipients, smtputf8: false }, false)).toThrow("recipients");
    });
  }

  test("whatever a mailbox is, a command stays one line with one path", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (mailbox) => {
        let command: string;
        try {
          command = commandsFor(mailbox, true).rcpts[0] ?? "";
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          return;
        }
        // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
        expect(command).not.toMatch(/[\x00-\x1f\x7f]/);
        expect(command.replace(/"(?:[^"\\]|\\.)*"/g, "")).toMatch(/^RCPT TO:<[^<> ]*>$/);
      }),
    );
  });
});

describe("greeting", () => {
  test("a name or an address literal goes on the wire", () => {
    expect(greetingCommand("EHLO", "probe.example")).toBe("EHLO probe.example");
    expect(greetingCommand("HELO", "[192.0.2.1]")).toBe("HELO [192.0.2.1]");
  });

  for (const name of ["", "a b", "a\r\nDATA", "bücher.example"]) {
    test(`${JSON.stringify(name)} is a bug`, () => {
      expect(() => greetingCommand("EHLO", name)).toThrow("not a HELO name");
    });
  }
});
