import { describe, expect, test } from "bun:test";
import { createLog } from "../base/log.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createReceiverHarnesses } from "../../testing/smtp-receiver-harness.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../../testing/smtp-stub-key.ts";
import { SmtpReceiver } from "./smtp-receiver.ts";
import type { ReceiverRules } from "./smtp-receiver-rules.ts";

const startHarness = createReceiverHarnesses();

describe("the greeting", () => {
  test("the banner names the host", async () => {
    const harness = await startHarness();
    expect(await harness.connect().readReply()).toBe("220 reports.example.test ESMTP");
  });

  test("EHLO offers what is supported and nothing else", async () => {
    const harness = await startHarness();
    const client = harness.connect();
    await client.readReply();
    expect((await client.command("EHLO sender.example")).split("\n")).toEqual([
      "250-reports.example.test",
      "250-PIPELINING",
      "250-8BITMIME",
      "250-SMTPUTF8",
      "250-ENHANCEDSTATUSCODES",
      "250-STARTTLS",
      "250 SIZE 26214400",
    ]);
  });

  test("a client that knows only HELO is served", async () => {
    const harness = await startHarness();
    const client = harness.connect();
    await client.readReply();
    expect(await client.command("HELO old.example")).toBe("250 reports.example.test");
    expect(await client.codes("MAIL FROM:<>", "RCPT TO:<known@r.test>", "DATA", "x\r\n.", "QUIT")).toBe(
      "250 250 354 250 221",
    );
    expect(harness.mails).toMatchObject([{ helo: "old.example", mailFrom: "" }]);
  });

  test.each(["MAIL FROM:<a@b.example>", "RCPT TO:<known@r.test>", "DATA"])(
    "%s before EHLO is refused",
    async (line) => {
      const harness = await startHarness();
      const client = harness.connect();
      await client.readReply();
      expect(await client.codes(line)).toBe("503");
    },
  );
});

describe("a mail", () => {
  test("is handed over with what the client said about it, and answered 250", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    expect(await client.command("Subject: x\r\n\r\nbody\r\n.")).toBe("250 2.0.0 Message accepted");
    expect(harness.mails).toMatchObject([
      {
        recipients: ["known@reports.example.test"],
        mailFrom: "a@b.example",
        helo: "sender.example",
        client: "127.0.0.1",
        tls: false,
      },
    ]);
    expect(harness.content()).toBe("Subject: x\r\n\r\nbody\r\n");
    await harness.untilOpen(1);
    expect(harness.receiver.counts()).toMatchObject({ connections: 1, open: 1, accepted: 1, heldBytes: 0 });
  });

  test("is not answered before it is taken", async () => {
    const taking = Promise.withResolvers<"accepted">();
    const harness = await startHarness({ acceptMail: () => taking.promise });
    const client = await harness.atData();
    let isAnswered = false;
    const reply = client.command("x\r\n.\r\nNOOP").then((text) => {
      isAnswered = true;
      return text;
    });
    const other = await harness.greet();
    expect(await other.codes("NOOP", "NOOP", "NOOP")).toBe("250 250 250");
    expect(harness.mails).toHaveLength(1);
    expect(isAnswered).toBe(false);
    taking.resolve("accepted");
    expect(await reply).toBe("250 2.0.0 Message accepted");
  });

  test.each([
    ["later", "451 4.3.0 Temporary local problem, try again later"],
    ["refused", "554 5.7.1 Message refused"],
  ] as const)("that must come %s gets the reply for it", async (outcome, reply) => {
    const harness = await startHarness({ acceptMail: async () => outcome });
    const client = await harness.atData();
    expect(await client.command("x\r\n.")).toBe(reply);
    expect(harness.receiver.counts()).toMatchObject({ accepted: 0, [outcome]: 1, heldBytes: 0 });
  });

  test("whose taking fails is answered 451, with a line in the log", async () => {
    const harness = await startHarness({ acceptMail: () => Promise.reject(new Error("database or disk is full")) });
    const client = await harness.atData();
    expect((await client.command("x\r\n.")).slice(0, 9)).toBe("451 4.3.0");
    expect(harness.logged.join("\n")).toContain("database or disk is full");
    expect(await client.codes("MAIL FROM:<a@b.example>")).toBe("250");
  });

  test("follows another in one connection, with its own recipients", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    await client.command("first\r\n.");
    await client.codes("MAIL FROM:<c@d.example>", "RCPT TO:<known2@r.test>", "DATA", "second\r\n.");
    expect(harness.mails.map(({ recipients }) => recipients)).toEqual([
      ["known@reports.example.test"],
      ["known2@r.test"],
    ]);
  });

  test("whose client hangs up in DATA is forgotten", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    client.send("Subject: half a mail\r\n");
    await client.flushed();
    client.destroy();
    const other = await harness.atData();
    await other.command("whole\r\n.");
    expect(harness.mails).toHaveLength(1);
    await harness.untilOpen(1);
    expect(harness.receiver.counts()).toMatchObject({ open: 1, heldBytes: 0 });
  });

  test("whose client hangs up after the end of the content is kept", async () => {
    const arrived = Promise.withResolvers<void>();
    const taking = Promise.withResolvers<"accepted">();
    const harness = await startHarness({
      acceptMail: () => {
        arrived.resolve();
        return taking.promise;
      },
    });
    const client = await harness.atData();
    client.send("whole\r\n.\r\n");
    await arrived.promise;
    client.destroy();
    await harness.untilOpen(0);
    taking.resolve("accepted");
    await harness.clock.advance(0);
    expect(harness.receiver.counts()).toMatchObject({ accepted: 1, heldBytes: 0, dropped: 0 });
    expect(harness.clock.pending()).toBe(0);
  });

  test("of which commands and content come in one packet is received", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    client.send("MAIL FROM:<a@b.example>\r\nRCPT TO:<known@r.test>\r\nDATA\r\nall at once\r\n.\r\nQUIT\r\n");
    const replies = [];
    for (let count = 0; count < 5; count++) replies.push((await client.readReply()).slice(0, 3));
    expect(replies).toEqual(["250", "250", "354", "250", "221"]);
    await client.closed();
    expect(harness.content()).toBe("all at once\r\n");
  });
});

