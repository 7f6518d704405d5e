import { describe, expect, test } from "bun:test";
import { ok } from "../base/errors.ts";
import { createTestClock, settle } from "../../testing/clock.ts";
import { createStubs, DIAL_REPLY_TIMEOUT_MS, dialStub } from "../../testing/smtp-dial.ts";
import { HANG_UP, RESET, SILENCE, type SmtpStubScript, type StubAnswer } from "../../testing/smtp-stub.ts";
import { type Connector, createDirectConnector } from "./connector.ts";
import { TRANSCRIPT_LINE_CHARS_MAX, TRANSCRIPT_LINES_MAX } from "./line-socket.ts";

const stubOf = createStubs();

const toEhlo = (answer: StubAnswer) => (line: string) => (line.startsWith("EHLO") ? answer : undefined);

describe("opening", () => {
  test("nothing is said before the whole banner, teaser included, has come", async () => {
    const stub = stubOf({ banner: () => ({ raw: "220-wait for it\r\n" }) });
    const opening = dialStub(stub);
    await stub.opened();
    await settle();
    expect(stub.sessions[0]?.lines).toEqual([]);
    stub.sessions[0]?.push("220 now\r\n");
    const session = await opening;
    expect(session.ok && session.value.transcript.slice(0, 3).map((line) => line.text)).toEqual([
      "220-wait for it",
      "220 now",
      "EHLO probe.example",
    ]);
  });

  test("the offers are noted", async () => {
    const session = await dialStub(stubOf({ ehlo: ["size 1000", "Pipelining"], starttls: "works" }));
    expect(session.ok && session.value.capabilities).toEqual({
      pipelining: true,
      starttls: true,
      smtputf8: false,
      eightBitMime: false,
      enhancedStatusCodes: false,
      sizeBytesMax: 1000,
    });
  });

  for (const code of [500, 501, 502, 503, 504]) {
    test(`EHLO refused with ${code} falls back to HELO, without any offers`, async () => {
      const stub = stubOf({ command: toEhlo(`${code} no such thing\r\n`.trimEnd()) });
      const session = await dialStub(stub);
      expect(session.ok && session.value.capabilities.pipelining).toBe(false);
      expect(stub.sessions[0]?.lines).toEqual(["EHLO probe.example", "HELO probe.example"]);
    });
  }

  test("a HELO that is refused too is a refusal", async () => {
    const stub = stubOf({ command: () => "502 no" });
    expect(await dialStub(stub)).toMatchObject({
      ok: false,
      error: { stage: "ehlo", kind: "reply", reply: { code: 502 } },
    });
    await stub.allClosed();
  });

  test("a connector's failures are told as they are, with nothing heard", async () => {
    const stub = stubOf();
    stub.stop();
    expect(await dialStub(stub)).toEqual({
      ok: false,
      error: {
        stage: "connect",
        kind: "refused_or_unreachable",
        reply: null,
        detail: null,
        receivedAnything: false,
        transcript: [],
      },
    });
  });
});

describe("refusals of us", () => {
  const rows = [
    ["banner", { banner: () => "554 5.7.1 blocked by a list" }, 554],
    ["banner", { banner: () => "421 4.3.2 try later" }, 421],
    ["ehlo", { command: toEhlo("550 5.7.1 bad HELO") }, 550],
    ["ehlo", { command: toEhlo("421 4.7.0 too many connections") }, 421],
  ] as const;
  for (const [stage, script, code] of rows) {
    test(`${code} at ${stage} is a refusal with its transcript, and we leave politely`, async () => {
      const stub = stubOf(script);
      const opened = await dialStub(stub);
      expect(opened).toMatchObject({
        ok: false,
        error: { stage, kind: "reply", reply: { code }, receivedAnything: true },
      });
      expect(!opened.ok && opened.error.transcript.some((line) => line.text.startsWith(String(code)))).toBe(true);
      await stub.allClosed();
      expect(stub.sessions[0]?.lines.at(-1)).toBe("QUIT");
    });
  }
});

