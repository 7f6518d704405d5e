import { describe, expect, test } from "bun:test";
import type { SmtpProbeResult, SmtpProbe } from "../../foundation/net/smtp-session.ts";
import { A, B, failureOf, OK, poolOf, question, replyOf, unsaid, yes } from "../../testing/probe-pool.ts";
import { IDLE_MS } from "./pool.ts";

describe("reuse", () => {
  test("one connection serves the probes that wait for its host, one after the other", async () => {
    const { pool, sessions } = poolOf({ connectionsPerHostMax: 1 }, yes);
    const answers = await Promise.all(["a", "b", "c"].map((name) => pool.probe(A, question(name))));
    expect(answers.map(({ connection }) => connection)).toEqual(["new", "reused", "reused"]);
    expect(sessions.length).toBe(1);
  });

  test("a connection takes no more recipients than it may", async () => {
    const { pool, sessions } = poolOf({ connectionsPerHostMax: 1, rcptPerConnectionMax: 5 }, yes);
    await Promise.all(["a", "b", "c", "d", "e"].map((name) => pool.probe(A, question(name, "random"))));
    expect(sessions.map(({ asked }) => asked.length)).toEqual([2, 2, 1]);
    expect(sessions.map(({ closed }) => closed)).toEqual([true, true, false]);
  });

  test("a probe larger than the limit gets a connection of its own", async () => {
    const { pool, sessions } = poolOf({ connectionsPerHostMax: 1, rcptPerConnectionMax: 1 }, yes);
    await Promise.all(["a", "b"].map((name) => pool.probe(A, question(name, "random"))));
    expect(sessions.map(({ asked, closed }) => [asked.length, closed])).toEqual([
      [1, true],
      [1, true],
    ]);
  });

  test("a resting connection is closed after its time, and not before", async () => {
    const { pool, clock, sessions } = poolOf({}, yes);
    await pool.probe(A, question("a"));
    await clock.advance(IDLE_MS - 1);
    expect([pool.connections(), sessions[0]?.closed]).toEqual([1, false]);
    await clock.advance(1);
    expect([pool.connections(), sessions[0]?.closed]).toEqual([0, true]);
    expect((await pool.probe(A, question("b"))).connection).toBe("new");
  });

  test("an idle connection that is used again is idle anew", async () => {
    const { pool, clock, sessions } = poolOf({}, yes);
    await pool.probe(A, question("a"));
    await clock.advance(IDLE_MS - 1);
    expect((await pool.probe(A, question("b"))).connection).toBe("reused");
    await clock.advance(IDLE_MS - 1);
    expect(sessions[0]?.closed).toBe(false);
  });

  test("a session that is used up is closed", async () => {
    const { pool, sessions } = poolOf({}, (asked, session) => {
      session.usable = false;
      return yes(asked);
    });
    await pool.probe(A, question("a"));
    expect([pool.connections(), sessions[0]?.closed]).toEqual([0, true]);
  });
});

describe("what an idle connection leaves open is repeated on a new one", () => {
  const busy = replyOf("421 4.7.0 Too many messages in this session");
  const late: ReadonlyArray<readonly [string, (asked: SmtpProbe) => SmtpProbeResult]> = [
    ["closed", (asked) => unsaid(asked, failureOf("closed", "mail"))],
    ["silent", (asked) => unsaid(asked, failureOf("timeout", "mail"))],
    ["garbage", (asked) => unsaid(asked, failureOf("garbage", "mail"))],
    ["out of its time", (asked) => unsaid(asked, failureOf("deadline", "mail"))],
    ["closed before the recipient", (asked) => ({ ...unsaid(asked, failureOf("closed", "rcpt")), mail: OK })],
    ["421 to MAIL", (asked) => ({ ...unsaid(asked, failureOf("reply", "mail")), mail: busy })],
    ["452 to MAIL", (asked) => ({ ...unsaid(asked, failureOf("reply", "mail")), mail: replyOf("452 4.5.3 Enough") })],
    ["421 to RCPT", () => ({ mail: OK, rcpts: [busy], failure: null })],
  ];
  for (const [name, stale] of late)
    test(name, async () => {
      const { pool, sessions } = poolOf({}, (asked, session) =>
        session === sessions[0] && session.asked.length > 1 ? stale(asked) : yes(asked),
      );
      await pool.probe(A, question("a"));
      const answer = await pool.probe(A, question("b"));
      expect([answer.connection, answer.rcpts[0]?.code]).toEqual(["new", 250]);
      expect(sessions.map(({ closed }) => closed)).toEqual([true, false]);
      expect(pool.connections()).toBe(1);
    });

  test("once, not for ever", async () => {
    const { pool, sessions } = poolOf({}, (asked, session) =>
      sessions.length === 1 && session.asked.length === 1 ? yes(asked) : unsaid(asked, failureOf("closed", "mail")),
    );
    await pool.probe(A, question("a"));
    const answer = await pool.probe(A, question("b"));
    expect([answer.connection, answer.failure?.kind]).toEqual(["new", "closed"]);
    expect(sessions.length).toBe(2);
  });

  test("but a reply about the recipient stands", async () => {
    const { pool, sessions } = poolOf({}, (asked, session) =>
      session.asked.length === 1
        ? yes(asked)
        : { mail: OK, rcpts: [replyOf("550 5.1.1 User unknown"), null], failure: failureOf("closed", "rcpt") },
    );
    await pool.probe(A, question("a", "r"));
    expect((await pool.probe(A, question("b", "r"))).rcpts[0]?.code).toBe(550);
    expect(sessions.length).toBe(1);
  });

  test("and so does a server that accepted the sender and stopped responding", async () => {
    const { pool } = poolOf({}, (asked, session) =>
      session.asked.length === 1 ? yes(asked) : { ...unsaid(asked, failureOf("timeout", "rcpt")), mail: OK },
    );
    await pool.probe(A, question("a"));
    expect((await pool.probe(A, question("b"))).failure?.kind).toBe("timeout");
  });
});

describe("failures", () => {
  test("a host that cannot be connected to affects its own probe only", async () => {
    const { pool } = poolOf({ connectionsMax: 1 }, yes, ({ address }) =>
      address === A.address ? failureOf("connect_timeout", "connect") : null,
    );
    const [a, b] = await Promise.all([pool.probe(A, question("a", "r")), pool.probe(B, question("b"))]);
    expect(a).toMatchObject({ connection: "none", mail: null, rcpts: [null, null], tls: false });
    expect(a.failure?.kind).toBe("connect_timeout");
    expect(b.connection).toBe("new");
    expect(pool.waiting()).toBe(0);
  });

  test("a bug rejects its own probe, closes its connection, and the others continue", async () => {
    const { pool, sessions } = poolOf({ connectionsPerHostMax: 1 }, (asked) => {
      if (asked.recipients[0] === "bug") throw new Error("a bug");
      return yes(asked);
    });
    const asked = ["a", "bug", "c"].map((name) => pool.probe(A, question(name)));
    const ends = await Promise.allSettled(asked);
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(sessions.map(({ closed }) => closed)).toEqual([true, false]);
    expect(pool.connections()).toBe(1);
  });

  test("a bug on a new connection closes it too", async () => {
    const { pool, sessions } = poolOf({}, () => {
      throw new Error("a bug");
    });
    await expect(pool.probe(A, question("a"))).rejects.toThrow("a bug");
    expect([sessions[0]?.closed, pool.connections()]).toEqual([true, 0]);
  });
});
