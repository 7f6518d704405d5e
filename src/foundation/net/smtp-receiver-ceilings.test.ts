import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { createReceiverHarnesses } from "../../testing/smtp-receiver-harness.ts";

const startHarness = createReceiverHarnesses();

describe("connections", () => {
  test("beyond the limit get 421, and a slot that is free again is given", async () => {
    const harness = await startHarness({ limits: { connections: 2 } });
    const [first] = [await harness.greet(), await harness.greet()];
    const third = harness.connect();
    expect(await third.readReply()).toBe("421 4.7.0 Too many connections, try again later");
    await third.closed();
    await harness.untilOpen(2);
    expect(harness.receiver.counts()).toMatchObject({ open: 2, turnedAway: 1, connections: 2 });
    await first.codes("QUIT");
    await first.closed();
    expect(await harness.connect().readReply()).toStartWith("220 ");
  });

  test("of one client beyond its limit get 421", async () => {
    const harness = await startHarness({ limits: { connectionsPerLocalClient: 1 } });
    await harness.greet();
    expect(await harness.connect().readReply()).toStartWith("421 4.7.0 ");
  });

  test("beyond the limit of 421 replies are closed at once", async () => {
    const harness = await startHarness({ limits: { connections: 0, farewells: 0 } });
    expect(await harness.connect().readReply()).toBe("closed");
  });

  test("last an hour at most", async () => {
    const harness = await startHarness({ limits: { mailWaitMs: 7_200_000 } });
    const client = await harness.greet();
    for (let minutes = 0; minutes < 59; minutes++) {
      await harness.clock.advance(59_000);
      await client.command("NOOP");
    }
    await harness.clock.advance(59_000);
    expect(await client.codes("NOOP")).toBe("250");
    await harness.clock.advance(60_000);
    expect(await client.readReply()).toBe("421 4.4.2 Connection lasted too long, closing connection");
  });
});

describe("the idle timeout", () => {
  test("ends a connection after a minute, not before", async () => {
    const harness = await startHarness({ limits: { mailWaitMs: 300_000 } });
    const client = await harness.greet();
    await harness.clock.advance(59_000);
    expect(await client.codes("NOOP")).toBe("250");
    await harness.clock.advance(59_000);
    expect(await client.codes("NOOP")).toBe("250");
    await harness.clock.advance(60_000);
    expect(await client.readReply()).toBe("421 4.4.2 Idle timeout, closing connection");
    await client.closed();
    await harness.untilOpen(0);
    expect(harness.receiver.counts()).toMatchObject({ open: 0, dropped: 1 });
  });

  test("is not reset by bytes of a command that is never completed", async () => {
    const harness = await startHarness({ limits: { mailWaitMs: 300_000 } });
    const client = await harness.greet();
    for (const piece of ["N", "O", "O"]) {
      client.send(piece);
      await client.flushed();
      await harness.clock.advance(20_000);
    }
    expect(await client.readReply()).toStartWith("421 ");
  });

  test("holds during a message", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    client.send("Subject: x\r\n");
    await client.flushed();
    await harness.clock.advance(120_000);
    expect(await client.readReply()).toStartWith("421 4.4.2 ");
    expect(harness.mails).toEqual([]);
    expect(harness.receiver.counts()).toMatchObject({ heldBytes: 0 });
  });

  test("gives the memory of a message back even if the client does not close", async () => {
    const harness = await startHarness();
    const socket = connect({ port: harness.port, host: "127.0.0.1", allowHalfOpen: true }).resume();
    socket.write("EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<known@r.test>\r\nDATA\r\nSubject: x\r\n");
    while (harness.receiver.counts().heldBytes === 0) await harness.clock.advance(0);
    await harness.clock.advance(60_000);
    expect(harness.receiver.counts()).toMatchObject({ open: 1, heldBytes: 0 });
    socket.destroy();
  });
  test("does not run while the server stores the message", async () => {
    const taking = Promise.withResolvers<"accepted">();
    const arrived = Promise.withResolvers<void>();
    const harness = await startHarness({
      limits: { mailWaitMs: 300_000 },
      acceptMail: () => {
        arrived.resolve();
        return taking.promise;
      },
    });
    const client = await harness.atData();
    client.send("x\r\n.\r\n");
    await arrived.promise;
    await harness.clock.advance(300_000);
    taking.resolve("accepted");
    expect(await client.readReply()).toBe("250 2.0.0 Message accepted");
    expect(await client.codes("NOOP")).toBe("250");
    await harness.clock.advance(120_000);
    expect(await client.readReply()).toStartWith("421 ");
  });

  test("destroys a connection that the client does not close after 421", async () => {
    const harness = await startHarness();
    await harness.greet();
    await harness.clock.advance(30_000);
    await harness.clock.advance(5_000);
    await harness.untilOpen(0);
    expect(harness.receiver.counts()).toMatchObject({ open: 0 });
    expect(harness.clock.pending()).toBe(0);
  });
});