describe("a recipient", () => {
  test("that is named twice, in any case, is one", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    await client.codes("MAIL FROM:<a@b.example>", "RCPT TO:<known@r.test>", "RCPT TO:<known@R.TEST>", "DATA", "x\r\n.");
    expect(harness.mails).toMatchObject([{ recipients: ["known@R.TEST"] }]);
  });

  test("that is unknown is refused, beside known ones", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    expect(await client.codes("MAIL FROM:<a@b.example>")).toBe("250");
    expect(await client.command("RCPT TO:<nobody@r.test>")).toBe("550 5.1.1 User unknown");
    expect(await client.codes("DATA")).toBe("503");
    expect(await client.codes("RCPT TO:<known1@r.test>", "RCPT TO:<x@r.test>", "RCPT TO:<known2@r.test>")).toBe(
      "250 550 250",
    );
    expect(await client.codes("DATA", "x\r\n.")).toBe("354 250");
    expect(harness.mails).toMatchObject([{ recipients: ["known1@r.test", "known2@r.test"] }]);
  });

  test("that cannot be judged now is to be tried later", async () => {
    const harness = await startHarness({ judgeRecipient: async () => "later" as const });
    const client = await harness.greet();
    await client.command("MAIL FROM:<a@b.example>");
    expect((await client.command("RCPT TO:<known@r.test>")).slice(0, 9)).toBe("451 4.3.0");
  });

  test("whose judgement fails is to be tried later, with a line in the log", async () => {
    const harness = await startHarness({
      judgeRecipient: () => {
        throw new Error("database is locked");
      },
    });
    const client = await harness.greet();
    await client.command("MAIL FROM:<a@b.example>");
    expect((await client.command("RCPT TO:<known@r.test>")).slice(0, 9)).toBe("451 4.3.0");
    expect(harness.logged.join("\n")).toContain("database is locked");
  });

  test.each([
    '"known"@r.test',
    "known@r.test.",
    "known@xn--mnchen-3ya.test",
    "postmaster",
    "postmaster@reports.example.test",
  ])("%s is judged, not refused for its form", async (address) => {
    const asked: string[] = [];
    const harness = await startHarness({
      judgeRecipient: (it) => {
        asked.push(it);
        return "unknown";
      },
    });
    const client = await harness.greet();
    expect(await client.codes("MAIL FROM:<a@b.example>", `RCPT TO:<${address}>`)).toBe("250 550");
    expect(asked).toHaveLength(1);
  });
});

