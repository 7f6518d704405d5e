import { describe, expect, test } from "bun:test";
import { createReceiverHarnesses } from "../testing/smtp-receiver-harness.ts";

const startWorld = createReceiverHarnesses();

describe("connections", () => {
  test("beyond the ceiling are told to come later, and a place that is free again is given", async () => {
    const world = await startWorld({ limits: { connections: 2 } });
    const [first] = [await world.greet(), await world.greet()];
    const third = world.connect();
    expect(await third.hear()).toBe("421 4.7.0 Too many connections, try again later");
    await third.closed();
    await world.untilOpen(2);
    expect(world.receiver.counts()).toMatchObject({ open: 2, turnedAway: 1, connections: 2 });
    await first.codes("QUIT");
    await first.closed();
    expect(await world.connect().hear()).toStartWith("220 ");
  });

  test("of one client beyond its ceiling are told to come later", async () => {
    const world = await startWorld({ limits: { connectionsPerLocalClient: 1 } });
    await world.greet();
    expect(await world.connect().hear()).toStartWith("421 4.7.0 ");
  });

  test("that stay after the farewell are closed, and beyond a number nobody gets one", async () => {
    const world = await startWorld({ limits: { connections: 0, farewells: 0 } });
    expect(await world.connect().hear()).toBe("closed");
  });

  test("last an hour at most", async () => {
    const world = await startWorld({ limits: { mailWaitMs: 7_200_000 } });
    const talk = await world.greet();
    for (let minutes = 0; minutes < 59; minutes++) {
      await world.clock.advance(59_000);
      await talk.ask("NOOP");
    }
    await world.clock.advance(59_000);
    expect(await talk.codes("NOOP")).toBe("250");
    await world.clock.advance(60_000);
    expect(await talk.hear()).toBe("421 4.4.2 Connection lasted too long, closing connection");
  });
});

describe("silence", () => {
  test("ends a connection after a minute, not before", async () => {
    const world = await startWorld({ limits: { mailWaitMs: 300_000 } });
    const talk = await world.greet();
    await world.clock.advance(59_000);
    expect(await talk.codes("NOOP")).toBe("250");
    await world.clock.advance(59_000);
    expect(await talk.codes("NOOP")).toBe("250");
    await world.clock.advance(60_000);
    expect(await talk.hear()).toBe("421 4.4.2 Idle timeout, closing connection");
    await talk.closed();
    await world.untilOpen(0);
    expect(world.receiver.counts()).toMatchObject({ open: 0, dropped: 1 });
  });

  test("is what a command is that never ends", async () => {
    const world = await startWorld({ limits: { mailWaitMs: 300_000 } });
    const talk = await world.greet();
    for (const piece of ["N", "O", "O"]) {
      talk.say(piece);
      await talk.flushed();
      await world.clock.advance(20_000);
    }
    expect(await talk.hear()).toStartWith("421 ");
  });

  test("in the middle of a mail ends it", async () => {
    const world = await startWorld();
    const talk = await world.atData();
    talk.say("Subject: x\r\n");
    await talk.flushed();
    await world.clock.advance(120_000);
    expect(await talk.hear()).toStartWith("421 4.4.2 ");
    expect(world.mails).toEqual([]);
    expect(world.receiver.counts()).toMatchObject({ heldBytes: 0 });
  });

  test("is not the client's while the mail is being taken", async () => {
    const taking = Promise.withResolvers<"accepted">();
    const arrived = Promise.withResolvers<void>();
    const world = await startWorld({
      limits: { mailWaitMs: 300_000 },
      acceptMail: () => {
        arrived.resolve();
        return taking.promise;
      },
    });
    const talk = await world.atData();
    talk.say("x\r\n.\r\n");
    await arrived.promise;
    await world.clock.advance(300_000);
    taking.resolve("accepted");
    expect(await talk.hear()).toBe("250 2.0.0 Message accepted");
    expect(await talk.codes("NOOP")).toBe("250");
    await world.clock.advance(120_000);
    expect(await talk.hear()).toStartWith("421 ");
  });

  test("after our farewell closes the connection for good", async () => {
    const world = await startWorld();
    await world.greet();
    await world.clock.advance(30_000);
    await world.clock.advance(5_000);
    await world.untilOpen(0);
    expect(world.receiver.counts()).toMatchObject({ open: 0 });
    expect(world.clock.pending()).toBe(0);
  });
});