describe("hostile servers", () => {
  const megabyte = "x".repeat(1 << 20);
  const rows: ReadonlyArray<readonly [string, SmtpStubScript, { stage: string; kind: string; detail?: string }]> = [
    ["closes before the banner", { banner: () => HANG_UP }, { stage: "banner", kind: "closed" }],
    ["resets before the banner", { banner: () => RESET }, { stage: "banner", kind: "closed" }],
    ["closes after EHLO", { command: () => HANG_UP }, { stage: "ehlo", kind: "closed" }],
    ["resets after EHLO", { command: () => RESET }, { stage: "ehlo", kind: "closed" }],
    ["says hello", { banner: () => "hello" }, { stage: "banner", kind: "garbage", detail: "not_a_reply" }],
    ["says 999", { banner: () => "999 hi" }, { stage: "banner", kind: "garbage", detail: "code_out_of_range" }],
    ["greets with 250", { banner: () => "250 hi" }, { stage: "banner", kind: "garbage", detail: "unexpected_code" }],
    [
      "answers EHLO with 354",
      { command: () => "354 go" },
      { stage: "ehlo", kind: "garbage", detail: "unexpected_code" },
    ],
    ["speaks HTTP", { banner: () => "HTTP/1.1 400 Bad Request" }, { stage: "banner", kind: "garbage" }],
    ["sends NULs", { banner: () => "\0".repeat(64) }, { stage: "banner", kind: "garbage" }],
    ["sends a banner of 1 MB", { banner: () => `220 ${megabyte}` }, { stage: "banner", kind: "garbage" }],
    [
      "sends a banner of 1 MB in lines",
      { banner: () => `${`220-${"x".repeat(200)}\r\n`.repeat(5_000)}220 hi` },
      { stage: "banner", kind: "garbage" },
    ],
    ["sends a 50 kB line", { command: toEhlo(`250 ${"x".repeat(50_000)}`) }, { stage: "ehlo", kind: "garbage" }],
    ["sends endless EHLO lines", { command: toEhlo("250-X\r\n".repeat(200_000)) }, { stage: "ehlo", kind: "garbage" }],
    ["talks on after the banner", { banner: () => "220 hi\r\n220 again" }, { stage: "ehlo", kind: "garbage" }],
  ];
  for (const [name, script, failure] of rows) {
    test(`one that ${name} fails at ${failure.stage} as ${failure.kind}, and nothing stays open`, async () => {
      const stub = stubOf(script);
      const opened = await dialStub(stub);
      expect(opened).toMatchObject({ ok: false, error: failure });
      const transcript = opened.ok ? [] : opened.error.transcript;
      expect(transcript.length).toBeLessThanOrEqual(TRANSCRIPT_LINES_MAX);
      expect(transcript.every((line) => line.text.length <= TRANSCRIPT_LINE_CHARS_MAX)).toBe(true);
      await stub.allClosed();
    });
  }

  test("a port that never says anything ends at the reply deadline, with nothing heard", async () => {
    const clock = createTestClock();
    const stub = stubOf({ banner: () => SILENCE });
    const { connector, connected } = watched(createDirectConnector({ clock, mayConnect: () => true }));
    const opening = dialStub(stub, { clock, connector });
    await connected;
    await clock.advance(DIAL_REPLY_TIMEOUT_MS - 1);
    expect(stub.sessions[0]?.closed).toBe(false);
    await clock.advance(1);
    expect(await opening).toMatchObject({
      ok: false,
      error: { stage: "banner", kind: "timeout", receivedAnything: false },
    });
    await stub.allClosed();
    expect(clock.pending()).toBe(0);
  });

  test("silence after EHLO ends at the reply deadline", async () => {
    const clock = createTestClock();
    const stub = stubOf({ command: () => SILENCE });
    const opening = dialStub(stub, { clock });
    await stub.received("EHLO");
    await clock.advance(DIAL_REPLY_TIMEOUT_MS);
    expect(await opening).toMatchObject({
      ok: false,
      error: { stage: "ehlo", kind: "timeout", receivedAnything: true },
    });
    await stub.allClosed();
  });
});

/** Tells when a connector has answered. */
const watched = (connector: Connector) => {
  const { promise: connected, resolve } = Promise.withResolvers<void>();
  const watching: Connector = async (target) => {
    const wire = await connector(target);
    resolve();
    return wire.ok ? ok(wire.value) : wire;
  };
  return { connector: watching, connected };
};
