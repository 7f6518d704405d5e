import { describe, expect, test } from "bun:test";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { selfSignedCertificate } from "./self-signed-file.ts";
import { createReceiverHarnesses } from "../../testing/smtp-receiver-harness.ts";

const startHarness = createReceiverHarnesses();

/** The common name in the certificate that a client gets. */
const nameShown = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connectTcp({ port, host: "127.0.0.1" });
    const steps = ["EHLO a.example\r\n", "STARTTLS\r\n"];
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      if (!/^\d{3} /m.test(chunk.toString("latin1"))) return;
      const next = steps.shift();
      if (next !== undefined) return void socket.write(next);
      socket.removeAllListeners("data");
      const secure = connectTls({ socket, rejectUnauthorized: false }, () => {
        const { CN } = secure.getPeerCertificate().subject;
        resolve(String(CN));
        secure.destroy();
      });
    });
  });

describe("STARTTLS", () => {
  test("a mail comes through TLS", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    expect(await client.startTls()).toStartWith("220 ");
    const ehlo = await client.command("EHLO secure.example");
    expect(ehlo).toContain("250-SMTPUTF8");
    expect(ehlo).not.toContain("STARTTLS");
    expect(await client.codes("MAIL FROM:<a@b.example>", "RCPT TO:<known@r.test>", "DATA", "x\r\n.", "QUIT")).toBe(
      "250 250 354 250 221",
    );
    await client.closed();
    expect(harness.mails).toMatchObject([{ tls: true, helo: "secure.example" }]);
    await harness.untilOpen(0);
    expect(harness.receiver.counts()).toMatchObject({ open: 0 });
  });

  test("a renewed certificate is shown to whoever comes from then on; one that cannot be used is refused", async () => {
    const { receiver, port, clock } = await startHarness();
    const before = await nameShown(port);
    receiver.useCertificate(selfSignedCertificate("renewed.example", clock.nowMs()));
    expect(before).not.toBe("renewed.example");
    expect(await nameShown(port)).toBe("renewed.example");
    expect(() => receiver.useCertificate({ cert: "no certificate", key: "no key" })).toThrow();
    expect(await nameShown(port)).toBe("renewed.example");
  });

  test("a large mail comes through TLS unharmed", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    await client.startTls();
    await client.codes("EHLO x.example", "MAIL FROM:<a@b.example>", "RCPT TO:<known@r.test>", "DATA");
    const bytes = Buffer.from(Array.from({ length: 5_000_000 }, (_, index) => 97 + ((index * 31) % 26)));
    client.send(bytes);
    expect(await client.command("\r\n.")).toBe("250 2.0.0 Message accepted");
    expect(
      Buffer.from(harness.mails[0]?.bytes ?? [])
        .subarray(0, -2)
        .equals(bytes),
    ).toBe(true);
  });

  // RFC 3207 §6, CVE-2021-38371 and its kin.
  test.each([
    ["in the same packet", "MAIL FROM:<evil@b.example>\r\nRCPT TO:<known@r.test>\r\n"],
    ["half a command", "MAIL FROM:<evil@b"],
    ["many commands", "NOOP\r\n".repeat(500)],
  ])("clear text behind it is dropped: %s", async (_name, behind) => {
    const harness = await startHarness();
    const client = await harness.greet();
    expect(await client.startTls(behind)).toStartWith("220 ");
    expect(await client.command("EHLO b.example")).toStartWith("250-reports.example.test");
    // Had MAIL been read, this would be a second one, or one with half a line before it.
    expect(await client.codes("DATA", "MAIL FROM:<a@b.example>", "DATA", "NOOP")).toBe("503 250 503 250");
  });

  test("what was said before it is forgotten", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    await client.codes("MAIL FROM:<a@b.example>", "RCPT TO:<known@r.test>");
    await client.startTls();
    expect(await client.codes("RCPT TO:<known@r.test>", "MAIL FROM:<a@b.example>")).toBe("503 503");
    expect(await client.codes("EHLO b.example", "DATA")).toBe("250 503");
  });

  test("a second one is refused", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    await client.startTls();
    expect(await client.codes("EHLO b.example", "STARTTLS")).toBe("250 503");
  });

  test("a handshake that fails ends the connection, and nothing else", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    expect(await client.codes("STARTTLS")).toBe("220");
    client.send("this is no TLS record at all\r\n".repeat(10));
    await client.closed();
    await (await harness.greet()).codes("NOOP");
    await harness.untilOpen(1);
    expect(harness.receiver.counts()).toMatchObject({ open: 1 });
  });

  test("a handshake that never comes ends with the idle time", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    expect(await client.codes("STARTTLS")).toBe("220");
    await harness.clock.advance(30_000);
    await client.closed();
    await harness.untilOpen(0);
    expect(harness.receiver.counts()).toMatchObject({ open: 0, dropped: 1 });
  });

  test("a client that hangs up after it gives its place back", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    expect(await client.codes("STARTTLS")).toBe("220");
    client.destroy();
    await (await harness.greet()).codes("NOOP");
    await harness.untilOpen(1);
    expect(harness.receiver.counts()).toMatchObject({ open: 1 });
  });

  test("a client that falls silent in TLS is sent away", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    await client.startTls();
    await client.command("EHLO b.example");
    await harness.clock.advance(30_000);
    expect(await client.readReply()).toBe("421 4.4.2 Idle timeout, closing connection");
    await client.closed();
  });
});
