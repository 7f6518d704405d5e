import { describe, expect, test } from "bun:test";
import { createReceiverHarnesses } from "../../testing/smtp-receiver-harness.ts";

const startHarness = createReceiverHarnesses();

describe("the end of the content", () => {
  // SMTP smuggling (CVE-2023-51764 and its kin): what ends a mail for one server must not be content for another.
  test.each([
    ["LF . CRLF", "\n.\r\n"],
    ["CRLF . LF", "\r\n.\n"],
    ["LF . LF", "\n.\n"],
    ["CR . CR", "\r.\r"],
    ["CRLF . CR", "\r\n.\r"],
    ["CR . CRLF", "\r.\r\n"],
    ["LF . CR LF in two packets", "\n.\r|\n"],
    ["CRLF NUL . CRLF", "\r\n\0.\r\n"],
    ["CRLF . NUL CRLF", "\r\n.\0\r\n"],
    ["CRLF . space CRLF", "\r\n. \r\n"],
  ])("is not %s", async (_name, ending) => {
    const harness = await startHarness();
    const client = await harness.atData();
    const smuggled = "MAIL FROM:<evil@b.example>\r\nRCPT TO:<known2@r.test>\r\nDATA\r\nsmuggled\r\n";
    for (const packet of `Subject: x\r\n\r\nfirst${ending}${smuggled}`.split("|")) {
      client.send(packet);
      await client.flushed();
    }
    expect(await client.command(".")).toBe("250 2.0.0 Message accepted");
    expect(harness.content()).toBe(`Subject: x\r\n\r\nfirst${ending.replace("|", "")}${smuggled}`);
    expect(harness.mails).toHaveLength(1);
  });

  test("is found wherever the packets are cut", async () => {
    const harness = await startHarness();
    const wire = "..one\r\n.\r\n";
    for (let cut = 1; cut < wire.length; cut++) {
      const client = await harness.atData();
      client.send(wire.slice(0, cut));
      await client.flushed();
      await harness.clock.advance(0);
      client.send(wire.slice(cut));
      expect(await client.readReply()).toBe("250 2.0.0 Message accepted");
      client.end();
    }
    expect(harness.mails.map(({ bytes }) => Buffer.from(bytes).toString())).toEqual(
      Array.from({ length: wire.length - 1 }, () => ".one\r\n"),
    );
  });

  test("right at the beginning makes an empty mail", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    expect(await client.command(".")).toBe("250 2.0.0 Message accepted");
    expect(harness.mails[0]?.bytes).toHaveLength(0);
  });
});

describe("the content", () => {
  test.each([
    ["one dot", "..\r\nx\r\n", ".\r\nx\r\n"],
    ["two dots", "...\r\n", "..\r\n"],
    ["a dot in a line", "a.b\r\n.. c\r\n", "a.b\r\n. c\r\n"],
    ["dots in every line", "..a\r\n..b\r\n..\r\n..\r\n...\r\n", ".a\r\n.b\r\n.\r\n.\r\n..\r\n"],
    ["a line behind a bare LF", "a\n..b\r\n", "a\n.b\r\n"],
    ["a dot that was not doubled", "x\r\n.y\r\n", "x\r\n.y\r\n"],
  ])("loses the stuffing of %s", async (_name, wire, content) => {
    const harness = await startHarness();
    const client = await harness.atData();
    await client.command(`${wire}.`);
    expect(harness.content()).toBe(content);
  });

  test("keeps every byte: 8 bits, NUL, bare CR and LF", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    const every = Uint8Array.from({ length: 65_536 }, (_, index) => (index * 7 + (index >> 8)) & 255);
    // A dot behind LF would be read as stuffing.
    const bytes = every.map((byte) => (byte === 0x2e ? 0x2f : byte));
    client.send(bytes);
    expect(await client.command("\r\n.")).toBe("250 2.0.0 Message accepted");
    expect(Buffer.from(harness.mails[0]?.bytes ?? []).equals(Buffer.concat([bytes, Buffer.from("\r\n")]))).toBe(true);
  });

  test("may be one endless line", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    const line = Buffer.alloc(3_000_000, "x");
    client.send(line);
    expect(await client.command("\r\n.")).toBe("250 2.0.0 Message accepted");
    expect(harness.mails[0]?.bytes).toHaveLength(line.length + 2);
  });
});

