import { z } from "zod";
import fixtures from "../../fixtures/test-keys.json" with { type: "json" };
import { parseReply } from "../net/smtp-reply.ts";
import { beginEvidence } from "./engine.ts";
import type { Attempt, DomainEvidence, Evidence, ProbeFinding, ReplyEvidence } from "./evidence.ts";
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
type Outcome = z.infer<typeof outcomeSchema>;

const table = z
  .strictObject({
    verified_at: z.iso.datetime({ precision: 3 }),
    outcomes: z.record(z.enum(SUB_STATUSES), outcomeSchema),
    delayed: z.record(z.string(), z.strictObject({ outcome: z.enum(SUB_STATUSES), after_ms: z.int().positive() })),
  })
  .parse(fixtures);

/** When every check with a test key was finished. */
export const TEST_VERIFIED_AT = table.verified_at;

const HOST = "mx.test-key.example";

const replyAt = (stage: "mail" | "rcpt", about: ReplyEvidence["about"], text: string | undefined): ReplyEvidence[] => {
  const reply = text === undefined ? null : parseReply(text);
  if (reply === null || !reply.ok) return [];
  const { code, enhanced, text: words } = reply.value;
  const { reading, rule, retryAfterS } = readReply(reply.value, stage);
  return [{ stage, about, code, enhanced, text: words, reading, rule, retry_after_s: retryAfterS ?? null }];
};

const findingOf = (outcome: Outcome, replies: readonly ReplyEvidence[]): ProbeFinding => {
  if (outcome.internal) return { ...mostTelling([]), reading: "internal" };
  const settled = findingOfReplies(HOST, replies);
  if (settled !== null) return settled;
  const kind = outcome.failure ?? "timeout";
  return findingOfFailure(HOST, replies, {
    kind,
    stage: "banner",
    receivedAnything: kind === "garbage" || kind === "smtputf8_not_offered",
  });
};

const attemptOf = (outcome: Outcome): Attempt => {
  const replies = [
    ...replyAt("mail", "us", outcome.mail),
    ...replyAt("rcpt", "submitted", outcome.rcpt),
    ...replyAt("rcpt", "random", outcome.random),
  ];
  const dialogue = {
    host: HOST,
    address: "192.0.2.25",
    port: 25,
    started_at: TEST_VERIFIED_AT,
    exit: "test key",
    remembered_since: null,
    tls: false,
    failure: null,
  };
  return {
    number: 1,
    started_at: TEST_VERIFIED_AT,
    finished_at: TEST_VERIFIED_AT,
    dialogues: outcome.internal ? [] : [{ ...dialogue, connection: "new", replies, transcript: [] }],
    finding: findingOf(outcome, replies),
  };
};

/** The replies of an outcome are read once. */
const attempts = new Map<Outcome, Attempt>();
const attemptFor = (outcome: Outcome): Attempt => {
  const attempt = attempts.get(outcome) ?? attemptOf(outcome);
  attempts.set(outcome, attempt);
  return attempt;
};

const domainOf = (outcome: Outcome, name: string): DomainEvidence => ({
  name,
  outcome: outcome.domain ?? "mail_hosts",
  implicit_mx: false,
  unverifiable_provider: outcome.unverifiable ? "The test provider" : null,
  hosts:
    outcome.domain === undefined
      ? [{ host: HOST, preference: 10, addresses: [{ address: "192.0.2.25", allowed: true }], lookup_failed: false }]
      : [],
  questions: [],
});

/** The local part up to any `+`, as a trigger: `-` may stand for `_`. */
const triggerOf = (normalizedEmail: string): string =>
  (normalizedEmail.slice(0, normalizedEmail.lastIndexOf("@")).split("+")[0] ?? "").replaceAll("-", "_");

/** What a test key makes of an address: the sub_status, and how long after the call it is known. */
export const planTestCheck = (evidence: Evidence): { readonly outcome: SubStatus; readonly afterMs: number } => {
  if (evidence.address.problem !== null) return { outcome: "invalid_syntax", afterMs: 0 };
  const trigger = triggerOf(evidence.address.normalized_email);
  const delayed = Object.hasOwn(table.delayed, trigger) ? table.delayed[trigger] : undefined;
  if (delayed !== undefined) return { outcome: delayed.outcome, afterMs: delayed.after_ms };
  const named = SUB_STATUSES.find((subStatus) => subStatus === trigger);
  return { outcome: named ?? "mailbox_exists", afterMs: 0 };
};

/**
 * The evidence of a check with a test key (contract §3): made up from the table in `fixtures/`, without any network, and
 * the same at every call. The verdict is then drawn from it as from any other. `begun` spares reading the text again.
 */
export const testEvidence = (submitted: string, begun = beginEvidence(submitted)): Evidence => {
  if (begun.address.problem !== null) return begun;
  const outcome = table.outcomes[planTestCheck(begun).outcome];
  const trigger = triggerOf(begun.address.normalized_email);
  const address = {
    ...begun.address,
    problem: outcome.problem ?? null,
    role_account: outcome.role_account ? trigger : null,
    disposable: outcome.disposable ? "the test key's table" : null,
  };
  if (outcome.problem !== undefined) return { ...begun, address };
  const name = begun.address.normalized_email.slice(begun.address.normalized_email.lastIndexOf("@") + 1);
  const listings = outcome.dnsbl ? [{ listing: "test-list", subject: name }] : [];
  return {
    ...begun,
    address,
    domain: domainOf(outcome, name),
    toxic: { entry: outcome.toxic ? begun.address.normalized_email : null },
    dnsbl: { outcome: outcome.dnsbl ? "listed" : "clean", listings },
    attempts: outcome.domain === undefined ? [attemptFor(outcome)] : [],
  };
};
