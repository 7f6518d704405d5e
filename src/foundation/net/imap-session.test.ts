import { describe, expect, test } from "bun:test";
import { type Clock, systemClock } from "../base/clock.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createImapStubs, type ImapStub, type ImapStubOptions } from "../../testing/imap-stub.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../../testing/smtp-stub-key.ts";
import { ImapFailure, type ImapUrl } from "./imap-client.ts";
import { type ImapSession, openImapSession } from "./imap-session.ts";

const newStub = createImapStubs();

interface Way {
  readonly url?: Partial<ImapUrl>;
  readonly password?: string;
  readonly clock?: Clock;
}

const open = ({ port }: ImapStub, { url = {}, password = "secret", clock = systemClock }: Way = {}) =>
  openImapSession(
    {
      url: { host: "127.0.0.1", port, security: "none", user: "user", password: null, folder: "INBOX", ...url },
      secret: { kind: "password", value: password },
      ca: null,
    },
    { clock },
  );

/** The failure with which a promise ends. */
const failure = async (promise: Promise<unknown>): Promise<ImapFailure> => {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ImapFailure) return error;
    throw error;
  }
  throw new Error("It did not fail.");
};

const withSession = async (options: ImapStubOptions, work: (session: ImapSession, stub: ImapStub) => Promise<void>) => {
  const stub = newStub(options);
  for (const text of ["one", "two", "three"]) stub.deliver(`Subject: ${text}\r\n\r\n${text}\r\n`);
  const session = await open(stub);
  try {
    await work(session, stub);
  } finally {
    session.close();
  }
};

describe("a sound server", () => {
  test("gives new UIDs, sizes and messages, and takes marks", () =>
    withSession({}, async (session, stub) => {
      expect([session.uidValidity, session.messages, session.canIdle]).toEqual(["7", 3, true]);
      expect(await session.uidsAfter(1, 10)).toEqual([2, 3]);
      expect(await session.uidsAfter(0, 2)).toEqual([1, 2]);
      expect([...(await session.sizes([2, 3]))]).toEqual([
        [2, 21],
        [3, 25],
      ]);
      const [message, ...none] = await Array.fromAsync(session.read([2]));
      expect(new TextDecoder().decode(message?.bytes)).toBe("Subject: two\r\n\r\ntwo\r\n");
      expect([message?.uid, message?.deliveredAtMs, none]).toEqual([2, Date.UTC(2026, 0, 1, 10), []]);
      expect(await session.mark([1, 3], { kind: "seen" })).toBe(true);
      expect(stub.messages.map(({ flags }) => flags)).toEqual(["\\Seen", "", "\\Seen"]);
      expect(await session.mark([2], { kind: "move", folder: "Done" })).toBe(true);
      expect(stub.moved).toEqual([2]);
    }));

  test("has nothing new although `n:*` always names the last message", () =>
    withSession({}, async (session) => expect(await session.uidsAfter(3, 10)).toEqual([])));

  test("that idles says at once that a message came", () =>
    withSession({}, async (session, stub) => {
      await session.uidsAfter(3, 10);
      const news = session.untilNews(600_000, new AbortController().signal);
      await stub.until(/^IDLE$/);
      stub.deliver("Subject: four\r\n\r\n");
      await news;
      expect(await session.uidsAfter(3, 10)).toEqual([4]);
    }));

  test("without UIDPLUS gets no EXPUNGE, which would remove what others marked", () =>
    withSession({ capabilities: "IMAP4rev1" }, async (session, stub) => {
      expect(await session.mark([1], { kind: "delete" })).toBe(true);
      expect(stub.commands.filter((command) => command.includes("EXPUNGE"))).toEqual([]);
      expect(stub.messages[0]?.flags).toBe("\\Deleted");
    }));

  test("without IDLE is not asked to idle", () =>
    withSession({ capabilities: "IMAP4rev1" }, async (session, stub) => {
      await session.uidsAfter(3, 10);
      await session.untilNews(1, new AbortController().signal);
      expect(stub.commands).not.toContain("IDLE");
    }));
});

