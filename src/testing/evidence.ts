import { parseReply } from "../foundation/net/smtp-reply.ts";
import type { DomainEvidence, Evidence, ProbeFinding, ReplyEvidence } from "../verify/evidence.ts";
import { VerificationEngine } from "../verify/engine.ts";
import { TEST_PLATFORM } from "../verify/test-platform.ts";
import { createTestClock } from "./clock.ts";
import { readReply, type ReplyStage } from "../verify/replies.ts";

/** A reply as evidence, read by the real table: `replyEvidenceOf("rcpt", "submitted", "550 5.1.1 User unknown")`. */
export const replyEvidenceOf = (stage: ReplyStage, about: ReplyEvidence["about"], line: string): ReplyEvidence => {
  const reply = parseReply(line);
  if (!reply.ok) throw new Error(`not a reply: ${line}`);
  const { code, enhanced, text } = reply.value;
  const { reading, rule, retryAfterS } = readReply(reply.value, stage);
  return { stage, about, code, enhanced, text, reading, rule, retry_after_s: retryAfterS ?? null };
};

/** The finding at a host; default: it accepts the recipient and no other. */
export const findingWith = (parts: Partial<ProbeFinding> = {}): ProbeFinding => ({
  reading: "accepted",
  host: "mx.x.example",
  stage: "rcpt",
  rule: "accepted-2xx",
  reply: "250 2.1.5 Ok",
  catch_all: parts.reading === undefined || parts.reading === "accepted" ? "no" : "skipped",
  catch_all_age_s: null,
  positive_control: null,
  retryable: false,
  retry_hint_s: null,
  heard: true,
  ...parts,
});

/** A domain; default: with one mail host. */
export const domainWith = (parts: Partial<DomainEvidence> = {}): DomainEvidence => ({
  name: "x.example",
  outcome: "mail_hosts",
  implicit_mx: false,
  unverifiable_provider: null,
  hosts: [
    {
      host: "mx.x.example",
      preference: 10,
      addresses: [{ address: "192.0.2.25", allowed: true }],
      lookup_failed: false,
    },
  ],
  dns_queries: [],
  ...parts,
});

export interface EvidenceParts {
  readonly address?: Partial<Evidence["address"]>;
  readonly domain?: Partial<DomainEvidence> | null;
  /** One attempt for each. */
  readonly findings?: readonly ProbeFinding[];
  readonly toxic?: string | null;
  readonly dnsbl?: Evidence["dnsbl"];
  readonly bounce?: Evidence["bounce"];
}

/** The evidence of an address; default: it exists, and everything responded. */
export const evidenceWith = ({
  address,
  domain,
  findings,
  toxic,
  dnsbl,
  bounce = null,
}: EvidenceParts = {}): Evidence => ({
  address: {
    submitted: "Ada@X.example",
    normalized_email: "ada@x.example",
    read_as: null,
    problem: null,
    suggestion: null,
    role_account: null,
    disposable: null,
    ...address,
  },
  domain: domain === null ? null : domainWith(domain),
  toxic: { entry: toxic ?? null },
  bounce,
  dnsbl: dnsbl === undefined ? { outcome: "clean", listings: [] } : dnsbl,
  random_recipient: "anna.lindqvist12345@x.example",
  attempts: (findings ?? [findingWith()]).map((finding, index) => ({
    number: index + 1,
    started_at: "2026-01-01T00:00:00.000Z",
    finished_at: "2026-01-01T00:00:01.000Z",
    sessions: [],
    finding,
  })),
  retries: [],
  conclusion: null,
});

/** The engine of test keys. */
export const testEngine = new VerificationEngine(TEST_PLATFORM, createTestClock());

/** The evidence that a test key gets, with its conclusion. */
export const testKeyEvidence = (email: string): Promise<Evidence> => testEngine.reproduce(testEngine.begin(email));
