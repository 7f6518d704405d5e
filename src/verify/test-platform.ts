import { z } from "zod";
import fixtures from "../../fixtures/test-keys.json" with { type: "json" };
import type { Address } from "../foundation/mail/address.ts";
import { parseReply } from "../foundation/net/smtp-reply.ts";
import type { VerificationPlatform } from "./engine.ts";
import type { Attempt, DomainEvidence, ProbeFinding, ReplyEvidence } from "./evidence.ts";
import { findingOfFailure, findingOfReplies, mostTelling } from "./findings.ts";
import { readReply } from "./replies.ts";
import { SUB_STATUSES, type SubStatus } from "./result.ts";

const outcomeSchema = z.strictObject({
  problem: z.string().optional(),
  domain: z.enum(["nxdomain", "no_mail_server", "null_mx", "unroutable", "dns_error"]).optional(),
  mail: z.string().optional(),
  rcpt: z.string().optional(),
  random: z.string().optional(),
  failure: z.enum(["smtputf8_not_offered", "refused_or_unreachable", "timeout", "garbage"]).optional(),
  disposable: z.literal(true).optional(),
  role_account: z.literal(true).optional(),
  toxic: z.literal(true).optional(),
  dnsbl: z.literal(true).optional(),
  unverifiable: z.literal(true).optional(),
  internal: z.literal(true).optional(),
});
type SimulatedOutcome = z.infer<typeof outcomeSchema>;

const table = z
  .strictObject({
    verified_at: z.iso.datetime({ precision: 3 }),
    outcomes: z.record(z.enum(SUB_STATUSES), outcomeSchema),
    delayed: z.record(z.string(), z.strictObject({ outcome: z.enum(SUB_STATUSES), after_ms: z.int().positive() })),
  })
  .parse(fixtures);

const HOST = { host: "mx.test-key.example", address: "192.0.2.25" };

/** The local part up to any `+` selects the outcome; `-` may stand for `_`. */
const triggerOf = (normalizedEmail: string): string => {
  const local = normalizedEmail.slice(0, normalizedEmail.lastIndexOf("@"));
  const plus = local.indexOf("+");
  return (plus === -1 ? local : local.slice(0, plus)).replaceAll("-", "_");
};

/** What a test key gets for an address. */
interface SimulatedResult {
  readonly subStatus: SubStatus;
  /** How long after the request it is available. */
  readonly afterMs: number;
}

/** By trigger: a request looks several times. */
const SIMULATED: ReadonlyMap<string, SimulatedResult> = new Map([
  ...SUB_STATUSES.map((subStatus) => [subStatus, { subStatus, afterMs: 0 }] as const),
  ...Object.entries(table.delayed).map(
    ([trigger, { outcome, after_ms }]) => [trigger, { subStatus: outcome, afterMs: after_ms }] as const,
  ),
]);
const EXISTS: SimulatedResult = { subStatus: "mailbox_exists", afterMs: 0 };

export const simulatedResult = (normalizedEmail: string): SimulatedResult =>
  SIMULATED.get(triggerOf(normalizedEmail)) ?? EXISTS;

const outcomeFor = ({ normalized }: Address): SimulatedOutcome => table.outcomes[simulatedResult(normalized).subStatus];

const replyAt = (stage: "mail" | "rcpt", about: ReplyEvidence["about"], text: string | undefined): ReplyEvidence[] => {
  const reply = text === undefined ? null : parseReply(text);
  if (reply === null || !reply.ok) return [];
  const { code, enhanced, text: words } = reply.value;
  const { reading, rule, retryAfterS } = readReply(reply.value, stage);
  return [{ stage, about, code, enhanced, text: words, reading, rule, retry_after_s: retryAfterS ?? null }];
};

const findingOf = (outcome: SimulatedOutcome, replies: readonly ReplyEvidence[]): ProbeFinding => {
  if (outcome.internal) return { ...mostTelling([]), reading: "internal" };
  const settled = findingOfReplies(HOST.host, replies);
  if (settled !== null) return settled;
  const kind = outcome.failure ?? "timeout";
  const receivedAnything = kind === "garbage" || kind === "smtputf8_not_offered";
  return findingOfFailure(HOST.host, replies, { kind, stage: "banner", receivedAnything });
};

const simulatedAttempt = (outcome: SimulatedOutcome): Attempt => {
  const replies = [
    ...replyAt("mail", "us", outcome.mail),
    ...replyAt("rcpt", "submitted", outcome.rcpt),
    ...replyAt("rcpt", "random", outcome.random),
  ];
  const session = {
    ...HOST,
    port: 25,
    started_at: table.verified_at,
    egress: "test key",
    connection: "new" as const,
    cooldown_since: null,
    tls: false,
    failure: null,
    replies,
    transcript: [],
  };
  return {
    number: 1,
    started_at: table.verified_at,
    finished_at: table.verified_at,
    sessions: outcome.internal ? [] : [session],
    finding: findingOf(outcome, replies),
  };
};

/** The replies of an outcome are parsed once. */
const attempts = new Map<SimulatedOutcome, Attempt>();
const attemptFor = (outcome: SimulatedOutcome): Attempt => {
  const attempt = attempts.get(outcome) ?? simulatedAttempt(outcome);
  attempts.set(outcome, attempt);
  return attempt;
};

const simulatedDomain = (outcome: SimulatedOutcome, name: string): DomainEvidence => {
  const { host, address } = HOST;
  const mailHost = { host, preference: 10, addresses: [{ address, allowed: true }], lookup_failed: false };
  return {
    name,
    outcome: outcome.domain ?? "mail_hosts",
    implicit_mx: false,
    dns_queries: [],
    unverifiable_provider: outcome.unverifiable ? "The test provider" : null,
    hosts: outcome.domain === undefined ? [mailHost] : [],
  };
};

/**
 * The platform of test keys (contract §3): lists, DNS and mail hosts that answer as the table in `fixtures/test-keys.json`
 * says, by the local part of the address. No network; the same results every time.
 */
export const TEST_PLATFORM: VerificationPlatform = {
  classify(address) {
    const { problem, role_account, disposable } = outcomeFor(address);
    return {
      problem: problem ?? null,
      role_account: role_account ? triggerOf(address.normalized) : null,
      disposable: disposable ? "the test key's table" : null,
    };
  },
  matchSuppression(normalizedEmail) {
    return table.outcomes[simulatedResult(normalizedEmail).subStatus].toxic ? normalizedEmail : null;
  },
  lookUpDomain: async (address) => simulatedDomain(outcomeFor(address), address.domain),
  probeMailbox: async ({ address }) => ({ attempt: attemptFor(outcomeFor(address)), randomRecipient: null }),
  async checkBlocklists({ name: subject }, address) {
    if (!outcomeFor(address).dnsbl) return { outcome: "clean", listings: [] };
    return { outcome: "listed", listings: [{ listing: "test-list", subject }] };
  },
  retryWaitsS: [],
  judgeOutage: async () => "believed",
  simulation: {
    verifiedAt: table.verified_at,
    delayMs: ({ address }) => (address.problem === null ? simulatedResult(address.normalized_email).afterMs : 0),
  },
};