describe("the size", () => {
  test("that is announced as too large is refused at MAIL", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    expect(await client.codes("MAIL FROM:<a@b.example> SIZE=26214401", "MAIL FROM:<a@b.example> SIZE=26214400")).toBe(
      "552 250",
    );
  });

  test("that turns out too large is refused at the end, and nothing of it is kept meanwhile", async () => {
    const harness = await startHarness({ limits: { mailBytes: 10_000 } });
    const client = await harness.atData();
    client.send(Buffer.alloc(9_000, "x"));
    client.send(Buffer.alloc(40_000, "x"));
    await client.flushed();
    expect(await client.command("\r\n.")).toBe("552 5.3.4 Message size exceeds the limit of 10000 bytes");
    expect(harness.mails).toEqual([]);
    expect(harness.receiver.counts()).toMatchObject({ refused: 1, heldBytes: 0 });
    expect(await client.codes("MAIL FROM:<a@b.example>", "RCPT TO:<known@r.test>", "DATA", "small\r\n.")).toBe(
      "250 250 354 250",
    );
  });

  test("may be exactly the limit, not a byte more", async () => {
    const harness = await startHarness({ limits: { mailBytes: 1_000 } });
    const client = await harness.atData();
    expect(await client.codes(`${"x".repeat(998)}\r\n.`)).toBe("250");
    expect(await client.codes("MAIL FROM:<>", "RCPT TO:<known@r.test>", "DATA", `${"x".repeat(999)}\r\n.`)).toBe(
      "250 250 354 552",
    );
  });

  test("far above the limit cuts the connection", async () => {
    const harness = await startHarness({ limits: { mailBytes: 1_000, mailBytesRead: 5_000 } });
    const client = await harness.atData();
    client.send("..x\r\n".repeat(20_000));
    expect(await client.readReply()).toBe("closed");
    await harness.untilOpen(0);
    expect(harness.receiver.counts()).toMatchObject({ open: 0, dropped: 1, refused: 1, heldBytes: 0 });
  });

  test("far above the limit is counted once, even if its end comes in the same packet", async () => {
    const harness = await startHarness({ limits: { mailBytes: 100, mailBytesRead: 200 } });
    const client = await harness.atData();
    client.send(`${"x".repeat(300)}\r\n.\r\n`);
    expect(await client.readReply()).toBe("closed");
    await harness.untilOpen(0);
    expect(harness.receiver.counts()).toMatchObject({ dropped: 1, refused: 1, heldBytes: 0 });
  });

  test("for which there is no memory now is to come later", async () => {
    const taking = Promise.withResolvers<"accepted">();
    const harness = await startHarness({ limits: { heldBytes: 5_000 }, acceptMail: () => taking.promise });
    const first = await harness.atData();
    const firstReply = first.command(`${"x".repeat(4_000)}\r\n.`);
    const second = await harness.atData();
    expect(await second.command(`${"x".repeat(1_500)}\r\n.`)).toBe(
      "452 4.3.1 Too many messages in progress, try again later",
    );
    expect((await second.command("MAIL FROM:<> SIZE=1500")).slice(0, 9)).toBe("452 4.3.1");
    expect(await second.codes("MAIL FROM:<> SIZE=500")).toBe("250");
    taking.resolve("accepted");
    expect(await firstReply).toBe("250 2.0.0 Message accepted");
    expect(harness.receiver.counts()).toMatchObject({ accepted: 1, later: 1, heldBytes: 0 });
    expect(await second.codes("RSET", "MAIL FROM:<> SIZE=1500")).toBe("250 250");
  });
});
