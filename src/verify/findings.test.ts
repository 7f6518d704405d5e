import { describe, expect, test } from "bun:test";
import { findingWith, replyEvidenceOf } from "../testing/evidence.ts";
import type { ProbeFinding } from "./evidence.ts";
import { findingOfFailure, findingOfReplies, mostTelling } from "./findings.ts";
import type { ReplyReading } from "./replies.ts";

const HOST = "mx.x.example";

/** A reply that the table reads so. */
const LINES: Readonly<Record<ReplyReading, string>> = {
  accepted: "250 2.1.5 Ok",
  mailbox_not_found: "550 5.1.1 User unknown",
  mailbox_disabled: "550 5.2.1 Account disabled",
  mailbox_full: "452 4.2.2 Over quota",
  greylisted: "450 4.2.0 Greylisted, try again later",
  rate_limited: "452 4.5.3 Too many recipients",
  blocked: "554 5.7.1 Client host blocked using a blocklist",
  sender_rejected: "550 5.1.8 Sender address rejected",
  tls_required: "530 5.7.0 Must issue a STARTTLS command first",
  temporary: "451 4.3.0 Temporary lookup failure",
  null_mx: "556 5.1.10 Recipient address has null MX",
  smtputf8_unsupported: "553 5.6.7 Non-ASCII address not permitted",
  protocol_error: "503 5.5.1 Bad sequence of commands",
  ambiguous: "550 Rejected",
};
const ALL = Object.keys(LINES) as ReplyReading[];

const heard = (submitted: ReplyReading, random: ReplyReading | null): ProbeFinding => {
  const replies = [replyEvidenceOf("rcpt", "submitted", LINES[submitted])];
  if (random !== null) replies.push(replyEvidenceOf("rcpt", "random", LINES[random]));
  const finding = findingOfReplies(HOST, replies);
  if (finding === null) throw new Error("a reply to RCPT settles");
  return finding;
};

test("every line of this table reads as it says", () => {
  for (const reading of ALL) expect(replyEvidenceOf("rcpt", "submitted", LINES[reading]).reading).toBe(reading);
});

describe("an accepted recipient beside a random one that is", () => {
  const rows: Readonly<Record<ReplyReading, ProbeFinding["catch_all"]>> = {
    accepted: "yes",
    mailbox_not_found: "no",
    mailbox_disabled: "no",
    ambiguous: "no",
    mailbox_full: "unknown",
    greylisted: "unknown",
    rate_limited: "unknown",
    blocked: "unknown",
    sender_rejected: "unknown",
    tls_required: "unknown",
    temporary: "unknown",
    null_mx: "unknown",
    smtputf8_unsupported: "unknown",
    protocol_error: "unknown",
  };
  test.each(ALL)("%s", (random) => {
    const finding = heard("accepted", random);
    expect([finding.reading, finding.catch_all]).toEqual(["accepted", rows[random]]);
  });

  test("not asked", () => expect(heard("accepted", null).catch_all).toBe("unknown"));

  test.each(["550 Unable to verify recipient", "550 Internal server error"])(
    "refused because the server could not find out: %p",
    (line) => {
      const replies = [replyEvidenceOf("rcpt", "submitted", LINES.accepted), replyEvidenceOf("rcpt", "random", line)];
      expect(findingOfReplies(HOST, replies)).toMatchObject({ reading: "accepted", catch_all: "unknown" });
    },
  );

  test("refused for the time being, with words that decide nothing", () => {
    const replies = [
      replyEvidenceOf("rcpt", "submitted", LINES.accepted),
      { ...replyEvidenceOf("rcpt", "random", LINES.temporary), reading: "ambiguous" as const },
    ];
    expect(findingOfReplies(HOST, replies)?.catch_all).toBe("unknown");
  });

  test("refused beside another, and probed again alone: the decisive reply counts, in either order", () => {
    const submitted = replyEvidenceOf("rcpt", "submitted", LINES.accepted);
    const inCompany = replyEvidenceOf("rcpt", "random", LINES.rate_limited);
    for (const [alone, catchAll] of [
      ["accepted", "yes"],
      ["mailbox_not_found", "no"],
      ["ambiguous", "no"],
      ["greylisted", "unknown"],
    ] as const) {
      const again = replyEvidenceOf("rcpt", "random", LINES[alone]);
      expect(findingOfReplies(HOST, [submitted, inCompany, again])?.catch_all).toBe(catchAll);
    }
    for (const [alone, catchAll] of [
      ["accepted", "yes"],
      ["mailbox_not_found", "no"],
    ] as const) {
      const again = replyEvidenceOf("rcpt", "random", LINES[alone]);
      expect(findingOfReplies(HOST, [submitted, again, inCompany])?.catch_all).toBe(catchAll);
    }
  });
});

