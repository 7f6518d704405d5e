import { describe, expect, test } from "bun:test";
import { createMailNetworks, NETWORK_REPLY_TIMEOUT_MS } from "../testing/mail-network.ts";
import { HANG_UP, RESET, SILENCE, type SmtpStubScript, type StubAnswer } from "../testing/smtp-stub.ts";
import { evidenceSchema } from "./evidence.ts";
import type { ConcludedVerification } from "./verdict.ts";
import type { SubStatus } from "./result.ts";

const networkOf = createMailNetworks();

const UNKNOWN = "550 5.1.1 User unknown";
const onlyAda: SmtpStubScript["rcpt"] = (address) => (address === "ada@x.example" ? "250 2.1.5 Ok" : UNKNOWN);
const everybody = () => "250 2.1.5 Ok";
const ADA = "ada@x.example";
const OK = "250 2.1.5 Ok";
const CLOSING: StubAnswer = { raw: `${OK}\r\n`, ending: "close" };
const always = (line: string) => () => line;
const STEPWISE = ["8BITMIME"];

const rcptsOf = (lines: readonly string[] | undefined) =>
  (lines ?? []).filter((line) => line.startsWith("RCPT")).map((line) => /<(.*)@/.exec(line)?.[1]);

/** What one host says, and what comes of it. */
const ONE_HOST: ReadonlyArray<readonly [string, SmtpStubScript, SubStatus]> = [
  ["accepts this recipient only", { rcpt: onlyAda }, "mailbox_exists"],
  ["accepts this recipient only, one command at a time", { rcpt: onlyAda, ehlo: STEPWISE }, "mailbox_exists"],
  ["accepts every recipient", { rcpt: everybody }, "catch_all"],
  ["accepts every recipient, one command at a time", { rcpt: everybody, ehlo: STEPWISE }, "catch_all"],
  ["accepts every recipient, and closes after each", { rcpt: () => CLOSING }, "catch_all"],
  [
    "accepts every recipient, and closes after each, one at a time",
    { rcpt: () => CLOSING, ehlo: STEPWISE },
    "catch_all",
  ],
  ["accepts every recipient, and closes at the second", { rcpt: (_, nth) => (nth === 0 ? OK : HANG_UP) }, "catch_all"],
  [
    "accepts this recipient only, and closes after it",
    { rcpt: (to) => (to === ADA ? CLOSING : UNKNOWN) },
    "mailbox_exists",
  ],
  ["refuses the recipient as unknown", { rcpt: always(UNKNOWN) }, "mailbox_not_found"],
  ["refuses the recipient as disabled", { rcpt: always("550 5.2.1 Account disabled") }, "mailbox_disabled"],
  ["is over quota", { rcpt: always("452 4.2.2 Mailbox over quota") }, "mailbox_full"],
  ["refuses without a reason, all alike", { rcpt: always("550 Rejected") }, "smtp_blocked"],
  [
    "refuses without a reason, but not the random recipient",
    { rcpt: (_, nth) => (nth === 0 ? "550 Rejected" : "250 2.1.5 Ok") },
    "mailbox_not_found",
  ],
  ["refuses us at the banner", { banner: always("554 5.7.1 Blocked by a blocklist") }, "smtp_blocked"],
  [
    "refuses us at EHLO",
    { command: (line) => (line.startsWith("EHLO") ? "550 5.7.1 Go away" : undefined) },
    "smtp_blocked",
  ],
  ["refuses us at RCPT", { rcpt: always("554 5.7.1 Client host blocked using a blocklist") }, "smtp_blocked"],
  ["is greylisting", { rcpt: always("450 4.2.0 Greylisted, try again later") }, "greylisted"],
  ["is greylisting at MAIL", { mail: always("450 4.2.0 Greylisted, try again later") }, "greylisted"],
  ["limits connections", { banner: always("421 4.7.0 Too many connections") }, "rate_limited"],
  ["has a temporary failure", { rcpt: always("451 4.3.0 Temporary lookup failure") }, "smtp_temporary_error"],
  ["says unknown for the time being", { rcpt: always("450 4.1.1 User unknown") }, "smtp_temporary_error"],
  ["refuses the sender", { mail: always("550 5.1.8 Sender address rejected: Domain not found") }, "sender_rejected"],
  ["demands TLS and has none", { mail: always("530 5.7.0 Must issue a STARTTLS command first") }, "tls_required"],
  [
    "demands TLS and breaks it",
    { mail: always("530 5.7.0 Must issue a STARTTLS command first"), starttls: "broken" },
    "tls_required",
  ],
  ["hangs up without a banner", { banner: () => HANG_UP }, "smtp_protocol_error"],
  ["resets at the banner", { banner: () => RESET }, "smtp_protocol_error"],
  ["hangs up at RCPT", { rcpt: () => HANG_UP }, "smtp_protocol_error"],
  ["speaks no SMTP", { banner: always("HTTP/1.1 400 Bad Request") }, "smtp_protocol_error"],
  [
    "says more than it was asked",
    { ehlo: STEPWISE, mail: () => ({ raw: "250 2.1.0 Ok\r\n250 2.1.5 Ok\r\n250 2.1.5 Ok\r\n" }) },
    "smtp_protocol_error",
  ],
];

