import { describe, expect, test } from "bun:test";
import { createTestClock, settle } from "../../testing/clock.ts";
import { createStubs, dialOpen } from "../../testing/smtp-dial.ts";
import { SILENCE } from "../../testing/smtp-stub.ts";
import { TRANSCRIPT_LINES_MAX } from "./line-socket.ts";
import { type SmtpProbeResult, AFTER_421_MS, type SmtpProbe } from "./smtp-session.ts";

const stubOf = createStubs();

const question = (...recipients: string[]): SmtpProbe => ({ mailFrom: "", recipients, smtputf8: false });
const codes = (answer: SmtpProbeResult) => answer.rcpts.map((rcpt) => rcpt?.code ?? null);
const onlyAda = (address: string) => (address === "ada@x.example" ? "250 2.1.5 Ok" : "550 5.1.1 User unknown");
const stepwise = { ehlo: ["8BITMIME"] };

describe("one question", () => {
  test("a grouped question costs three waits: banner, EHLO, group", async () => {
    const stub = stubOf({ rcpt: onlyAda });
    const session = await dialOpen(stub);
    const answer = await session.probe(question("ada@x.example", "no@x.example"));
    expect(codes(answer)).toEqual([250, 550]);
    expect(answer.failure).toBeNull();
    expect(stub.sessions[0]?.turns).toBe(3);
    expect(stub.sessions[0]?.lines).toEqual([
      "EHLO probe.example",
      "MAIL FROM:<>",
      "RCPT TO:<ada@x.example>",
      "RCPT TO:<no@x.example>",
      "RSET",
    ]);
    session.close();
    await stub.allClosed();
  });

  test("a warm question costs one wait more", async () => {
    const stub = stubOf({ rcpt: onlyAda });
    const session = await dialOpen(stub);
    await session.probe(question("ada@x.example"));
    expect(session.usable).toBe(true);
    const answer = await session.probe(question("no@x.example"));
    expect(codes(answer)).toEqual([550]);
    expect(stub.sessions[0]?.turns).toBe(4);
    expect(stub.sessions[0]?.lines.slice(4)).toEqual(["MAIL FROM:<>", "RCPT TO:<no@x.example>", "RSET"]);
    session.close();
    await stub.allClosed();
  });

  test("without PIPELINING every command waits for the answer before it", async () => {
    const stub = stubOf({ ...stepwise, rcpt: onlyAda });
    const session = await dialOpen(stub);
    expect(codes(await session.probe(question("ada@x.example", "no@x.example")))).toEqual([250, 550]);
    expect(stub.sessions[0]?.turns).toBe(6);
  });

  test("stopAfter spares later recipients without PIPELINING", async () => {
    const stub = stubOf({ ...stepwise, rcpt: onlyAda });
    const session = await dialOpen(stub);
    const asked = { ...question("no@x.example", "ada@x.example"), stopAfter: (index: number) => index === 0 };
    const answer = await session.probe(asked);
    expect(codes(answer)).toEqual([550, null]);
    expect(answer.failure).toBeNull();
    expect(session.usable).toBe(true);
    expect(stub.sessions[0]?.lines.some((line) => line.includes("ada@"))).toBe(false);
  });

  test("stopAfter is not called where all were asked at once", async () => {
    const session = await dialOpen(stubOf());
    let calls = 0;
    const answer = await session.probe({ ...question("a@x.example", "b@x.example"), stopAfter: () => ++calls > 0 });
    expect(codes(answer)).toEqual([250, 250]);
    expect(calls).toBe(0);
  });

  for (const dribble of [false, true]) {
    test(`answers do not depend on how the bytes are cut (dribble ${dribble})`, async () => {
      const session = await dialOpen(stubOf({ dribble, rcpt: onlyAda }));
      expect(codes(await session.probe(question("ada@x.example", "no@x.example")))).toEqual([250, 550]);
    });
  }

  test("the transcript holds the opening and the latest question, in order", async () => {
    const session = await dialOpen(stubOf({ ehlo: ["PIPELINING"] }));
    await session.probe(question("first@x.example"));
    await session.probe(question("second@x.example"));
    expect(session.transcript.map((line) => `${line.from} ${line.text}`)).toEqual([
      "server 220 stub.example ESMTP",
      "us EHLO probe.example",
      "server 250-stub.example",
      "server 250 PIPELINING",
      "us MAIL FROM:<>",
      "us RCPT TO:<second@x.example>",
      "us RSET",
      "server 250 2.1.0 Ok",
      "server 250 2.1.5 Ok",
      "server 250 2.0.0 Ok",
    ]);
  });

  test("the transcript stays bounded whatever the server says", async () => {
    const chatter = `${"250-and so on\r\n".repeat(60)}250 Ok`;
    const session = await dialOpen(stubOf({ rcpt: () => chatter }));
    await session.probe(question("a@x.example", "b@x.example", "c@x.example", "d@x.example", "e@x.example"));
    expect(session.transcript.length).toBeLessThanOrEqual(2 * TRANSCRIPT_LINES_MAX);
    expect(session.transcript.length).toBeGreaterThan(TRANSCRIPT_LINES_MAX);
  });
});

