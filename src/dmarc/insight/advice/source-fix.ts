import { isoDay } from "../../../foundation/base/days.ts";
import { configureAdvice, serviceById } from "../../records/services/services.ts";
import { type AdvisedFinding, type AdvisedSource, type AdviceFacts, failingMessages } from "./advice-facts.ts";
import { causeAct, causeText, type SpikeCause } from "./failure-causes.ts";
import type { FailureDetail, FailureHistory } from "./failure-history.ts";

/** A sender whose mail fails, or is not known. */
type SenderToFix = Omit<AdvisedSource, "history" | "isAwaited">;

/** What a fix depends on. */
type FixFacts = Pick<AdviceFacts, "domain" | "policy" | "health">;

/** What is known about the failures of a source; null for what is not. */
export interface KnownFailures {
  readonly history: FailureHistory | null;
  readonly detail: FailureDetail | null;
}

/** What keeps mail of a sender from passing, and what to do about it. */
export interface SourceFix {
  /** One or two sentences. */
  readonly why: string;
  /** Sentences, in the order in which to follow them. */
  readonly steps: readonly string[];
}

/** Addresses that a step names. */
const ADDRESSES_MAX = 3;

/** What to do about a sender of the user's whose mail fails. */
export const fixOf = (source: SenderToFix, facts: FixFacts, known: KnownFailures): SourceFix => {
  const { history, detail } = known;
  const [cause] = detail?.causes ?? [];
  const findings = findingsOf(source, facts, detail);
  if (history?.hasRecovered === true) return { why: recoveredText(source, history), steps: [] };
  if (history !== null && detail !== null && cause !== undefined) {
    const mine = findings.filter((finding) => isAbout(finding, cause));
    const acts = mine.length > 0 ? mine.map(findingWithFix) : [causeAct(cause, source.name)];
    return { why: `${brokenText(source, history, cause)}${addressesText(detail)}`, steps: acts };
  }
  const [keys, setup] = [findings.map(findingWithFix), setupSteps(source, facts, detail)];
  const results = detail?.results == null ? "" : ` Results: ${detail.results}.`;
  // Own servers are set up already, most likely; a service may never have been.
  const steps = source.kind === "own" ? [...keys, ...setup] : [...setup, ...keys];
  return { why: `${failedText(source, history)}${results}`, steps: [...strictSteps(source, facts), ...steps] };
};

/** "Brevo: 572 messages of the last 30 days failed, the last on 2026-07-26." */
const failedText = (source: SenderToFix, history: FailureHistory | null) => {
  const last = history === null ? "" : `, the last on ${isoDay(history.lastDay)}`;
  return `${source.name}: ${count(failingMessages(source))} of the last 30 days failed${last}.`;
};

const brokenText = ({ name }: Pick<AdvisedSource, "name">, history: FailureHistory, cause: SpikeCause) => {
  const text = causeText(cause, isoDay(history.sinceDay));
  const { failing, messages, lastDay } = history;
  const failed = `${failing.toLocaleString("en-US")} of ${count(messages)} failed since then, the last on ${isoDay(lastDay)}`;
  return `${name}: ${text}. Its mail passed until then; ${failed}.`;
};

/** That a source passes again, since when, and what failed before. */
export const recoveredText = (source: SenderToFix, { lastDay }: FailureHistory): string =>
  `${source.name}: its mail has passed since ${isoDay(lastDay + 1)}; ${count(failingMessages(source))} of the last 30 days failed before.`;

/** The failing addresses of a source that mostly passes; without the sound ones. */
const addressesText = ({ addresses }: FailureDetail) =>
  addresses.length === 0
    ? ""
    : ` Failing ${addresses.length === 1 ? "address" : "addresses"}: ${namedAddresses(addresses)}.`;

const namedAddresses = (addresses: FailureDetail["addresses"]) => {
  const named = addresses
    .slice(0, ADDRESSES_MAX)
    .map(({ ip, failing }) => `${ip} (${failing.toLocaleString("en-US")})`);
  const more = addresses.length - named.length;
  return [...named, ...(more > 0 ? [`${more.toLocaleString("en-US")} more`] : [])].join(", ");
};

/** What to find out about an unclassified source. */
export const questionOf = (source: SenderToFix, { domain }: Pick<FixFacts, "domain">): SourceFix => {
  if (source.bundled !== undefined) return questionOfMany(source, source.bundled, domain);
  const proves = source.authenticated_unaligned > 0 && source.aligned === 0;
  const how = proves ? `authenticates as another domain than ${domain}` : `is not authenticated as ${domain}`;
  return {
    why: `${source.name} sends ${count(source.messages)} a month and ${how}. Is it yours?`,
    steps: [
      `If it is yours, set up DKIM for ${domain} there, and classify ${source.name} as misconfigured.`,
      `If it is not, classify ${source.name} as threat.`,
    ],
  };
};

