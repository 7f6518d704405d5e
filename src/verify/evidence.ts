import { flagField, nullableText, nullableTime, textField, timeField } from "../foundation/http/schema-fields.ts";
import { z } from "zod";
import { REPLY_READINGS, REPLY_STAGES } from "./reply-rules/signs.ts";
import { SUB_STATUSES, VERDICTS } from "./result.ts";

const count = (description: string) => z.number().meta({ description });
const countOrNull = (description: string) => z.number().nullable().meta({ description });

const addressEvidence = z.object({
  submitted: textField("The address as it was submitted."),
  normalized_email: textField("The address in normal form; the submitted text when it is not an address."),
  read_as: nullableText(
    "The address extracted from a longer text (`Anna <anna@example.com>`); null when the text is the address.",
  ).default(null),
  problem: nullableText("Why the text is not an address; null when it is one."),
  suggestion: nullableText("The address that was probably meant; null when there is none."),
  role_account: nullableText("The matching entry of the list of role accounts; null when none matches."),
  disposable: nullableText("The matching entry of the list of disposable domains; null when none matches."),
});

const dnsQuery = z.object({
  name: textField("The name that was queried."),
  type: textField("The record type that was queried."),
  outcome: textField("`response`, `no_data`, `nxdomain`, or what went wrong."),
  records: z.array(z.string()).meta({ description: "The records of the response." }),
  ttl_s: count("How long the response may be cached, in seconds."),
  server: nullableText("The name server that responded, or the last one tried; null when no query was sent."),
  from_cache: flagField("Whether the response came from the cache of this service."),
  elapsed_ms: count("How long the query took, in milliseconds."),
});

const hostAddress = z.object({
  address: textField("The IP address."),
  allowed: flagField("Whether connections to it are allowed: it is public, or in an allowed network."),
});

const mailHost = z.object({
  host: textField("The name of the mail host."),
  preference: count("Its MX preference; lower comes first."),
  addresses: z.array(hostAddress).meta({ description: "Its IP addresses." }),
  lookup_failed: flagField("Whether a lookup of its addresses failed, so that `addresses` may be incomplete."),
});

const domainEvidence = z.object({
  name: textField("The domain of the address."),
  outcome: z
    .enum(["mail_hosts", "nxdomain", "no_mail_server", "null_mx", "unroutable", "dns_error", "local_failure"])
    .meta({
      description:
        "`unroutable`: no mail host has an address that connections are allowed to. `dns_error`: no usable DNS response. `local_failure`: this service could not send its queries.",
    }),
  implicit_mx: flagField("There is no MX record: the domain itself is the mail host (RFC 5321 §5.1)."),
  unverifiable_provider: nullableText(
    "The provider, if its servers accept or refuse every recipient, so that no reply is conclusive; else null.",
  ),
  hosts: z.array(mailHost).meta({ description: "The mail hosts." }),
  dns_queries: z.array(dnsQuery).meta({ description: "The DNS queries." }),
});

const replyEvidence = z.object({
  stage: z.enum(REPLY_STAGES).meta({ description: "The command that the reply is to; `banner` is the greeting." }),
  about: z.enum(["submitted", "random", "control", "us"]).meta({
    description:
      "The subject of the reply: the submitted address, a random one of its domain, postmaster at its domain (`control`), or this service.",
  }),
  code: count("The reply code."),
  enhanced: nullableText("The enhanced status code (RFC 3463); null when there is none."),
  text: textField("The text of the reply."),
  reading: z.enum(REPLY_READINGS).meta({ description: "What the reply means for the verification." }),
  rule: textField("The rule that matched the reply."),
  retry_after_s: countOrNull("The wait that the server requested, in seconds; null when it requested none."),
});

const sessionEvidence = z.object({
  host: textField("The name of the mail host."),
  address: textField("The IP address that was connected to."),
  port: count("The port that was connected to."),
  started_at: timeField("When the session, or the probe in an open session, began."),
  egress: textField("The egress: `direct`, a local address, or a proxy."),
  connection: z
    .enum(["new", "reused", "none"])
    .meta({ description: "Whether the probe used a new connection or an open one; `none`: none was opened." }),
  cooldown_since: nullableTime(
    "Set when the host was not probed, because it kept timing out: since when it has been on cooldown.",
  ),
  tls: flagField("Whether the session was encrypted."),
  failure: z
    .object({ stage: textField("The stage of the session at which it ended."), kind: textField("What went wrong.") })
    .nullable()
    .meta({ description: "Why the session ended before the reply to the probe; null when there was a reply." }),
  replies: z
    .array(replyEvidence)
    .meta({ description: "The replies that say something about the address or about us." }),
  transcript: z
    .array(
      z.object({
        at_ms: count("Milliseconds since the connection was opened."),
        from: z.enum(["us", "server"]).meta({ description: "Who sent the line." }),
        text: textField("The line."),
      }),
    )
    .meta({ description: "The SMTP transcript." }),
});

