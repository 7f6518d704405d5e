import { describe, expect, test } from "bun:test";
import { err, ok, type Result } from "../base/errors.ts";
import { wait } from "../base/wait.ts";
import { createLog } from "../base/log.ts";
import { ImapFailure } from "../net/imap-client.ts";
import { createTestClock } from "../../testing/clock.ts";
import { FakeFolder } from "../../testing/mailbox-harness.ts";
import { reconnectDelayMs, MailboxFetcher } from "./mailbox-fetcher.ts";
import type { SyncResult } from "./mailbox-sync.ts";

const MINUTE_MS = 60_000;

class Session extends FakeFolder {
  isClosed = false;
  get canIdle() {
    return true;
  }
  /** Each wait needs its own news: else passes would follow each other without end. */
  tell: () => void = () => undefined;
  untilNews = (_ms: number, signal: AbortSignal): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.tell = resolve;
    signal.addEventListener("abort", () => resolve());
    return promise;
  };
  close = (): void => {
    this.isClosed = true;
  };
}

const start = (
  given: { open?: () => Promise<never>; pass?: () => Promise<SyncResult>; account?: Result<string, string> } = {},
) => {
  const clock = createTestClock();
  const logged: string[] = [];
  const session = new Session();
  const counts = { opened: 0, passes: 0 };
  const log = createLog("warn", clock, (line) => logged.push(line));
  const fetcher = new MailboxFetcher(
    { clock, log, random: { integer: () => 0 } },
    {
      open: async () => {
        counts.opened += 1;
        await given.open?.();
        return Object.assign(session, { messages: session.messages }) as never;
      },
      sync: {
        run: async () => {
          counts.passes += 1;
          return (await given.pass?.()) ?? "done";
        },
      },
      accountId: () => given.account ?? ok("account"),
      words: { mail: "report mail", contents: "Reports" },
      name: "imaps://user@mail.example/INBOX",
    },
  );
  fetcher.start();
  return { clock, logged, session, counts, fetcher };
};

const fails = (kind: ConstructorParameters<typeof ImapFailure>[0]) => async () => {
  throw new ImapFailure(kind, "It does not work.");
};

describe("delays", () => {
  test.each([
    [1, false, 2_000],
    [4, false, 16_000],
    [100, false, 5 * MINUTE_MS],
    [1, true, MINUTE_MS],
    [100, true, 60 * MINUTE_MS],
  ])("after failure %d (slow: %p) last %d ms, or down to half of that", (failures, isSlow, ms) => {
    expect(reconnectDelayMs(failures, isSlow, { integer: () => 0 })).toBe(ms);
    expect(reconnectDelayMs(failures, isSlow, { integer: (below) => below - 1 })).toBe(ms / 2 + 1);
  });
});

describe("the mailbox fetcher", () => {
  test("syncs, and again when there are new messages", async () => {
    const { clock, session, counts, fetcher } = start();
    await clock.advance(0);
    expect(counts).toEqual({ opened: 1, passes: 1 });
    session.tell();
    await clock.advance(1_000);
    expect(counts).toEqual({ opened: 1, passes: 2 });
    await fetcher.stop();
    expect(session.isClosed).toBe(true);
  });

  test("a server with news without end gets a pass a second", async () => {
    const { clock, session, counts, fetcher } = start();
    session.untilNews = async () => undefined;
    await clock.advance(MINUTE_MS);
    expect(counts.passes).toBeLessThanOrEqual(61);
    await fetcher.stop();
  });

  test("waits longer and longer for a server that breaks after each pass, and says so", async () => {
    const { clock, session, counts, fetcher } = start();
    session.untilNews = () => Promise.reject(new ImapFailure("broken", "The server sent more than 2,000 responses."));
    await clock.advance(60 * MINUTE_MS);
    expect(counts.opened).toBeLessThan(25);
    expect(fetcher.findings().join()).toContain("more than 2,000 responses");
    await fetcher.stop();
  });

  test("reconnects at once when a connection that worked for a while ends", async () => {
    const { clock, session, counts, fetcher } = start();
    session.untilNews = async (_, signal) => {
      await wait(clock, 2 * MINUTE_MS, signal);
      throw new ImapFailure("broken", "The connection ended.");
    };
    await clock.advance(60 * MINUTE_MS);
    expect(counts.opened).toBeGreaterThan(28);
    expect(fetcher.findings()).toEqual([]);
    await fetcher.stop();
  });

  test("retries a refused login at most once an hour in the end, and logs it once", async () => {
    const { clock, counts, fetcher, logged } = start({ open: fails("login") });
    await clock.advance(24 * 60 * MINUTE_MS);
    expect(counts.opened).toBeLessThan(32);
    expect(logged).toHaveLength(1);
    expect(fetcher.findings()).toEqual(["Reports from the mailbox: It does not work."]);
    await fetcher.stop();
    expect(clock.pending()).toBe(0);
  });

  test("reports no finding for occasional disconnects, and one when no connection succeeds", async () => {
    const { clock, counts, fetcher, logged } = start({ open: fails("unreachable") });
    await clock.advance(0);
    expect([counts.opened, fetcher.findings(), logged]).toEqual([1, [], []]);
    await clock.advance(MINUTE_MS);
    expect([fetcher.findings(), logged.length]).toEqual([["Reports from the mailbox: It does not work."], 1]);
    await fetcher.stop();
  });

  test("has no finding after it recovered", async () => {
    const server: { isBroken: boolean } = { isBroken: true };
    const { clock, fetcher } = start({
      open: async () => (server.isBroken ? await fails("folder")() : (undefined as never)),
    });
    await clock.advance(0);
    expect(fetcher.findings()).not.toEqual([]);
    server.isBroken = false;
    await clock.advance(MINUTE_MS);
    expect(fetcher.findings()).toEqual([]);
    await fetcher.stop();
  });

  test("does not connect without an account", async () => {
    const { clock, counts, fetcher } = start({ account: err("There are several accounts.") });
    await clock.advance(0);
    expect([counts.opened, fetcher.findings()]).toEqual([0, ["Reports from the mailbox: There are several accounts."]]);
    await fetcher.stop();
  });

  test("stops while connecting, and closes the late connection", async () => {
    const opening = Promise.withResolvers<never>();
    const { clock, session, fetcher } = start({ open: () => opening.promise });
    await clock.advance(0);
    await fetcher.stop();
    opening.resolve(undefined as never);
    await clock.advance(0);
    expect(session.isClosed).toBe(true);
  });

  test("waits while it is paused", async () => {
    const { clock, counts, fetcher } = start({ pass: async () => "paused" });
    await clock.advance(10 * MINUTE_MS);
    expect(counts).toEqual({ opened: 1, passes: 11 });
    await fetcher.stop();
  });

  test("internal errors are logged once until a pass succeeds, and do not end it", async () => {
    let isBroken: boolean = true;
    const { clock, counts, session, fetcher, logged } = start({
      pass: async () => {
        if (isBroken) throw new TypeError("a bug");
        return "done";
      },
    });
    await clock.advance(MINUTE_MS);
    expect(counts.opened).toBeGreaterThan(2);
    expect(fetcher.findings().join()).toContain("Internal error");
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain("a bug");
    isBroken = false;
    await clock.advance(5 * MINUTE_MS);
    expect(fetcher.findings()).toEqual([]);
    isBroken = true;
    session.tell();
    await clock.advance(MINUTE_MS);
    expect(logged).toHaveLength(2);
    await fetcher.stop();
  });
});