/** Senders without any tie to the domain that use other domains of the account, too: see `StrangerStore`. */
const questionOfMany = (
  { name, messages }: Pick<AdvisedSource, "name" | "messages">,
  names: readonly string[],
  domain: string,
): SourceFix => ({
  why: `${name} sends ${count(messages)} a month. Nothing ties them to ${domain}, and they use other domains of yours in From as well, as spammers do. Are they yours?`,
  steps: [
    `If they are not, classify all of them as threat: ${names.slice(0, NAMED_MAX).join(", ")}${names.length > NAMED_MAX ? ", …" : ""}.`,
    `If one is, classify it as misconfigured, and set up DKIM for ${domain} there.`,
  ],
});

const NAMED_MAX = 20;

const count = (messages: number): string =>
  `${messages.toLocaleString("en-US")} ${messages === 1 ? "message" : "messages"}`;

/** Mail that would pass with relaxed alignment (RFC 9989 §4.10.1). */
const strictSteps = (
  { dkim }: Pick<AdvisedSource, "dkim">,
  { domain, policy }: Pick<FixFacts, "domain" | "policy">,
): readonly string[] => {
  const other = dkim.find(({ aligned, domain: signer }) => aligned && signer !== domain);
  if (policy?.adkim !== "s" || other === undefined) return [];
  return [
    `It signs as ${other.domain}, but the policy requires strict alignment (adkim=s). Have it sign as ${domain}, the domain in From.`,
  ];
};

const KEY_CODES: ReadonlySet<string> = new Set([
  "dkim_missing",
  "dkim_dangling_alias",
  "dkim_several",
  "dkim_invalid",
  "dkim_revoked",
  "dkim_key_too_short",
  "dkim_sha1_only",
  "dkim_not_for_mail",
]);
const SPF_CODES: ReadonlySet<string> = new Set([
  "spf_lookups",
  "spf_void_lookups",
  "spf_syntax",
  "spf_several",
  "spf_target_missing",
]);

export const findingWithFix = ({ message, fix }: AdvisedFinding): string =>
  fix === null ? message : `${message} ${fix}`;

/**
 * The errors of keys that sign mail now: signatures with them fail. A key with which nothing passes lately counts only if it never
 * was valid: anybody can send an old message with a retired key again.
 */
export const keyErrors = ({ health, sources }: Pick<AdviceFacts, "health" | "sources">): readonly AdvisedFinding[] => {
  const selectors = new Set(sources.flatMap(({ dkim }) => dkim.map(({ selector }) => selector)));
  return health.filter(
    ({ code, severity, key }) =>
      severity === "error" &&
      KEY_CODES.has(code) &&
      key?.isInUse === true &&
      (key.isNeverValid || selectors.has(key.selector)),
  );
};

/** The invalid keys of the selectors that a source uses, and errors of SPF where its mail depends on it. */
const findingsOf = (
  { dkim, kind }: Pick<AdvisedSource, "dkim" | "kind">,
  { health }: Pick<FixFacts, "health">,
  detail: FailureDetail | null,
): readonly AdvisedFinding[] => {
  const selectors = new Set([
    ...dkim.flatMap(({ aligned, selector }) => (aligned ? (selector ?? []) : [])),
    ...(detail?.selectors ?? []),
  ]);
  const usesSpf = detail?.usesSpf ?? kind === "own";
  return health.filter(({ code, severity, key }) => {
    if (severity !== "error") return false;
    return KEY_CODES.has(code) ? key !== null && selectors.has(key.selector) : SPF_CODES.has(code) && usesSpf;
  });
};

const isAbout = ({ code, key }: AdvisedFinding, cause: SpikeCause) =>
  cause.code.startsWith("spf_") ? SPF_CODES.has(code) : key !== null && key.selector === cause.selector;

const setupSteps = (
  source: SenderToFix,
  { domain }: Pick<FixFacts, "domain">,
  detail: FailureDetail | null,
): readonly string[] => {
  const service = source.service_id === null ? null : serviceById(source.service_id);
  if (service !== null) return configureAdvice(service, domain);
  const addresses = detail?.addresses ?? [];
  const named = namedAddresses(addresses);
  const own = addresses.length === 0 ? "on the servers" : `on the servers that fail: ${named}`;
  const sign = `Sign the mail with DKIM as ${domain} ${source.kind === "own" ? own : `at ${source.name}`}.`;
  if (addresses.length === 0) return [sign];
  const them = source.kind === "own" ? "these addresses" : named;
  return [sign, `Or let SPF pass: use an envelope address at ${domain}, and have its SPF record name ${them}.`];
};