describe("one mail host", () => {
  for (const [name, script, subStatus] of ONE_HOST)
    test(`${name}: ${subStatus}`, async () => {
      const concluded = await networkOf({ hosts: [{ name: "mx.x.example", script }] }).verify();
      expect(concluded.result.sub_status).toBe(subStatus);
      expect(evidenceSchema.safeParse(concluded.evidence).success).toBe(true);
    });

  test("that requires TLS and offers it is probed over TLS", async () => {
    const script: SmtpStubScript = {
      starttls: "works",
      mail: (_, { tls }) => (tls ? "250 2.1.0 Ok" : "530 5.7.0 Must issue a STARTTLS command first"),
      rcpt: onlyAda,
    };
    const { result, evidence } = await networkOf({ hosts: [{ name: "mx.x.example", script }] }).verify();
    expect(result.sub_status).toBe("mailbox_exists");
    expect(evidence.attempts[0]?.sessions[0]?.tls).toBe(true);
  });

  test("without SMTPUTF8 for an address that needs it", async () => {
    const script: SmtpStubScript = { ehlo: ["PIPELINING"] };
    const { result, evidence } = await networkOf({ hosts: [{ name: "mx.x.example", script }] }).verify("ädä@x.example");
    expect(result.sub_status).toBe("smtputf8_unsupported");
    expect(evidence.conclusion?.because).toContain("does not offer SMTPUTF8");
  });

  test("with SMTPUTF8 is probed for the address as it is", async () => {
    const rcpt: SmtpStubScript["rcpt"] = (address) => (address === "ädä@x.example" ? "250 2.1.5 Ok" : UNKNOWN);
    const network = networkOf({ hosts: [{ name: "mx.x.example", script: { rcpt } }] });
    expect((await network.verify("ädä@x.example")).result.sub_status).toBe("mailbox_exists");
  });

  test("that refuses the parameter SMTPUTF8 it had offered", async () => {
    const mail: SmtpStubScript["mail"] = () => "555 5.5.4 Unsupported option: SMTPUTF8";
    const network = networkOf({ hosts: [{ name: "mx.x.example", script: { mail } }] });
    expect((await network.verify("ädä@x.example")).result.sub_status).toBe("smtputf8_unsupported");
  });

  test("of an unverifiable provider", async () => {
    for (const rcpt of [everybody, always(UNKNOWN)]) {
      const network = networkOf({ hosts: [{ name: "mta5.am0.yahoodns.net", script: { rcpt } }] });
      expect((await network.verify()).result.sub_status).toBe("unverifiable_provider");
    }
  });

  test("that stops responding: ends by its deadline, free only if nothing was received", async () => {
    const rows: ReadonlyArray<readonly [SmtpStubScript, string, number]> = [
      [{ banner: () => SILENCE }, "", 1],
      [{ rcpt: () => SILENCE }, "RCPT", 2],
    ];
    for (const [script, line, times] of rows) {
      const network = networkOf({ hosts: [{ name: "mx.x.example", script }] });
      const concluded = network.verify();
      const stub = network.stub("mx.x.example");
      await (line === "" ? stub.opened() : stub.received(line, times));
      await network.clock.advance(NETWORK_REPLY_TIMEOUT_MS);
      const { result, chargeable } = await concluded;
      expect([result.sub_status, chargeable]).toEqual(["smtp_timeout", false]);
    }
  });
});

