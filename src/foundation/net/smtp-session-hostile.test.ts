import { describe, expect, test } from "bun:test";
import { createTestClock, settle } from "../../testing/clock.ts";
import { createStubs, DIAL_REPLY_TIMEOUT_MS, dialOpen } from "../../testing/smtp-dial.ts";
import { HANG_UP, NO_REPLY, RESET, SILENCE } from "../../testing/smtp-stub.ts";
import { RSET_WAIT_MS, type SmtpProbe, type SmtpProbeResult } from "./smtp-session.ts";

const stubOf = createStubs();

const question = (...recipients: string[]): SmtpProbe => ({ mailFrom: "", recipients, smtputf8: false });
const codes = (answer: SmtpProbeResult) => answer.rcpts.map((rcpt) => rcpt?.code ?? null);
const stepwise = { ehlo: ["8BITMIME"] };

describe("servers that break off", () => {
  for (const [name, ending] of [
    ["closes", HANG_UP],
    ["resets", RESET],
  ] as const) {
    test(`what was answered counts when the server ${name} in the middle`, async () => {
      const stub = stubOf({ ...stepwise, rcpt: (_, nth) => (nth === 0 ? "550 5.1.1 unknown" : ending) });
      const session = await dialOpen(stub);
      const answer = await session.probe(question("a@x.example", "b@x.example"));
      expect(codes(answer)).toEqual([550, null]);
      expect(answer.failure).toMatchObject({ stage: "rcpt", kind: "closed", reply: null, receivedAnything: true });
      expect(session.usable).toBe(false);
      await stub.allClosed();
    });
  }

  test("a server silent at RCPT ends at the reply deadline, and what was answered counts", async () => {
    const clock = createTestClock();
    const stub = stubOf({ ...stepwise, rcpt: (_, nth) => (nth === 0 ? "250 Ok" : SILENCE) });
    const session = await dialOpen(stub, { clock });
    const asked = session.probe(question("a@x.example", "b@x.example"));
    await stub.received("RCPT", 2);
    await clock.advance(DIAL_REPLY_TIMEOUT_MS);
    const answer = await asked;
    expect(codes(answer)).toEqual([250, null]);
    expect(answer.failure).toMatchObject({ stage: "rcpt", kind: "timeout" });
    expect(session.usable).toBe(false);
    await stub.allClosed();
    expect(clock.pending()).toBe(0);
  });

  test("the session deadline ends a question before its reply deadline", async () => {
    const clock = createTestClock();
    const stub = stubOf({ rcpt: () => SILENCE });
    const session = await dialOpen(stub, { clock, sessionDeadlineMs: 5_000 });
    const asked = session.probe(question("a@x.example"));
    await stub.received("RCPT");
    await clock.advance(5_000);
    expect((await asked).failure?.kind).toBe("deadline");
    await stub.allClosed();
  });

  test("an idle session is destroyed at its deadline", async () => {
    const clock = createTestClock();
    const stub = stubOf();
    const session = await dialOpen(stub, { clock, sessionDeadlineMs: 60_000 });
    await session.probe(question("a@x.example"));
    await clock.advance(60_000);
    expect(session.usable).toBe(false);
    await stub.allClosed();
  });

  test("a warm session that the server closed is not usable, and asking says closed", async () => {
    const stub = stubOf();
    const session = await dialOpen(stub);
    await session.probe(question("a@x.example"));
    stub.sessions[0]?.push("421 4.4.2 idle\r\n");
    await stub.allClosed();
    expect(session.usable).toBe(false);
    const answer = await session.probe(question("a@x.example"));
    expect(answer).toMatchObject({ mail: null, rcpts: [null], failure: { stage: "mail", kind: "closed" } });
  });
});