describe("a client without a mail", () => {
  test("has half a minute for MAIL, whatever else it says", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    await harness.clock.advance(29_000);
    expect(await client.codes("NOOP", "RSET")).toBe("250 250");
    await harness.clock.advance(1_000);
    expect(await client.readReply()).toBe("421 4.4.2 Idle timeout, closing connection");
    await client.closed();
  });

  test("has two minutes for the content, however often it begins anew", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    for (let count = 0; count < 4; count++) {
      expect(await client.codes("MAIL FROM:<>", "RCPT TO:<known@r.test>", "RSET")).toBe("250 250 250");
      await harness.clock.advance(29_000);
    }
    await harness.clock.advance(4_000);
    expect(await client.readReply()).toBe("421 4.4.2 Idle timeout, closing connection");
  });

  test("has half a minute again after each mail", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    await harness.clock.advance(50_000);
    expect(await client.command("1\r\n.")).toBe("250 2.0.0 Message accepted");
    await harness.clock.advance(29_000);
    expect(await client.codes("MAIL FROM:<>", "RCPT TO:<known@r.test>", "DATA", "2\r\n.")).toBe("250 250 354 250");
    await harness.clock.advance(30_000);
    expect(await client.readReply()).toStartWith("421 4.4.2 ");
  });

  test("has a limited number of replies, again after each message", async () => {
    const harness = await startHarness({ limits: { repliesPerMail: 6 } });
    const client = await harness.greet();
    expect(await client.codes("NOOP", "MAIL FROM:<>", "RCPT TO:<known@r.test>", "DATA", "1\r\n.")).toBe(
      "250 250 250 354 250",
    );
    expect(await client.codes("NOOP", "NOOP", "NOOP", "NOOP", "NOOP")).toBe("250 250 250 250 250");
    expect(await client.command("NOOP")).toStartWith("250");
    expect(await client.readReply()).toBe("421 4.7.0 Too many commands without a message");
  });

  test("gets no handshake beyond its number of replies", async () => {
    const harness = await startHarness({ limits: { repliesPerMail: 2 } });
    const client = await harness.greet();
    expect(await client.command("STARTTLS")).toBe("421 4.7.0 Too many commands without a message");
    await client.closed();
  });

  test("has its time extended while the server looks up a recipient", async () => {
    const lookup = Promise.withResolvers<"known">();
    const harness = await startHarness({ judgeRecipient: () => lookup.promise });
    const client = await harness.greet();
    await client.codes("MAIL FROM:<>");
    const reply = client.command("RCPT TO:<known@r.test>");
    await client.flushed();
    await harness.clock.advance(0);
    await harness.clock.advance(130_000);
    lookup.resolve("known");
    expect(await reply).toBe("250 2.1.5 Ok");
  });

  test("is ended when all slots are in use, the longest waiting first; one with a message under way is not", async () => {
    const harness = await startHarness({ limits: { connections: 3 } });
    const busy = await harness.atData();
    const first = await harness.greet();
    await harness.clock.advance(1_000);
    const second = await harness.greet();
    expect(await harness.connect().readReply()).toStartWith("421 4.7.0 ");
    await harness.clock.advance(4_000);
    const third = await harness.greet();
    await first.closed();
    expect(await third.codes("NOOP")).toBe("250");
    expect(await second.codes("NOOP")).toBe("250");
    expect(await busy.command("mail\r\n.")).toStartWith("250");
  });
});

describe("disk space", () => {
  test("that is missing refuses MAIL, a recipient or a message with 452", async () => {
    let isFull: boolean = true;
    const harness = await startHarness({
      isFull: () => isFull,
      judgeRecipient: (address) => (address.startsWith("full") ? "full" : "known"),
      acceptMail: async () => "full",
    });
    const client = await harness.greet();
    const refused = "452 4.3.1 Insufficient system storage, try again later";
    expect(await client.command("MAIL FROM:<>")).toBe(refused);
    isFull = false;
    expect(await client.command("MAIL FROM:<>")).toStartWith("250");
    expect(await client.command("RCPT TO:<full@r.test>")).toBe(refused);
    expect(await client.codes("RCPT TO:<known@r.test>", "DATA")).toBe("250 354");
    expect(await client.command("x\r\n.")).toBe(refused);
    expect(harness.receiver.counts()).toMatchObject({ later: 1, accepted: 0, heldBytes: 0 });
  });
});

