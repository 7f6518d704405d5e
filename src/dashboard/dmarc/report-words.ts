import type { Kind } from "../components/inline.tsx";
import type { IngestionView } from "../../dmarc/reports/ingest/ingestion-schemas.ts";
import type { ShownRecord } from "../../dmarc/insight/queries/records.ts";
import type { ShownReport } from "../../dmarc/insight/queries/reports.ts";

type Words = readonly [kind: Kind, word: string];

const AUTHENTICITY: Readonly<Record<NonNullable<ShownReport["authenticity"]>["result"], Words>> = {
  pass: ["ok", "Authenticated"],
  fail: ["bad", "Not authenticated"],
  unknown: ["unknown", "Not known"],
  pending: ["unknown", "Being checked"],
};

/** Whether the mail of a report is the reporter's. */
export const authenticityWords = (authenticity: ShownReport["authenticity"]): Words =>
  authenticity === null ? ["info", "Uploaded"] : AUTHENTICITY[authenticity.result];

/** An SPF, DKIM or DMARC result (RFC 8601) with its kind. */
export const resultKind = (result: string): Kind => {
  if (result === "pass") return "ok";
  return result === "fail" || result === "permerror" || result === "policy" ? "bad" : "unknown";
};

const OUTCOMES: Readonly<Record<NonNullable<IngestionView["outcome"]>, Words>> = {
  stored: ["ok", "Stored"],
  duplicate: ["info", "Duplicate"],
  empty: ["info", "Nothing to count"],
  quarantined: ["warn", "Quarantined"],
  rejected: ["bad", "Rejected"],
};

/** What became of a mail or file; null while it waits to be read. */
export const outcomeWords = (outcome: IngestionView["outcome"]): Words =>
  outcome === null ? ["unknown", "Waiting"] : OUTCOMES[outcome];

export const OUTCOME_OPTIONS: ReadonlyArray<readonly [string, string]> = [
  ["", "Any outcome"],
  ...Object.entries(OUTCOMES).map(([outcome, [, word]]) => [outcome, word] as const),
];

const VIAS: Readonly<Record<IngestionView["via"], string>> = {
  smtp: "Mail",
  imap: "Mailbox",
  http: "Upload",
  import: "Import",
};

export const viaWord = (via: IngestionView["via"]): string => VIAS[via];

export const VIA_OPTIONS: ReadonlyArray<readonly [string, string]> = [["", "Any way"], ...Object.entries(VIAS)];

/** Whether somebody can have it read again. */
export const isRetriable = ({ outcome, raw_available }: Pick<IngestionView, "outcome" | "raw_available">): boolean =>
  raw_available && (outcome === "rejected" || outcome === "quarantined");

/** Mail that is not authenticated as its reporter's can be accepted by somebody who knows that it is genuine. */
export const isAcceptable = (
  ingestion: Pick<IngestionView, "outcome" | "raw_available" | "via" | "findings">,
): boolean =>
  isRetriable(ingestion) &&
  (ingestion.via === "smtp" || ingestion.via === "imap") &&
  ingestion.findings.some(
    ({ reason }) => reason === "not_authentic" || reason === "authenticity_unknown" || reason === "other_author",
  );

/** A message of a finding, for people at a page. */
export const findingText = (message: string): string =>
  message
    .replace(
      "If you know that it is genuine, retry it with accept_unauthenticated.",
      "If you know that it is genuine, accept it.",
    )
    .replace("; `skipped_rows` of the report says why.", "; the page of the report says why.")
    .replace("Enroll the domain, then retry the ingestion.", "Enroll the domain, then retry.")
    .replace(
      "With `store_failure_reports` of the domain, it is stored.",
      "Switch on failure reports in the settings of the domain to store them.",
    )
    .replaceAll("the ingestion", "this mail or file");

const DISPOSITIONS: Readonly<Record<string, Words>> = {
  none: ["info", "Let through"],
  pass: ["info", "Let through"],
  quarantine: ["warn", "Quarantined"],
  reject: ["bad", "Rejected"],
};

/** What the receiver did with messages. */
export const dispositionWords = ({ disposition }: Pick<ShownRecord, "disposition">): Words =>
  disposition === null ? ["unknown", "Not said"] : (DISPOSITIONS[disposition] ?? ["info", disposition]);

const REASONS: Readonly<Record<string, string>> = {
  forwarded: "forwarded",
  local_policy: "a rule of the receiver",
  mailing_list: "a mailing list",
  other: "another reason",
  policy_test_mode: "test mode (t=y)",
  sampled_out: "left out by pct",
  trusted_forwarder: "a forwarder that the receiver trusts",
};

/** Why the receiver did not apply the policy. */
export const overrideWords = ({ reasons }: Pick<ShownRecord, "reasons">): string =>
  reasons.map(({ type, comment }) => `${REASONS[type] ?? type}${comment === null ? "" : ` (${comment})`}`).join(", ");

const SPF_RESULTS: Readonly<Record<string, string>> = {
  pass: "may send for",
  fail: "may not send for",
  softfail: "probably may not send for",
  neutral: "is not mentioned by",
  none: "is unknown to, because no SPF record exists at",
  temperror: "could not be checked, because the DNS did not respond for",
  permerror: "could not be checked, because of a fault in the SPF record of",
};

/** An SPF result as a sentence about the sending server. */
export const spfSentence = (result: string, domain: string | null): string =>
  `The server that delivered the mail ${SPF_RESULTS[result] ?? `has the SPF result ${result} for`} ${domain ?? "a domain that is not known"}.`;