describe("an ambiguous refusal beside a random recipient that is", () => {
  for (const random of [...ALL, null]) {
    const settled = random === "accepted" ? "mailbox_not_found" : "ambiguous";
    test(`${random ?? "not asked"} means ${settled}`, () => {
      const finding = heard("ambiguous", random);
      expect([finding.reading, finding.catch_all]).toEqual([settled, random === "accepted" ? "yes" : "skipped"]);
    });
  }

  test.each([
    "552 5.2.3 Message length exceeds administrative limit",
    "554 Transaction failed",
    "550 5.1.1 Recipient not accepting messages from outside",
  ])("accepted settles nothing when the refusal names another reason: %p", (line) => {
    const replies = [replyEvidenceOf("rcpt", "submitted", line), replyEvidenceOf("rcpt", "random", LINES.accepted)];
    expect(findingOfReplies(HOST, replies)?.reading).not.toBe("mailbox_not_found");
  });
});

test("an ambiguous refusal for the time being settles nothing", () => {
  const submitted = { ...replyEvidenceOf("rcpt", "submitted", LINES.temporary), reading: "ambiguous" as const };
  expect(findingOfReplies(HOST, [submitted, replyEvidenceOf("rcpt", "random", LINES.accepted)])?.reading).toBe(
    "ambiguous",
  );
});

describe("a refusal is permanent from code 500 on, and a refusal from code 400 on", () => {
  const replyWith = (about: "submitted" | "random", code: number, reading: ReplyReading) => ({
    ...replyEvidenceOf("rcpt", about, LINES.ambiguous),
    ...{ code, reading },
  });

  test.each([
    [499, "unknown", "ambiguous", "temporary"],
    [500, "no", "mailbox_not_found", "mailbox_not_found"],
  ] as const)("%d", (code, catchAll, contrasted, no) => {
    const accepted = {
      submitted: replyWith("submitted", 250, "accepted"),
      random: replyWith("random", 250, "accepted"),
    };
    const of = (...replies: Parameters<typeof findingOfReplies>[1][number][]) => findingOfReplies(HOST, replies);
    expect(of(accepted.submitted, replyWith("random", code, "ambiguous"))?.catch_all).toBe(catchAll);
    expect(of(replyWith("submitted", code, "ambiguous"), accepted.random)?.reading).toBe(contrasted);
    expect(of(replyWith("submitted", code, "mailbox_not_found"))?.reading).toBe(no);
  });

  test.each([
    [399, null, "protocol_error"],
    [400, "temporary", "temporary"],
  ] as const)("%d", (code, settled, open) => {
    const mail = { ...replyEvidenceOf("mail", "us", LINES.temporary), code };
    const failure = { kind: "closed", stage: "mail", receivedAnything: true } as const;
    expect(findingOfReplies(HOST, [mail])?.reading ?? null).toBe(settled);
    expect(findingOfFailure(HOST, [mail], failure).reading).toBe(open);
  });
});

describe("every other reading stands by itself", () => {
  const others = ALL.filter((reading) => reading !== "accepted" && reading !== "ambiguous");
  for (const submitted of others)
    test(submitted, () => {
      for (const random of [...ALL, null]) {
        const finding = heard(submitted, random);
        const { reading, catch_all, retryable } = finding;
        expect([reading, catch_all, finding.heard]).toEqual([submitted, "skipped", true]);
        expect(retryable).toBe(["greylisted", "rate_limited", "temporary"].includes(submitted));
      }
    });
});

describe("a no that cannot be one does not count", () => {
  const asNo = (stage: "rcpt" | "mail" | "banner", line: string) => ({
    ...replyEvidenceOf(stage, stage === "rcpt" ? ("submitted" as const) : ("us" as const), line),
    reading: "mailbox_not_found" as const,
  });

  test("a temporary refusal is temporary", () => {
    expect(findingOfReplies(HOST, [asNo("rcpt", LINES.temporary)])).toMatchObject({
      reading: "temporary",
      retryable: true,
    });
  });

  test("a refusal of MAIL is not about the mailbox", () => {
    expect(findingOfReplies(HOST, [asNo("mail", LINES.blocked)])?.reading).toBe("blocked");
  });

  test("nor is one at the banner", () => {
    const failure = { kind: "reply", stage: "banner", receivedAnything: true } as const;
    expect(findingOfFailure(HOST, [asNo("banner", LINES.blocked)], failure).reading).toBe("blocked");
  });

  test("but MAIL with SMTPUTF8 refused is", () => {
    const reply = {
      ...replyEvidenceOf("mail", "us", "555 5.5.4 Unsupported option"),
      reading: "smtputf8_unsupported" as const,
    };
    expect(findingOfReplies(HOST, [reply])?.reading).toBe("smtputf8_unsupported");
  });
});

