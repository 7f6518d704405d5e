import { z } from "zod";
import { REPLY_READINGS, REPLY_STAGES } from "./reply-rules/rule.ts";
import { SUB_STATUSES, VERDICTS } from "./result.ts";

const time = z.iso.datetime({ precision: 3 });

const addressEvidence = z.object({
  submitted: z.string(),
  normalized_email: z.string(),
  /** The address that was read from the submitted text (`Anna <anna@example.com>`); null when it is the text itself. */
  read_as: z.string().nullable().default(null),
  /** Why it is not an address; null when it is one. */
  problem: z.string().nullable(),
  /** The address that was perhaps meant. */
  suggestion: z.string().nullable(),
  /** The entry of the list of role accounts that matched. */
  role_account: z.string().nullable(),
  /** The entry of the list of disposable domains that matched. */
  disposable: z.string().nullable(),
});

const dnsQuestion = z.object({
  name: z.string(),
  type: z.string(),
  outcome: z.string(),
  records: z.array(z.string()),
  ttl_s: z.number(),
  server: z.string().nullable(),
  from_cache: z.boolean(),
  elapsed_ms: z.number(),
});

const mailHost = z.object({
  host: z.string(),
  preference: z.number(),
  /** Its addresses, and whether each may be connected to (public, or in an allowed network). */
  addresses: z.array(z.object({ address: z.string(), allowed: z.boolean() })),
  /** The lookup of its addresses failed: no statement about whether it has any. */
  lookup_failed: z.boolean(),
});

const domainEvidence = z.object({
  name: z.string(),
  outcome: z.enum(["mail_hosts", "nxdomain", "no_mail_server", "null_mx", "unroutable", "dns_error", "local_failure"]),
  /** No MX record: the domain itself is the mail host (RFC 5321 §5.1). */
  implicit_mx: z.boolean(),
  /** Name of a provider whose servers accept or refuse every recipient. */
  unverifiable_provider: z.string().nullable(),
  hosts: z.array(mailHost),
  questions: z.array(dnsQuestion),
});

const replyEvidence = z.object({
  stage: z.enum(REPLY_STAGES),
  /** Whom the reply is about: the address that was submitted, a random one of its domain, or us. */
  about: z.enum(["submitted", "random", "us"]),
  code: z.number(),
  enhanced: z.string().nullable(),
  text: z.string(),
  reading: z.enum(REPLY_READINGS),
  /** The rule of the table of replies that read it. */
  rule: z.string(),
  /** The server's own word on when to come back. */
  retry_after_s: z.number().nullable(),
});

const dialogueEvidence = z.object({
  host: z.string(),
  address: z.string(),
  port: z.number(),
  started_at: time,
  /** The way out: `direct`, a local address, or a proxy. */
  exit: z.string(),
  connection: z.enum(["new", "reused", "none"]),
  /** The host was not asked: it has been silent since this time, and is left alone for a while. */
  remembered_since: time.nullable(),
  tls: z.boolean(),
  /** What ended the dialogue before its question was answered; null when it was answered. */
  failure: z.object({ stage: z.string(), kind: z.string() }).nullable(),
  replies: z.array(replyEvidence),
  transcript: z.array(z.object({ at_ms: z.number(), from: z.enum(["us", "server"]), text: z.string() })),
});

/** What an attempt found out about the mailbox. `unreachable` and `timeout` are what nobody said. */
const finding = z.object({
  reading: z.enum([...REPLY_READINGS, "unreachable", "timeout", "internal"]),
  host: z.string().nullable(),
  stage: z.string().nullable(),
  rule: z.string().nullable(),
  reply: z.string().nullable(),
  /** Whether a random recipient of the domain is accepted too. `skipped`: the question did not come up. */
  catch_all: z.enum(["yes", "no", "unknown", "skipped"]),
  /** How old the answer about the random recipient is, when it was remembered from another check; else null. */
  catch_all_age_s: z.number().nullable(),
  /** Worth asking again later: a temporary refusal. */
  retryable: z.boolean(),
  /** The server's own word on when to come back. */
  retry_hint_s: z.number().nullable(),
  /** Whether any server said anything at all. */
  heard: z.boolean(),
});

const attempt = z.object({
  number: z.number(),
  started_at: time,
  finished_at: time,
  dialogues: z.array(dialogueEvidence),
  finding,
});

const plannedRetry = z.object({
  reason: z.string(),
  planned_at: time,
  due_at: time,
  waited_for: z.enum(["schedule", "server_hint"]),
});

/** What DNS blocklists say of the domain and its mail hosts. */
const dnsbl = z.object({
  outcome: z.enum(["clean", "listed", "unknown"]),
  listings: z.array(z.object({ listing: z.string(), subject: z.string() })),
});

const conclusion = z.object({
  verdict: z.enum(VERDICTS),
  sub_status: z.enum(SUB_STATUSES),
  quality_score: z.number(),
  confidence: z.number(),
  /** One sentence: which evidence decided. */
  because: z.string(),
});

/**
 * Everything a verdict rests on, in the order it was found out. It is stored after every attempt and shown as it is by
 * `GET /v1/email-verifications/{id}/evidence`; the verdict is a pure function of it.
 */
export const evidenceSchema = z.object({
  address: addressEvidence,
  domain: domainEvidence.nullable(),
  /** The operator's own list of addresses and domains not to be mailed; null when it was not asked. */
  toxic: z.object({ entry: z.string().nullable() }).nullable(),
  dnsbl: dnsbl.nullable(),
  /** The recipient that nobody has, asked beside the submitted one. The same at each retry, so that greylisting passes it too. */
  random_recipient: z.string().nullable(),
  attempts: z.array(attempt),
  retries: z.array(plannedRetry),
  conclusion: conclusion.nullable(),
});

export type Evidence = z.infer<typeof evidenceSchema>;
export type DomainEvidence = z.infer<typeof domainEvidence>;
export type DnsQueryEvidence = z.infer<typeof dnsQuestion>;
export type MailHost = z.infer<typeof mailHost>;
export type Attempt = z.infer<typeof attempt>;
export type SessionEvidence = z.infer<typeof dialogueEvidence>;
export type ReplyEvidence = z.infer<typeof replyEvidence>;
export type ProbeFinding = z.infer<typeof finding>;
export type PlannedRetry = z.infer<typeof plannedRetry>;
export type DnsblEvidence = z.infer<typeof dnsbl>;
export type ConclusionEvidence = z.infer<typeof conclusion>;