describe("a client without a mail", () => {
  test("has half a minute for MAIL, whatever else it says", async () => {
    const world = await startWorld();
    const talk = await world.greet();
    await world.clock.advance(29_000);
    expect(await talk.codes("NOOP", "RSET")).toBe("250 250");
    await world.clock.advance(1_000);
    expect(await talk.hear()).toBe("421 4.4.2 Idle timeout, closing connection");
    await talk.closed();
  });

  test("has two minutes for the content, however often it begins anew", async () => {
    const world = await startWorld();
    const talk = await world.greet();
    for (let count = 0; count < 4; count++) {
      expect(await talk.codes("MAIL FROM:<>", "RCPT TO:<known@r.test>", "RSET")).toBe("250 250 250");
      await world.clock.advance(29_000);
    }
    await world.clock.advance(4_000);
    expect(await talk.hear()).toBe("421 4.4.2 Idle timeout, closing connection");
  });

  test("has half a minute again after each mail", async () => {
    const world = await startWorld();
    const talk = await world.atData();
    await world.clock.advance(50_000);
    expect(await talk.ask("1\r\n.")).toBe("250 2.0.0 Message accepted");
    await world.clock.advance(29_000);
    expect(await talk.codes("MAIL FROM:<>", "RCPT TO:<known@r.test>", "DATA", "2\r\n.")).toBe("250 250 354 250");
    await world.clock.advance(30_000);
    expect(await talk.hear()).toStartWith("421 4.4.2 ");
  });

  test("may say so much, and as much again after a mail", async () => {
    const world = await startWorld({ limits: { repliesPerMail: 6 } });
    const talk = await world.greet();
    expect(await talk.codes("NOOP", "MAIL FROM:<>", "RCPT TO:<known@r.test>", "DATA", "1\r\n.")).toBe(
      "250 250 250 354 250",
    );
    expect(await talk.codes("NOOP", "NOOP", "NOOP", "NOOP", "NOOP")).toBe("250 250 250 250 250");
    expect(await talk.ask("NOOP")).toStartWith("250");
    expect(await talk.hear()).toBe("421 4.7.0 Too many commands without a message");
  });

  test("gives way when all places are taken, the longest waiting first; a mail under way does not", async () => {
    const world = await startWorld({ limits: { connections: 3 } });
    const busy = await world.atData();
    const first = await world.greet();
    await world.clock.advance(1_000);
    const second = await world.greet();
    expect(await world.connect().hear()).toStartWith("421 4.7.0 ");
    await world.clock.advance(4_000);
    const third = await world.greet();
    await first.closed();
    expect(await third.codes("NOOP")).toBe("250");
    expect(await second.codes("NOOP")).toBe("250");
    expect(await busy.ask("mail\r\n.")).toStartWith("250");
  });
});

describe("space", () => {
  test("that is not there refuses MAIL, a recipient or a mail for now", async () => {
    let isFull: boolean = true;
    const world = await startWorld({
      isFull: () => isFull,
      judgeRecipient: (address) => (address.startsWith("full") ? "full" : "known"),
      acceptMail: async () => "full",
    });
    const talk = await world.greet();
    const refused = "452 4.3.1 Insufficient system storage, try again later";
    expect(await talk.ask("MAIL FROM:<>")).toBe(refused);
    isFull = false;
    expect(await talk.ask("MAIL FROM:<>")).toStartWith("250");
    expect(await talk.ask("RCPT TO:<full@r.test>")).toBe(refused);
    expect(await talk.codes("RCPT TO:<known@r.test>", "DATA")).toBe("250 354");
    expect(await talk.ask("x\r\n.")).toBe(refused);
    expect(world.receiver.counts()).toMatchObject({ later: 1, accepted: 0, heldBytes: 0 });
  });
});