describe("a slow message", () => {
  test("has ten minutes, however steadily it arrives", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    for (let count = 0; count < 20; count++) {
      client.send("some more content\r\n");
      await client.flushed();
      await harness.clock.advance(0);
      await harness.clock.advance(30_000);
    }
    expect(await client.readReply()).toBe("421 4.4.2 Message transfer timeout, closing connection");
    expect(harness.mails).toEqual([]);
    expect(harness.receiver.counts()).toMatchObject({ heldBytes: 0, dropped: 1 });
  });
});

describe("one connection", () => {
  test("may carry so many mails and no more", async () => {
    const harness = await startHarness({ limits: { mailsPerConnection: 2 } });
    const client = await harness.atData();
    await client.command("1\r\n.");
    expect(await client.codes("MAIL FROM:<>", "RCPT TO:<known@r.test>", "DATA", "2\r\n.")).toBe("250 250 354 250");
    expect(await client.command("MAIL FROM:<>")).toBe("421 4.7.0 Too many messages in one connection");
    await client.closed();
    expect(harness.mails).toHaveLength(2);
  });

  test("may name so many recipients in a mail", async () => {
    const harness = await startHarness({ limits: { recipientsPerMail: 2 } });
    const client = await harness.greet();
    const recipients = [1, 2, 3].map((number) => `RCPT TO:<known${number}@r.test>`);
    expect(await client.codes("MAIL FROM:<>", ...recipients, "DATA", "x\r\n.")).toBe("250 250 250 452 354 250");
    expect(harness.mails).toMatchObject([{ recipients: ["known1@r.test", "known2@r.test"] }]);
  });

  test("ends after too many unknown recipients", async () => {
    const harness = await startHarness({ limits: { unknownRecipients: 3 } });
    const client = await harness.greet();
    expect(await client.codes("MAIL FROM:<>", "RCPT TO:<a@r.test>", "RCPT TO:<b@r.test>")).toBe("250 550 550");
    expect(await client.command("RCPT TO:<c@r.test>")).toBe("421 4.7.0 Too many unknown recipients");
    await client.closed();
    await harness.untilOpen(0);
    expect(harness.receiver.counts()).toMatchObject({ unknownRecipients: 3, dropped: 1, open: 0 });
  });

  test("ends after too many refused commands", async () => {
    const harness = await startHarness({ limits: { refusedCommands: 3 } });
    const client = await harness.greet();
    expect(await client.codes("MAIL FROM:x", "NOOP", "DATA", "EXPN x")).toBe("501 250 503 502");
    expect(await client.readReply()).toBe("421 4.7.0 Too many errors");
    await client.closed();
  });

  test("ends after a command line that is too long", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    client.send("x".repeat(5_000));
    expect(await client.readReply()).toStartWith("421 ");
    await client.closed();
  });
});

describe("closing", () => {
  test("sends 421 to idle clients, and accepts no further connection", async () => {
    const harness = await startHarness();
    const client = await harness.greet();
    const closing = harness.receiver.close();
    expect(await client.readReply()).toBe("421 4.3.2 Service shutting down, closing connection");
    await closing;
    expect(await harness.connect().readReply()).toBe("closed");
    await harness.receiver.close();
  });

  test("waits for the message that is under way, then sends 421", async () => {
    const harness = await startHarness();
    const client = await harness.atData();
    client.send("half a ");
    await client.flushed();
    const closing = harness.receiver.close();
    await harness.clock.advance(4_000);
    expect(await client.command("mail\r\n.")).toBe("250 2.0.0 Message accepted");
    expect(await client.readReply()).toBe("421 4.3.2 Service shutting down, closing connection");
    await closing;
    expect(harness.content()).toBe("half a mail\r\n");
  });

  test("does not wait longer than its time", async () => {
    const harness = await startHarness({ acceptMail: () => new Promise(() => undefined) });
    const slow = await harness.atData();
    const stuck = await harness.atData();
    stuck.send("x\r\n.\r\n");
    slow.send("half a mail");
    await Promise.all([slow.flushed(), stuck.flushed()]);
    const closing = harness.receiver.close();
    await harness.clock.advance(5_000);
    await closing;
    expect(await slow.readReply()).toBe("closed");
    expect(await stuck.readReply()).toBe("closed");
    await harness.untilOpen(0);
    expect(harness.receiver.counts()).toMatchObject({ open: 0 });
  });
});