describe("the random recipient", () => {
  test("comes second, differs from the submitted one and belongs to its domain", async () => {
    const network = networkOf({ hosts: [{ name: "mx.x.example", script: { rcpt: onlyAda } }] });
    const { evidence } = await network.verify("Ada@X.Example");
    const lines = network.stub("mx.x.example").sessions[0]?.lines.filter((line) => line.startsWith("RCPT"));
    expect(lines).toEqual(["RCPT TO:<Ada@x.example>", `RCPT TO:<${evidence.random_recipient}>`]);
    expect(evidence.random_recipient).toMatch(/^[a-z]+\.[a-z]+\d{5}@x\.example$/);
  });

  test("is not probed by a server without pipelining when the first reply decides", async () => {
    const script = { rcpt: always(UNKNOWN), ehlo: STEPWISE };
    const network = networkOf({ hosts: [{ name: "mx.x.example", script }] });
    await network.verify();
    expect(rcptsOf(network.stub("mx.x.example").sessions[0]?.lines)).toEqual(["ada"]);
  });

  for (const ehlo of [["PIPELINING"], STEPWISE])
    test(`is probed alone, on the same connection, at a server that accepts one recipient (${ehlo[0]})`, async () => {
      let inThisMail = 0;
      const script: SmtpStubScript = {
        ehlo,
        mail: () => {
          inThisMail = 0;
          return "250 2.1.0 Ok";
        },
        rcpt: (address) => {
          inThisMail++;
          if (inThisMail > 1) return "452 4.5.3 Too many recipients";
          return address === "ada@x.example" ? "250 2.1.5 Ok" : UNKNOWN;
        },
      };
      const network = networkOf({ hosts: [{ name: "mx.x.example", script }] });
      const { result, evidence } = await network.verify();
      expect([result.sub_status, result.signals.catch_all]).toEqual(["mailbox_exists", "pass"]);
      expect(evidence.attempts[0]?.sessions.map(({ connection }) => connection)).toEqual(["new", "reused"]);
      expect(network.stub("mx.x.example").sessions.length).toBe(1);
    });

  test("that is probed alone without a reply leaves it open", async () => {
    let mails = 0;
    const script: SmtpStubScript = {
      mail: () => (++mails > 1 ? HANG_UP : "250 2.1.0 Ok"),
      rcpt: (_, nth) => (nth === 0 ? "250 2.1.5 Ok" : "452 4.5.3 Too many recipients"),
    };
    const { result } = await networkOf({ hosts: [{ name: "mx.x.example", script }] }).verify();
    expect([result.sub_status, result.signals.catch_all, result.confidence]).toEqual(["mailbox_exists", "unknown", 70]);
  });

  test.each(["450 4.2.0 Greylisted", "554 5.7.1 Client host blocked using a blocklist"])(
    "refused with %p says nothing about catch-all",
    async (line) => {
      const script: SmtpStubScript = { rcpt: (_, nth) => (nth === 0 ? "250 2.1.5 Ok" : line) };
      const { result } = await networkOf({ hosts: [{ name: "mx.x.example", script }] }).verify();
      expect([result.sub_status, result.signals.catch_all]).toEqual(["mailbox_exists", "unknown"]);
    },
  );
});

test("a transcript has the opening and the lines of this probe only", async () => {
  const network = networkOf({
    hosts: [{ name: "mx.x.example", script: { rcpt: onlyAda } }],
    limits: { connectionsPerHostMax: 1 },
  });
  const [ada, bob] = await Promise.all([network.verify("ada@x.example"), network.verify("bob@x.example")]);
  const linesOf = ({ evidence }: ConcludedVerification) =>
    evidence.attempts[0]?.sessions[0]?.transcript.map(({ text }) => text) ?? [];
  expect(bob.evidence.attempts[0]?.sessions[0]?.connection).toBe("reused");
  expect(linesOf(ada).some((text) => text.includes("bob@"))).toBe(false);
  expect(linesOf(bob).some((text) => text.includes("ada@"))).toBe(false);
  for (const concluded of [ada, bob]) {
    expect(linesOf(concluded)[0]).toBe("220 stub.example ESMTP");
    expect(linesOf(concluded)).toContain("EHLO probe.example");
  }
  expect([ada.result.sub_status, bob.result.sub_status]).toEqual(["mailbox_exists", "mailbox_not_found"]);
});

test("a random recipient that gets no reply, beside the other and alone, leaves it unknown whether every one is accepted", async () => {
  const script: SmtpStubScript = { rcpt: (to) => (to === ADA ? CLOSING : HANG_UP) };
  const network = networkOf({ hosts: [{ name: "mx.x.example", script }] });
  const { result } = await network.verify();
  expect(result).toMatchObject({ sub_status: "mailbox_exists", confidence: 70, signals: { catch_all: "unknown" } });
  expect(network.stub("mx.x.example").sessions).toHaveLength(2);
});
