import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createStubs, DIAL_REPLY_TIMEOUT_MS, dialOpen } from "../../testing/smtp-dial.ts";
import type { StubSession } from "../../testing/smtp-stub.ts";
import type { SmtpProbe } from "./smtp-session.ts";

const stubOf = createStubs();

const question: SmtpProbe = { mailFrom: "", recipients: ["ada@x.example", "no@x.example"], smtputf8: false };
const demand = "530 5.7.0 Must issue a STARTTLS command first";
const mailOverTls = (_: string, session: StubSession) => (session.tls ? "250 Ok" : demand);
const rcptOverTls = (address: string, _: number, session: StubSession) => {
  if (!session.tls) return demand;
  return address.startsWith("ada@") ? "250 Ok" : "550 5.1.1 unknown";
};

for (const ehlo of [["PIPELINING"], []]) {
  const how = ehlo.length > 0 ? "grouped" : "stepwise";

  test(`a MAIL that demands STARTTLS is asked again over TLS (${how})`, async () => {
    const stub = stubOf({ ehlo, starttls: "works", mail: mailOverTls, rcpt: rcptOverTls });
    const session = await dialOpen(stub);
    expect(session.tls).toBe(false);
    const answer = await session.probe(question);
    expect(answer.rcpts.map((rcpt) => rcpt?.code)).toEqual([250, 550]);
    expect(answer.failure).toBeNull();
    expect(session.tls).toBe(true);
    expect(session.capabilities.starttls).toBe(false);
    expect(stub.sessions[0]?.lines.filter((line) => line.startsWith("EHLO"))).toHaveLength(2);
    expect((await session.probe(question)).rcpts.map((rcpt) => rcpt?.code)).toEqual([250, 550]);
    session.close();
    await stub.allClosed();
  });

  test(`a RCPT that demands STARTTLS is asked again over TLS (${how})`, async () => {
    const stub = stubOf({ ehlo, starttls: "works", rcpt: rcptOverTls });
    const session = await dialOpen(stub);
    const answer = await session.probe(question);
    expect(answer.rcpts.map((rcpt) => rcpt?.code)).toEqual([250, 550]);
    expect(session.tls).toBe(true);
  });

  test(`a server that demands STARTTLS before RSET, too, is asked again over TLS (${how})`, async () => {
    const command = (line: string, session: StubSession) => (line === "RSET" && !session.tls ? demand : undefined);
    const mixed = (address: string, nth: number, session: StubSession) =>
      session.tls || nth === 0 ? rcptOverTls(address, nth, session) : "503 5.5.1 Bad sequence";
    const stub = stubOf({ ehlo, starttls: "works", rcpt: mixed, command });
    const session = await dialOpen(stub);
    const answer = await session.probe(question);
    expect(answer.rcpts.map((rcpt) => rcpt?.code)).toEqual([250, 550]);
    expect(session.usable).toBe(true);
  });
}

test("a 421 that demands STARTTLS ends the session like any other", async () => {
  const stub = stubOf({ ehlo: [], starttls: "works", rcpt: () => "421 4.7.0 Must issue STARTTLS first" });
  const session = await dialOpen(stub);
  const answer = await session.probe(question);
  expect(answer.failure).toMatchObject({ stage: "rcpt", kind: "closed", reply: { code: 421 } });
  await stub.allClosed();
  expect(stub.sessions[0]?.lines).not.toContain("STARTTLS");
});

test("STARTTLS stays unused while nobody demands it", async () => {
  const stub = stubOf({ starttls: "works" });
  const session = await dialOpen(stub);
  await session.probe(question);
  expect(session.capabilities.starttls).toBe(true);
  expect(session.tls).toBe(false);
});

test("clear text injected behind the 220 is not taken for a reply over TLS", async () => {
  const stub = stubOf({ starttls: "inject", mail: mailOverTls, rcpt: rcptOverTls });
  const session = await dialOpen(stub);
  const answer = await session.probe(question);
  expect(answer.rcpts.map((rcpt) => rcpt?.code)).toEqual([250, 550]);
  expect(answer.failure).toBeNull();
  expect(session.usable).toBe(true);
});

test("a broken handshake is tls_failed and nothing stays open", async () => {
  const stub = stubOf({ starttls: "broken", mail: mailOverTls });
  const session = await dialOpen(stub);
  const answer = await session.probe(question);
  expect(answer.failure).toMatchObject({ stage: "starttls", kind: "tls_failed", receivedAnything: true });
  expect(answer.mail?.code).toBe(530);
  expect(session.usable).toBe(false);
  await stub.allClosed();
});

test("a handshake that never ends is tls_failed at the reply deadline", async () => {
  const clock = createTestClock();
  const stub = stubOf({
    starttls: "works",
    mail: mailOverTls,
    command: (line) => (line === "STARTTLS" ? "220 go ahead" : undefined),
  });
  const session = await dialOpen(stub, { clock });
  const asked = session.probe(question);
  // The client's hello follows the 220: a batch without a line end, so only the turns tell that it has come.
  await stub.turns(0, 5);
  await clock.advance(DIAL_REPLY_TIMEOUT_MS);
  expect((await asked).failure).toMatchObject({ stage: "starttls", kind: "tls_failed" });
  await stub.allClosed();
  expect(clock.pending()).toBe(0);
});

test("a refused STARTTLS is the server's reply", async () => {
  const stub = stubOf({ starttls: "refused", mail: mailOverTls });
  const session = await dialOpen(stub);
  expect((await session.probe(question)).failure).toMatchObject({
    stage: "starttls",
    kind: "reply",
    reply: { code: 454 },
  });
  expect(session.usable).toBe(false);
  await stub.allClosed();
});

test("a demand without the offer is answered as it is", async () => {
  const session = await dialOpen(stubOf({ mail: () => demand }));
  const answer = await session.probe(question);
  expect(answer.failure).toMatchObject({ stage: "mail", kind: "reply", reply: { code: 530 } });
  expect(session.tls).toBe(false);
});

test("a demand that stays over TLS is not met twice", async () => {
  const stub = stubOf({ ehlo: ["PIPELINING", "STARTTLS"], starttls: "works", mail: () => demand });
  const session = await dialOpen(stub);
  const answer = await session.probe(question);
  expect(answer.failure).toMatchObject({ stage: "mail", kind: "reply", reply: { code: 530 } });
  await session.probe(question);
  expect(stub.sessions[0]?.lines.filter((line) => line === "STARTTLS")).toHaveLength(1);
});