test("a folder of 12,000 messages with UIDs up to four billion is read in order, by short responses", async () => {
  const stub = newStub();
  for (let n = 1; n <= 12_000; n += 1) stub.deliver("Subject: n\r\n\r\n", n * 350_000);
  const session = await open(stub);
  const asked = stub.commands.length;
  expect(await session.uidsAfter(350_000, 2)).toEqual([700_000, 1_050_000]);
  expect(await session.uidsAfter(11_999 * 350_000, 2)).toEqual([12_000 * 350_000]);
  expect(await session.uidsAfter(12_000 * 350_000, 2)).toEqual([]);
  expect(stub.commands.length - asked).toBeLessThan(40);
  expect(stub.commands.filter((command) => command.endsWith(":*"))).toEqual([]);
  session.close();
});

describe("a login", () => {
  test("that is refused says so, with the words of the server and without the password", async () => {
    const { kind, message } = await failure(open(newStub(), { password: "hunter2" }));
    expect([kind, message]).toEqual(["login", expect.stringMatching(/did not accept the login: .*Wrong password/)]);
    expect(message).not.toContain("hunter2");
  });

  test("without the TLS that is wanted is never sent", async () => {
    for (const options of [{}, { greeting: "* PREAUTH welcome" }]) {
      const stub = newStub(options);
      const { kind } = await failure(open(stub, { url: { host: "localhost", security: "starttls" } }));
      expect(kind).toBe("unreachable");
      expect(stub.commands.filter((command) => /LOGIN|AUTHENTICATE|SELECT/.test(command))).toEqual([]);
    }
  });

  test("to a server with a certificate that nobody vouches for is never sent", async () => {
    const stub = newStub({ tls: { key: TEST_KEY, cert: TEST_CERTIFICATE } });
    const { kind, message } = await failure(open(stub, { url: { security: "tls" } }));
    expect([kind, message]).toEqual(["unreachable", expect.stringContaining("POSTWARDEN_IMAP_CA_FILE")]);
    expect(stub.commands).toEqual([]);
  });

  test("at nobody's port is unreachable", async () => {
    const stub = newStub();
    stub.stop();
    expect((await failure(open(stub))).kind).toBe("unreachable");
  });
});

test("a folder that is missing is named with those that there are", async () => {
  const { kind, message } = await failure(open(newStub(), { url: { folder: "Reprots" } }));
  expect([kind, message]).toEqual(["folder", expect.stringContaining('"INBOX", "Old reports"')]);
});