describe("a session that ended before RCPT", () => {
  const rows = [
    ["refused_or_unreachable", "unreachable"],
    ["connect_timeout", "unreachable"],
    ["address_not_allowed", "unreachable"],
    ["local_failure", "internal"],
    ["proxy_failed", "internal"],
    ["timeout", "timeout"],
    ["deadline", "timeout"],
    ["tls_failed", "tls_required"],
    ["smtputf8_not_offered", "smtputf8_unsupported"],
    ["closed", "protocol_error"],
    ["garbage", "protocol_error"],
  ] as const;
  test.each(rows)("%s reads as %s", (kind, reading) => {
    const finding = findingOfFailure(HOST, [], { kind, stage: "banner", receivedAnything: false });
    expect(finding).toMatchObject({ reading, host: HOST, rule: kind, reply: null, heard: false, retryable: false });
  });

  test("settles nothing", () => {
    expect(findingOfReplies(HOST, [])).toBeNull();
    expect(findingOfReplies(HOST, [replyEvidenceOf("banner", "us", "421 4.7.0 Too busy")])).toBeNull();
    expect(findingOfReplies(HOST, [replyEvidenceOf("mail", "us", "250 2.1.0 Ok")])).toBeNull();
  });

  test("with a refusal: that refusal counts, and its hint", () => {
    const busy = replyEvidenceOf("banner", "us", "421 4.7.0 Too many connections, try again in 90 seconds");
    const failure = { kind: "reply", stage: "banner", receivedAnything: true } as const;
    expect(findingOfFailure(HOST, [busy], failure)).toMatchObject({
      reading: "rate_limited",
      retryable: true,
      retry_hint_s: 90,
      stage: "banner",
    });
  });

  test("without a failure: the mail host responded, but violated the protocol", () => {
    expect(findingOfFailure(HOST, [], null)).toMatchObject({
      ...{ reading: "protocol_error", stage: null, rule: null, reply: null, heard: true },
    });
  });

  test("a failed TLS handshake counts more than the refusal that required it", () => {
    const demand = replyEvidenceOf("rcpt", "us", "454 4.7.0 TLS not available");
    const failure = { kind: "tls_failed", stage: "starttls", receivedAnything: true } as const;
    expect(findingOfFailure(HOST, [demand], failure).reading).toBe("tls_required");
  });
});

describe("of hosts that did not settle it", () => {
  const of = (...readings: ProbeFinding["reading"][]) =>
    mostTelling(
      readings.map((reading, at) => findingWith({ reading, host: `mx${at}`, heard: reading !== "unreachable" })),
    );

  const rows: ReadonlyArray<readonly [ProbeFinding["reading"][], ProbeFinding["reading"], string]> = [
    [["unreachable", "timeout"], "timeout", "mx1"],
    [["timeout", "unreachable"], "timeout", "mx0"],
    [["unreachable", "blocked"], "blocked", "mx1"],
    [["protocol_error", "unreachable"], "protocol_error", "mx0"],
    [["blocked", "rate_limited"], "rate_limited", "mx1"],
    [["blocked", "blocked"], "blocked", "mx0"],
    [["tls_required", "protocol_error"], "tls_required", "mx0"],
    [["internal", "unreachable"], "unreachable", "mx1"],
  ];
  test.each(rows)("%p: the most informative counts, %s of %s", (readings, reading, host) => {
    expect(of(...readings)).toMatchObject({ reading, host });
  });

  test("one host that responded makes the attempt `heard`", () => {
    expect(of("unreachable", "unreachable").heard).toBe(false);
    expect(
      mostTelling([findingWith({ reading: "timeout" }), findingWith({ reading: "unreachable", heard: false })]).heard,
    ).toBe(true);
  });

  test("without a host it is unreachable", () => {
    expect(mostTelling([])).toMatchObject({ reading: "unreachable", heard: false, retryable: false });
  });
});

test("a quoted reply is one line of bounded length", () => {
  const long = `550 5.1.1 User\r`.replace("\r", ` ${"unknown ".repeat(80)}`);
  const reply = findingOfReplies(HOST, [replyEvidenceOf("rcpt", "submitted", long.trim())])?.reply ?? "";
  expect(reply.length).toBe(300);
  expect(reply.startsWith("550 5.1.1 User unknown")).toBe(true);
});

test.each([
  ["550 Rejected", "550 Rejected"],
  ["550 5.1.1  User \tunknown ", "550 5.1.1 User unknown"],
  [`550 ${"x".repeat(296)}`, `550 ${"x".repeat(296)}`],
  [`550 ${"x".repeat(297)}`, `550 ${"x".repeat(295)}…`],
])("%p is quoted as %p", (line, quoted) => {
  expect(findingOfReplies(HOST, [replyEvidenceOf("rcpt", "submitted", line)])?.reply).toBe(quoted);
});

test("of hosts that say the same, one that may change its mind counts", () => {
  const forGood = findingWith({ reading: "blocked", host: "mx1.x.example", retryable: false });
  const forNow = findingWith({ reading: "blocked", host: "mx2.x.example", retryable: true });
  expect(mostTelling([forGood, forNow]).host).toBe("mx2.x.example");
  expect(mostTelling([findingWith({ reading: "greylisted", host: null, retryable: true }), forNow]).reading).toBe(
    "greylisted",
  );
});