describe("refusals", () => {
  for (const script of [{}, stepwise]) {
    const how = "ehlo" in script ? "stepwise" : "grouped";
    test(`a refused MAIL is a failure, recipients stay unanswered, the session stays usable (${how})`, async () => {
      let refusals = 1;
      const mail = () => (refusals-- > 0 ? "550 5.7.1 Sender refused" : "250 Ok");
      const stub = stubOf({ ...script, mail, rcpt: () => "503 5.5.1 need MAIL" });
      const session = await dialOpen(stub);
      const answer = await session.probe(question("ada@x.example", "no@x.example"));
      expect(answer.mail?.code).toBe(550);
      expect(codes(answer)).toEqual([null, null]);
      expect(answer.failure).toMatchObject({ stage: "mail", kind: "reply", reply: { code: 550 } });
      expect(session.usable).toBe(true);
      expect(codes(await session.probe(question("ada@x.example")))).toEqual([503]);
    });
  }

  test("without PIPELINING a refused MAIL leaves nothing to reset", async () => {
    const stub = stubOf({ ...stepwise, mail: () => "451 4.3.0 later" });
    const session = await dialOpen(stub);
    await session.probe(question("ada@x.example"));
    expect(stub.sessions[0]?.lines).not.toContain("RSET");
    expect(session.usable).toBe(true);
  });

  test("421 answers its recipient, and the session is over", async () => {
    const rcpt = (_: string, nth: number) =>
      nth === 0 ? "250 Ok" : ({ raw: "421 4.7.0 enough\r\n", ending: "close" } as const);
    const stub = stubOf({ rcpt });
    const session = await dialOpen(stub);
    const answer = await session.probe(question("a@x.example", "b@x.example", "c@x.example"));
    expect(codes(answer)).toEqual([250, 421, null]);
    expect(answer.failure).toMatchObject({ stage: "rcpt", kind: "closed", reply: { code: 421 } });
    expect(session.usable).toBe(false);
    await stub.allClosed();
  });

  test("421 without PIPELINING ends the asking", async () => {
    const stub = stubOf({ ...stepwise, rcpt: () => "421 4.7.0 enough" });
    const session = await dialOpen(stub);
    const answer = await session.probe(question("a@x.example", "b@x.example"));
    expect(codes(answer)).toEqual([421, null]);
    expect(answer.failure).toMatchObject({ kind: "closed", reply: { code: 421 } });
    await stub.allClosed();
    expect(stub.sessions[0]?.lines.filter((line) => line.startsWith("RCPT"))).toHaveLength(1);
  });

  test("a server that says 421 and stays is waited for a moment only", async () => {
    const clock = createTestClock();
    const stub = stubOf({ rcpt: (_, nth) => (nth === 0 ? "421 4.7.0 enough" : SILENCE) });
    const session = await dialOpen(stub, { clock });
    const asked = session.probe(question("a@x.example", "b@x.example"));
    // The wait for the second recipient begins when the 421 was heard; until then the clock must stand still.
    while (!session.transcript.some((line) => line.text.startsWith("421"))) await settle();
    await clock.advance(AFTER_421_MS);
    const answer = await asked;
    expect(codes(answer)).toEqual([421, null]);
    expect(answer.failure?.kind).toBe("closed");
    await stub.allClosed();
  });
});

describe("SMTPUTF8", () => {
  test("MAIL says so, with 8BITMIME where it is offered", async () => {
    const stub = stubOf();
    const session = await dialOpen(stub);
    await session.probe({ mailFrom: "", recipients: ["jörg@x.example"], smtputf8: true });
    expect(stub.sessions[0]?.lines.slice(1)).toEqual([
      "MAIL FROM:<> BODY=8BITMIME SMTPUTF8",
      "RCPT TO:<jörg@x.example>",
      "RSET",
    ]);
  });

  test("where it is not offered nothing is sent and the session stays usable", async () => {
    const stub = stubOf({ ehlo: ["PIPELINING"] });
    const session = await dialOpen(stub);
    const answer = await session.probe({ mailFrom: "", recipients: ["jörg@x.example"], smtputf8: true });
    expect(answer).toMatchObject({ mail: null, rcpts: [null], failure: { kind: "smtputf8_not_offered" } });
    expect(session.usable).toBe(true);
    expect(codes(await session.probe(question("a@x.example")))).toEqual([250]);
    expect(stub.sessions[0]?.lines).toHaveLength(4);
  });
});

describe("closing", () => {
  test("QUIT is sent, and a server that ignores it is destroyed after a short while", async () => {
    const clock = createTestClock();
    const stub = stubOf({ command: (line) => (line === "QUIT" ? SILENCE : undefined) });
    const session = await dialOpen(stub, { clock });
    session.close();
    expect(session.usable).toBe(false);
    await stub.received("QUIT");
    expect(stub.sessions[0]?.closed).toBe(false);
    await clock.advance(2_000);
    await stub.allClosed();
    expect(clock.pending()).toBe(0);
  });

  test("closing under way ends the question as closed", async () => {
    const stub = stubOf({ rcpt: () => SILENCE });
    const session = await dialOpen(stub);
    const asked = session.probe(question("a@x.example"));
    await stub.received("RCPT");
    session.close();
    expect((await asked).failure?.kind).toBe("closed");
  });

  test("concurrent probes are a bug", async () => {
    const session = await dialOpen(stubOf());
    const first = session.probe(question("a@x.example"));
    await expect(session.probe(question("b@x.example"))).rejects.toThrow("concurrent probes");
    expect(codes(await first)).toEqual([250]);
  });
});
