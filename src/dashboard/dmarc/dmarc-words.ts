import type { Classification } from "../../dmarc/insight/sources/rollup-store.ts";
import type { ClassificationReason } from "../../dmarc/insight/sources/source-classification.ts";
import type { Source } from "../../dmarc/insight/sources/source-response.ts";
import type { StatePolicy } from "../../dmarc/records/domains/domain-state.ts";
import type { NextStep, ListedStatus } from "../../dmarc/alerts/overview/domain-overview-store.ts";
import type { Kind } from "../components/inline.tsx";
import { numberText } from "../components/figures.tsx";

interface Word {
  readonly kind: Kind;
  readonly text: string;
}

/** The classes of sources, with what they mean. */
export const CLASS_WORDS: Readonly<Record<Classification, Word & { readonly meaning: string }>> = {
  authorized: { kind: "ok", text: "Authorized", meaning: "Yours, and nearly all of its mail is aligned." },
  misconfigured: { kind: "warn", text: "Misconfigured", meaning: "Yours, but its mail is not aligned." },
  forwarder: { kind: "info", text: "Forwarder", meaning: "It forwards mail of others. Nothing to do." },
  unknown: { kind: "unknown", text: "Unknown", meaning: "Not identified. Classify it." },
  threat: { kind: "bad", text: "Threat", meaning: "It forges your domain." },
};

export const DOMAIN_STATUS_WORDS: Readonly<Record<ListedStatus, Word>> = {
  action_required: { kind: "bad", text: "Action required" },
  silent: { kind: "warn", text: "No reports" },
  pending: { kind: "unknown", text: "Pending" },
  active: { kind: "ok", text: "Active" },
  paused: { kind: "unknown", text: "Paused" },
};

/** The policy in force, as its tags are written. */
export const policyWords = (policy: StatePolicy | null | undefined): string => {
  if (policy === undefined) return "not known yet";
  if (policy === null) return "no policy";
  return `p=${policy.p}${policy.t === "y" ? "; t=y" : ""}`;
};

const STEPS: Readonly<Record<NextStep["action"], (source: string) => string>> = {
  fix_record: () => "Fix the record",
  publish_record: () => "Publish the record",
  raise_parent: () => "Raise the policy of the parent domain",
  protect_missing_names: () => "Protect names that do not exist: np=reject",
  protect_subdomains: () => "Protect subdomains: sp",
  rehearse_quarantine: () => "Test p=quarantine",
  quarantine: () => "Publish p=quarantine",
  end_rehearsal: () => "End the test mode",
  reject: () => "Publish p=reject",
  reject_all: () => "Publish p=reject",
  remove_pct: () => "Remove pct",
  set_sends_mail: () => "Say whether it sends mail",
  fix_key: () => "Fix a DKIM key",
  classify_sources: (source) => `Classify ${source}`,
  fix_sources: (source) => `Fix ${source}`,
  wait: () => "Wait for more reports",
};

/** The next step in a few words. */
export const stepWords = ({ action, sourceName }: NextStep): string => STEPS[action](sourceName ?? "a source");

const HALF = 2;

/** What fails of a source's mail, and why, in a few words. */
export const failureWords = (source: Source): string => {
  const { failing, forwarded, authenticated_unaligned: foreign, quarantined, rejected } = source;
  if (failing === 0) return passWords(source);
  const stopped = [
    quarantined > 0 ? `${numberText(quarantined)} quarantined` : "",
    rejected > 0 ? `${numberText(rejected)} rejected` : "",
  ].filter((text) => text !== "");
  return [causeWords(source, { failing, forwarded, foreign }), ...stopped].join("; ");
};

const passWords = ({ messages, dkim_aligned: dkim, spf_aligned: spf }: Source): string => {
  if (messages === 0) return "no messages in this range";
  if (dkim > 0 && spf > 0) return "SPF and DKIM, both aligned";
  return dkim > 0 ? "DKIM aligned" : "SPF aligned";
};

const causeWords = (
  { classification, dkim, spf }: Source,
  { failing, forwarded, foreign }: { readonly failing: number; readonly forwarded: number; readonly foreign: number },
): string => {
  if (forwarded * HALF >= failing || classification === "forwarder") return "forwarded on the way";
  if (foreign * HALF < failing) return "fails SPF and DKIM";
  const other = dkim.find(({ aligned }) => !aligned)?.domain ?? spf[0]?.domain;
  return other === undefined ? "passes for another name, not yours" : `passes for ${other}, not for you`;
};

/** Why a source has its automatic class, in a sentence. */
export const REASONS: Readonly<Record<ClassificationReason, string>> = {
  unauthenticated: "Nothing authenticates its mail, and its addresses have no proper reverse name.",
  service_forwards: "This service only forwards mail.",
  forwarding: "Receivers recognize its mail as forwarded, or it relays mail that was signed elsewhere.",
  untrusted_reports: "It appears only in unauthenticated reports, which anyone can send.",
  aligned: "At least 90 % of its mail is aligned.",
  own_server: "It is one of your own servers, but less than 90 % of its mail is aligned.",
  unrelated: "Many firms share this provider. If your website or form runs there, this is yours.",
  partly_aligned: "Between 10 % and 90 % of its mail is aligned: it is partly configured for you.",
  authenticated_as_other:
    "It is authenticated as another domain, as mail of a service is before it is set up for yours.",
  nothing_known: "Nothing shows whether it sends for you. An unconfigured server of yours would look the same.",
};

const KINDS: Readonly<Record<Source["kind"], string>> = {
  own: "Your own servers: a confirmed reverse name, an envelope domain or a DKIM selector of yours.",
  service: "A known sending service, by its reverse names, envelope domains, signatures or networks.",
  organization: "An organization, by its confirmed reverse names, envelope domains or signatures.",
  network: "A network. No reverse name and no authentication says whose it is.",
  unauthenticated: "Mail without any authentication from addresses without a proper reverse name, taken together.",
};

/** What the key of a source stands for, in a sentence. */
export const kindWords = ({ kind, key }: Source): string =>
  key === "other" ? "Addresses above the per-domain limit, combined." : KINDS[kind];