describe("a mail that drips", () => {
  test("has ten minutes, however steadily it comes", async () => {
    const world = await startWorld();
    const talk = await world.atData();
    for (let count = 0; count < 20; count++) {
      talk.say("some more content\r\n");
      await talk.flushed();
      await world.clock.advance(0);
      await world.clock.advance(30_000);
    }
    expect(await talk.hear()).toBe("421 4.4.2 Message transfer timeout, closing connection");
    expect(world.mails).toEqual([]);
    expect(world.receiver.counts()).toMatchObject({ heldBytes: 0, dropped: 1 });
  });
});

describe("one connection", () => {
  test("may carry so many mails and no more", async () => {
    const world = await startWorld({ limits: { mailsPerConnection: 2 } });
    const talk = await world.atData();
    await talk.ask("1\r\n.");
    expect(await talk.codes("MAIL FROM:<>", "RCPT TO:<known@r.test>", "DATA", "2\r\n.")).toBe("250 250 354 250");
    expect(await talk.ask("MAIL FROM:<>")).toBe("421 4.7.0 Too many messages in one connection");
    await talk.closed();
    expect(world.mails).toHaveLength(2);
  });

  test("may name so many recipients in a mail", async () => {
    const world = await startWorld({ limits: { recipientsPerMail: 2 } });
    const talk = await world.greet();
    const recipients = [1, 2, 3].map((number) => `RCPT TO:<known${number}@r.test>`);
    expect(await talk.codes("MAIL FROM:<>", ...recipients, "DATA", "x\r\n.")).toBe("250 250 250 452 354 250");
    expect(world.mails).toMatchObject([{ recipients: ["known1@r.test", "known2@r.test"] }]);
  });

  test("ends after too many unknown recipients", async () => {
    const world = await startWorld({ limits: { unknownRecipients: 3 } });
    const talk = await world.greet();
    expect(await talk.codes("MAIL FROM:<>", "RCPT TO:<a@r.test>", "RCPT TO:<b@r.test>")).toBe("250 550 550");
    expect(await talk.ask("RCPT TO:<c@r.test>")).toBe("421 4.7.0 Too many unknown recipients");
    await talk.closed();
    await world.untilOpen(0);
    expect(world.receiver.counts()).toMatchObject({ unknownRecipients: 3, dropped: 1, open: 0 });
  });

  test("ends after too many refused commands", async () => {
    const world = await startWorld({ limits: { refusedCommands: 3 } });
    const talk = await world.greet();
    expect(await talk.codes("MAIL FROM:x", "NOOP", "DATA", "EXPN x")).toBe("501 250 503 502");
    expect(await talk.hear()).toBe("421 4.7.0 Too many errors");
    await talk.closed();
  });

  test("ends after a command line that is too long", async () => {
    const world = await startWorld();
    const talk = await world.greet();
    talk.say("x".repeat(5_000));
    expect(await talk.hear()).toStartWith("421 ");
    await talk.closed();
  });
});

describe("closing", () => {
  test("tells idle clients, and accepts nobody any more", async () => {
    const world = await startWorld();
    const talk = await world.greet();
    const closing = world.receiver.close();
    expect(await talk.hear()).toBe("421 4.3.2 Service shutting down, closing connection");
    await closing;
    expect(await world.connect().hear()).toBe("closed");
    await world.receiver.close();
  });

  test("waits for the mail that is under way, then says good-bye", async () => {
    const world = await startWorld();
    const talk = await world.atData();
    talk.say("half a ");
    await talk.flushed();
    const closing = world.receiver.close();
    await world.clock.advance(4_000);
    expect(await talk.ask("mail\r\n.")).toBe("250 2.0.0 Message accepted");
    expect(await talk.hear()).toBe("421 4.3.2 Service shutting down, closing connection");
    await closing;
    expect(world.content()).toBe("half a mail\r\n");
  });

  test("does not wait longer than its time", async () => {
    const world = await startWorld({ acceptMail: () => new Promise(() => undefined) });
    const slow = await world.atData();
    const stuck = await world.atData();
    stuck.say("x\r\n.\r\n");
    slow.say("half a mail");
    await Promise.all([slow.flushed(), stuck.flushed()]);
    const closing = world.receiver.close();
    await world.clock.advance(5_000);
    await closing;
    expect(await slow.hear()).toBe("closed");
    expect(await stuck.hear()).toBe("closed");
    await world.untilOpen(0);
    expect(world.receiver.counts()).toMatchObject({ open: 0 });
  });
});