describe("other commands", () => {
  test.each([
    ["AUTH PLAIN AGEAYg==", "500"],
    ["VRFY known@r.test", "252"],
    ["EXPN list", "502"],
    ["ETRN example.test", "502"],
    ["TURN", "502"],
    ["XCLIENT ADDR=192.0.2.1", "500"],
    ["XFORWARD ADDR=192.0.2.1", "500"],
    ["WIZ x", "500"],
    ["RUBBISH", "500"],
    ["HELP", "214"],
    ["NOOP", "250"],
    ["RSET", "250"],
    ["MAIL FROM:a@b.example", "501"],
    ["MAIL FROM:<a@b.example> SIZE=x", "501"],
    ["MAIL FROM:<a@b.example> SIZE", "501"],
    ["MAIL FROM:<a@b.example> BODY=BINARYMIME", "501"],
    ["MAIL FROM:<a@b.example> SMTPUTF8=yes", "501"],
    ["EHLO", "501"],
    ["EHLO a b", "501"],
    [`HELO ${"x".repeat(256)}`, "501"],
    ["STARTTLS now", "501"],
  ])("%s is answered %s", async (line, code) => {
    const harness = await startHarness();
    const client = await harness.greet();
    expect(await client.codes(line, "NOOP")).toBe(`${code} 250`);
  });

  test("a second MAIL is refused, and RSET permits one", async () => {
    const client = await (await startHarness()).greet();
    expect(await client.command("MAIL FROM:<a@b.example>")).toStartWith("250 2.1.0 ");
    expect(await client.command("MAIL FROM:<a@b.example>")).toBe("503 5.5.1 Nested MAIL command");
    expect(await client.codes("RSET", "MAIL FROM:<a@b.example>")).toBe("250 250");
  });

  test("a bug ends the connection, with a line in the log, and gives its slot back", async () => {
    const harness = await startHarness({
      isFull: () => {
        throw new Error("a bug");
      },
    });
    const client = await harness.greet();
    expect(await client.command("MAIL FROM:<a@b.example>")).toBe("closed");
    await harness.untilOpen(0);
    expect(harness.logged.join("\n")).toContain("a bug");
  });

  test("every refusal has an enhanced status code", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    for (const line of ["RUBBISH", "EXPN x", "DATA", "MAIL FROM:x", "RCPT TO:<known@r.test>"])
      expect(await client.command(line)).toMatch(/^5\d\d 5\.\d+\.\d+ \S/);
  });

  test("what follows BDAT is not read as commands", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    client.send("MAIL FROM:<a@b.example>\r\nRCPT TO:<known@r.test>\r\nBDAT 6 LAST\r\nDATA\r\nsmuggled\r\n.\r\n");
    const codes = [];
    for (let reply = await client.readReply(); reply !== "closed"; reply = await client.readReply())
      codes.push(reply.slice(0, 3));
    expect(codes).toEqual(["250", "250", "502", "421"]);
    expect(harness.mails).toEqual([]);
  });

  test("a web browser is sent away", async () => {
    const harness = await startHarness();
    const client = harness.connect();
    await client.readReply();
    expect(await client.codes("POST / HTTP/1.1")).toBe("421");
    await client.closed();
  });
});

describe("listening", () => {
  const make = (key = TEST_KEY) => {
    const clock = createTestClock();
    const rules = { judgeRecipient: () => "unknown", acceptMail: async () => "accepted" } satisfies ReceiverRules;
    const log = createLog("silent", clock, () => undefined);
    return new SmtpReceiver({ hostName: "r.test", tls: { cert: TEST_CERTIFICATE, key }, clock, log, rules });
  };

  test("a port in use is a sentence", async () => {
    const harness = await startHarness();
    expect(await make().listen("127.0.0.1", harness.port)).toEqual({
      ok: false,
      error: {
        kind: "listen_failed",
        message: `Cannot receive report mail on 127.0.0.1:${harness.port}: another program listens there.`,
      },
    });
  });

  test("an address that is not here is a sentence", async () => {
    expect(await make().listen("192.0.2.1", 0)).toMatchObject({ ok: false, error: { kind: "listen_failed" } });
  });

  test("a key that is none is a sentence", async () => {
    expect(await make("no key").listen("127.0.0.1", 0)).toMatchObject({ ok: false, error: { kind: "tls_unusable" } });
  });

  test("a receiver that never listened closes", async () => {
    await make().close();
  });
});