describe("servers that talk nonsense", () => {
  test("354 to RCPT is garbage, not an answer", async () => {
    const stub = stubOf({ rcpt: (_, nth) => (nth === 0 ? "250 Ok" : "354 go ahead") });
    const session = await dialOpen(stub);
    const answer = await session.probe(question("a@x.example", "b@x.example"));
    expect(codes(answer)).toEqual([250, null]);
    expect(answer.failure).toMatchObject({
      stage: "rcpt",
      kind: "garbage",
      detail: "unexpected_code",
      reply: { code: 354 },
    });
    expect(session.usable).toBe(false);
    await stub.allClosed();
    expect(stub.sessions[0]?.lines).not.toContain("QUIT");
  });

  test("one reply too many makes every answer of the question doubtful", async () => {
    const stub = stubOf({ mail: () => "250 Ok\r\n250 Ok again", rcpt: () => "550 5.1.1 unknown" });
    const session = await dialOpen(stub);
    const answer = await session.probe(question("a@x.example", "b@x.example"));
    expect(codes(answer)).toEqual([null, null]);
    expect(answer.failure).toMatchObject({ kind: "garbage", detail: "surplus_reply" });
    expect(session.usable).toBe(false);
    await stub.allClosed();
  });

  describe("a reply too many that shows only when RSET is answered", () => {
    for (const [name, ehlo] of [
      ["pipelined", ["PIPELINING"]],
      ["stepwise", ["8BITMIME"]],
    ] as const)
      for (const [unasked, replies] of [
        ["250 2.1.5 Ok", ["550 5.1.1 unknown", "550 5.1.1 unknown"]],
        ["550 5.1.1 unknown", ["250 2.1.5 Ok", "550 5.1.1 unknown"]],
        ["250 2.1.5 Ok", ["450 4.2.0 Greylisted", "450 4.2.0 Greylisted"]],
      ] as const)
        test(`${unasked} behind MAIL, then ${replies.join(", ")} (${name})`, async () => {
          // The replies to the last recipient and to RSET come one late, and the very last one not at all.
          const shifted = [unasked, ...replies];
          const stub = stubOf({
            ehlo,
            rcpt: (_, nth) => shifted[nth] ?? NO_REPLY,
            command: (line) => (line === "RSET" ? shifted[2] : undefined),
          });
          const session = await dialOpen(stub);
          const answer = await session.probe(question("a@x.example", "b@x.example"));
          expect(codes(answer)).toEqual([null, null]);
          expect(answer.failure).toMatchObject({ stage: "rcpt", kind: "garbage", detail: "surplus_reply" });
          expect(session.usable).toBe(false);
          await stub.allClosed();
        });
  });

  for (const [reset, usable] of [
    ["250 2.1.5 Flushed", true],
    ["500 5.5.2 What?", false],
    ["502 5.5.1 Not implemented", false],
    ["421 4.7.0 Too many errors", false],
    [HANG_UP, false],
    ["999 what", false],
  ] as const)
    test(`replies to recipients count when RSET ends with ${JSON.stringify(reset)}`, async () => {
      const stub = stubOf({
        rcpt: (_, nth) => (nth === 0 ? "250 Ok" : "550 5.1.1 unknown"),
        command: (line) => (line === "RSET" ? reset : undefined),
      });
      const session = await dialOpen(stub);
      const answer = await session.probe(question("a@x.example", "b@x.example"));
      expect(codes(answer)).toEqual([250, 550]);
      expect(answer.failure).toBeNull();
      expect(session.usable).toBe(usable);
      session.close();
      await stub.allClosed();
    });

  test("a server that refuses everything alike refuses us", async () => {
    const blocked = "554 5.7.1 Blocked";
    const command = (line: string) => (line === "RSET" ? blocked : undefined);
    const session = await dialOpen(stubOf({ rcpt: () => blocked, command }));
    expect(codes(await session.probe(question("a@x.example", "b@x.example")))).toEqual([554, 554]);
    expect(session.usable).toBe(false);
  });

  for (const [name, rcpt] of [
    ["both recipients", () => NO_REPLY],
    ["the first recipient", (_: string, nth: number) => (nth === 0 ? NO_REPLY : "550 5.1.1 unknown")],
    ["the second recipient", (_: string, nth: number) => (nth === 0 ? "550 5.1.1 unknown" : NO_REPLY)],
  ] as const)
    test(`the reply to RSET is not taken for that to ${name}`, async () => {
      const clock = createTestClock();
      const stub = stubOf({ rcpt });
      const session = await dialOpen(stub, { clock });
      const asked = session.probe(question("a@x.example", "b@x.example"));
      await stub.received("RSET");
      while (!session.transcript.some(({ from, text }) => from === "server" && text === "250 2.0.0 Ok")) await settle();
      await clock.advance(DIAL_REPLY_TIMEOUT_MS);
      const answer = await asked;
      expect(codes(answer)).toEqual([null, null]);
      expect(answer.failure).toMatchObject({ stage: "rcpt", kind: "timeout" });
    });

  test("a refusal counts when the server stops replying after it", async () => {
    const clock = createTestClock();
    const stub = stubOf({ rcpt: (_, nth) => (nth === 0 ? "550 5.1.1 unknown" : SILENCE) });
    const session = await dialOpen(stub, { clock });
    const asked = session.probe(question("a@x.example", "b@x.example"));
    while (!session.transcript.some(({ text }) => text.startsWith("550"))) await settle();
    await clock.advance(DIAL_REPLY_TIMEOUT_MS);
    expect(codes(await asked)).toEqual([550, null]);
  });

  test("a server silent at RSET is waited for a moment only, and what it said counts", async () => {
    const clock = createTestClock();
    const stub = stubOf({ ...stepwise, command: (line) => (line === "RSET" ? SILENCE : undefined) });
    const session = await dialOpen(stub, { clock });
    const asked = session.probe(question("a@x.example"));
    await stub.received("RSET");
    await clock.advance(RSET_WAIT_MS);
    expect(codes(await asked)).toEqual([250]);
    expect(session.usable).toBe(false);
    await stub.allClosed();
    expect(clock.pending()).toBe(0);
  });

  test("speaking unasked between two questions makes the session unusable", async () => {
    const stub = stubOf();
    const session = await dialOpen(stub);
    await session.probe(question("a@x.example"));
    stub.sessions[0]?.push("250 by the way\r\n");
    await stub.allClosed();
    expect(session.usable).toBe(false);
  });

  for (const [text, detail] of [
    ["999 what", "code_out_of_range"],
    ["hello", "not_a_reply"],
    ["\u0000\u0000\u0000", "not_a_reply"],
  ] as const) {
    test(`${JSON.stringify(text)} to RCPT is garbage`, async () => {
      const stub = stubOf({ rcpt: () => text });
      const session = await dialOpen(stub);
      const answer = await session.probe(question("a@x.example"));
      expect(codes(answer)).toEqual([null]);
      expect(answer.failure).toMatchObject({ stage: "rcpt", kind: "garbage", detail });
      await stub.allClosed();
    });
  }
});