const probeFinding = z
  .object({
    reading: z
      .enum([...REPLY_READINGS, "unreachable", "timeout", "internal"])
      .meta({ description: "What the decisive reply means, or why there was none." }),
    host: nullableText("The mail host that decided; null when none did."),
    stage: nullableText("The stage of the session at which it was decided."),
    rule: nullableText("The rule that matched the reply, or the kind of failure."),
    reply: nullableText("The decisive reply; null when there was none."),
    catch_all: z
      .enum(["yes", "no", "unknown", "skipped"])
      .meta({ description: "Whether a random recipient of the domain is accepted too; `skipped`: it did not matter." }),
    catch_all_age_s: countOrNull(
      "How long ago the random recipient was probed, when that was for another address; else null.",
    ),
    positive_control: z
      .object({
        recipient: z.enum(["postmaster", "another"]).meta({
          description: "Postmaster at the domain (RFC 5321 §4.5.1), or another recipient that was verified.",
        }),
        age_s: count("How long before the refusal it was accepted, in seconds; 0 when in the same attempt."),
      })
      .nullable()
      .default(null)
      .meta({
        description:
          "The recipient of the domain that the mail host accepted from the same egress, so that a refusal such as `550 5.7.1 No such user` is about the mailbox, not about this service; null when none was needed or found.",
      }),
    retryable: flagField(
      "Whether a later attempt may get another reply: a temporary refusal of the recipient or, where that was accepted, of the random one.",
    ),
    retry_hint_s: countOrNull("The wait that the server requested, in seconds; null when it requested none."),
    heard: flagField("Whether any mail host responded."),
  })
  .meta({ description: "What the attempt found out about the mailbox." });

const attempt = z.object({
  number: count("Number of the attempt, from 1."),
  started_at: timeField("When the attempt began."),
  finished_at: timeField("When the attempt ended."),
  sessions: z.array(sessionEvidence).meta({ description: "The SMTP sessions." }),
  finding: probeFinding,
});

const plannedRetry = z.object({
  reason: textField("Why another attempt is made."),
  planned_at: timeField("When it was planned."),
  due_at: timeField("When it is due."),
  waited_for: z
    .enum(["schedule", "server_hint"])
    .meta({ description: "Whether the wait follows the schedule or the server's own hint." }),
});

const dnsbl = z.object({
  outcome: z.enum(["clean", "listed", "unknown"]).meta({ description: "`unknown`: no blocklist responded in time." }),
  listings: z
    .array(
      z.object({ listing: textField("The blocklist."), subject: textField("The domain or IP address that it lists.") }),
    )
    .meta({ description: "What is listed." }),
});

const bounceEvidence = z.object({
  source: textField("Who reported it, such as `postfix` or `ses`."),
  bounced_at: timeField("When the message bounced."),
  status: textField("The enhanced status code (RFC 3463)."),
  diagnostic: nullableText("What the server said; null when it is not known."),
});

const conclusion = z.object({
  verdict: z.enum(VERDICTS).meta({ description: "The verdict." }),
  sub_status: z.enum(SUB_STATUSES).meta({ description: "The reason for the verdict." }),
  quality_score: count("How good the address is to mail, from 0 to 100."),
  confidence: count("How certain the verdict is, from 0 to 100."),
  because: textField("Which evidence decided, in one sentence."),
});

/**
 * Everything that a verdict is based on, in the order in which it was collected. Stored after every attempt, and returned as
 * it is by `GET /v1/email-verifications/{id}/evidence`; the verdict is a pure function of it.
 */
export const evidenceSchema = z.object({
  address: addressEvidence.meta({
    description: "What the submitted text and the lists of addresses and domains show.",
  }),
  domain: domainEvidence
    .nullable()
    .meta({ description: "The DNS responses about the domain; null before it was queried." }),
  toxic: z
    .object({ entry: nullableText("The matching entry; null when none matches.") })
    .nullable()
    .meta({ description: "The operator's suppression list; null when there is none." }),
  bounce: bounceEvidence
    .nullable()
    .default(null)
    .meta({ description: "The last hard bounce that was reported for the address; null when none counts." }),
  dnsbl: dnsbl.nullable().meta({ description: "DNS blocklists; null when they were not queried." }),
  random_recipient: nullableText(
    "The recipient that does not exist, probed beside the submitted one. The same at each retry, so that greylisting accepts it too.",
  ),
  attempts: z.array(attempt).meta({ description: "The attempts at the mail hosts." }),
  retries: z.array(plannedRetry).meta({ description: "The retries that were planned." }),
  conclusion: conclusion.nullable().meta({ description: "The verdict; null while the verification is pending." }),
});

export type Evidence = z.infer<typeof evidenceSchema>;
export type DomainEvidence = z.infer<typeof domainEvidence>;
export type DnsQueryEvidence = z.infer<typeof dnsQuery>;
export type MailHost = z.infer<typeof mailHost>;
export type Attempt = z.infer<typeof attempt>;
export type SessionEvidence = z.infer<typeof sessionEvidence>;
export type ReplyEvidence = z.infer<typeof replyEvidence>;
export type ProbeFinding = z.infer<typeof probeFinding>;
export type PlannedRetry = z.infer<typeof plannedRetry>;
export type BounceEvidence = z.infer<typeof bounceEvidence>;
export type DnsblEvidence = z.infer<typeof dnsbl>;