describe("a server that is wrong", () => {
  const wrong = (pattern: RegExp, how: (tag: string) => string): ImapStubOptions => ({
    fault: (command, tag) => (pattern.test(command) ? { send: how(tag) } : undefined),
  });
  const fetched = (tag: string, text: string) => `${text}${tag} OK done\r\n`;

  test("and names messages that were not asked for, or one twice, is passed over", () =>
    withSession(
      wrong(/^UID FETCH/, (tag) =>
        fetched(tag, [9, 2, 2].map((uid) => `* 1 FETCH (UID ${uid} RFC822.SIZE 2 BODY[] {2}\r\nhi)\r\n`).join("")),
      ),
      async (session) => {
        expect((await Array.fromAsync(session.read([2]))).map(({ uid }) => uid)).toEqual([2]);
        expect([...(await session.sizes([2])).keys()]).toEqual([2]);
      },
    ));

  test("and has lost a message gives those that are left", () =>
    withSession(
      wrong(/^UID FETCH/, (tag) => fetched(tag, "* 3 FETCH (UID 3 BODY[] {2}\r\nhi)\r\n")),
      async (session) => expect((await Array.fromAsync(session.read([2, 3]))).map(({ uid }) => uid)).toEqual([3]),
    ));

  test.each([
    ["announces a literal of a gigabyte", "* 1 FETCH (UID 2 BODY[] {1000000000}\r\n"],
    ["says good-bye", "* BYE shutting down\r\n"],
    ["sends a line without end", "x".repeat(9 * 1024 * 1024)],
  ])("and %s ends the session", (_, text) =>
    withSession(
      wrong(/^UID FETCH/, () => text),
      async (session, stub) => {
        const reading = failure(Array.fromAsync(session.read([2])));
        await stub.until(/^UID FETCH/);
        if (text.startsWith("* BYE")) stub.drop();
        expect((await reading).kind).toBe("broken");
      },
    ),
  );

  test.each(["close", "hang"] as const)(
    "and does %s instead of answering ends the session within its deadline",
    async (how) => {
      const clock = createTestClock();
      const stub = newStub({ fault: (command) => (command.startsWith("UID SEARCH") ? how : undefined) });
      const session = await open(stub, { clock });
      const searching = failure(session.uidsAfter(0, 10));
      await stub.until(/^UID SEARCH/);
      if (how === "hang") await clock.advance(61_000);
      expect((await searching).kind).toBe("broken");
      session.close();
    },
  );

  test.each([
    [
      "search the folder",
      "900,000 UIDs",
      /^UID SEARCH/,
      `* SEARCH ${"4000000000 ".repeat(900_000)}\r\n`,
      "20,000 words",
    ],
    ["search the folder", "EXISTS without end", /^UID SEARCH/, "* 4 EXISTS\r\n".repeat(100_000), "2,000 responses"],
    ["search the folder", "deep lists", /^UID SEARCH/, `* SEARCH ${"(".repeat(500_000)}\r\n`, "20,000 words"],
    [
      "search the folder",
      "flags of others",
      /^UID SEARCH/,
      "* 1 FETCH (FLAGS (\\Seen))\r\n".repeat(50_000),
      "2,000 resp",
    ],
  ])("and was to %s, but sends %s, is left, with what it sent", (what, _, pattern, flood, limit) =>
    withSession(
      wrong(pattern, (tag) => `${flood}${tag} OK done\r\n`),
      async (session, stub) => {
        const { kind, message } = await failure(session.uidsAfter(0, 10));
        expect([kind, message]).toEqual(["broken", expect.stringContaining(limit)]);
        expect(message).toEndWith(`when it was to ${what}.`);
        await stub.untilAlone();
      },
    ),
  );

  test("and sends half a million literals is left", () =>
    withSession(
      wrong(/^UID FETCH/, (tag) => `* 1 FETCH (UID 2 ${"X {0}\r\n ".repeat(500_000)})\r\n${tag} OK done\r\n`),
      async (session, stub) => {
        expect((await failure(session.sizes([2]))).message).toContain("1,000 literals when it was to read messages");
        await stub.untilAlone();
      },
    ));

  test("and floods while it idles ends the session, and wakes whoever waits for news", () =>
    withSession({}, async (session, stub) => {
      await session.uidsAfter(3, 10);
      const news = session.untilNews(600_000, new AbortController().signal);
      await stub.until(/^IDLE$/);
      stub.shout("* OK still here\r\n".repeat(100_000));
      const waited = await news.then(
        () => null,
        (error: unknown) => error,
      );
      expect(waited ?? (await failure(session.uidsAfter(3, 10)))).toMatchObject({
        message: "The server sent more than 2,000 responses when it was to wait for new messages.",
      });
    }));

  test("and has more folders than it may list says what is wrong with the folder", async () => {
    const stub = newStub({
      fault: (command, tag) =>
        /^LIST "" "?\*/.test(command)
          ? { send: `${'* LIST () "/" "folder"\r\n'.repeat(150_000)}${tag} OK done\r\n` }
          : undefined,
    });
    const { kind, message } = await failure(open(stub, { url: { folder: "Reprots" } }));
    expect([kind, message]).toEqual(["folder", expect.stringMatching(/"Reprots" cannot be opened.*2,000 responses/)]);
  });

  test("and floods instead of a greeting is left", async () => {
    const { kind, message } = await failure(open(newStub({ greeting: "* 1 EXISTS\r\n".repeat(100_000) })));
    expect([kind, message]).toEqual(["broken", expect.stringContaining("2,000 responses when it was to log in")]);
  });

  test("and refuses a search is not taken for an empty folder", () =>
    withSession(
      wrong(/^UID SEARCH/, (tag) => `${tag} NO not now\r\n`),
      async (session) => expect((await failure(session.uidsAfter(0, 10))).kind).toBe("refused"),
    ));

  test("and refuses a mark says so, and can be used on", () =>
    withSession(
      wrong(/^UID (STORE|MOVE)/, (tag) => `${tag} NO read-only\r\n`),
      async (session) => {
        expect(await session.mark([1], { kind: "seen" })).toBe(false);
        expect(await session.mark([1], { kind: "move", folder: "Done" })).toBe(false);
        expect(await session.uidsAfter(2, 10)).toEqual([3]);
      },
    ));
});
