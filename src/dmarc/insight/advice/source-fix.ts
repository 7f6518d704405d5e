import { configureAdvice, serviceById } from "../../records/services/services.ts";
import { type AdviceFacts, type AdvisedSource, failingMessages } from "./advice-facts.ts";

/** What a fix depends on. */
export type FixFacts = Pick<AdviceFacts, "domain" | "policy" | "health">;

/** What keeps mail of a sender from passing, and what to do about it. */
export interface SourceFix {
  /** One sentence. */
  readonly why: string;
  /** Sentences, in the order in which to follow them. */
  readonly steps: readonly string[];
}

const ADDRESSES_MAX = 3;

/** What to do about a sender of the user's whose mail fails. */
export const fixOf = (source: AdvisedSource, facts: FixFacts): SourceFix => {
  const failing = failingMessages(source);
  const why = `${source.name} sends ${count(failing)} a month that ${failing === 1 ? "does" : "do"} not pass DMARC.`;
  const [keys, setup] = [keySteps(source, facts), setupSteps(source, facts)];
  // Own servers are set up already, most likely; a service may never have been.
  const steps = source.kind === "own" ? [...keys, ...setup] : [...setup, ...keys];
  return { why, steps: [...strictSteps(source, facts), ...steps] };
};

/** What to find out about an unclassified source. */
export const questionOf = (source: AdvisedSource, { domain }: FixFacts): SourceFix => {
  const proves = source.authenticated_unaligned > 0 && source.aligned === 0;
  const how = proves ? `authenticates as another domain than ${domain}` : `is not authenticated as ${domain}`;
  return {
    why: `${source.name} sends ${count(source.messages)} a month and ${how}. Is it yours?`,
    steps: [
      `If it is yours, set up DKIM for ${domain} there, and classify ${source.key} as misconfigured.`,
      `If it is not, classify ${source.key} as threat.`,
    ],
  };
};

const count = (messages: number): string =>
  `${messages.toLocaleString("en-US")} ${messages === 1 ? "message" : "messages"}`;

/** Mail that would pass with relaxed alignment (RFC 9989 §4.10.1). */
const strictSteps = ({ dkim }: AdvisedSource, { domain, policy }: FixFacts): readonly string[] => {
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
  "spf_lookups",
  "spf_void_lookups",
  "spf_syntax",
  "spf_several",
  "spf_target_missing",
]);

/** Invalid keys and SPF records that the health check found: any of them may be the cause. */
const keySteps = ({ kind }: AdvisedSource, { health }: FixFacts): readonly string[] => {
  if (kind !== "own" && kind !== "service") return [];
  return health
    .filter(({ code, severity }) => severity === "error" && KEY_CODES.has(code))
    .map(({ message, fix }) => (fix === null ? message : `${message} ${fix}`));
};

const setupSteps = (source: AdvisedSource, { domain }: FixFacts): readonly string[] => {
  const service = source.service_id === null ? null : serviceById(source.service_id);
  if (service !== null) return configureAdvice(service, domain);
  const where = source.kind === "own" ? "on the servers" : `at ${source.name}`;
  const addresses = source.addresses.slice(0, ADDRESSES_MAX).map(({ ip }) => ip);
  const sign = `Sign the mail with DKIM as ${domain} ${where}.`;
  if (addresses.length === 0) return [sign];
  return [
    sign,
    `Or let SPF pass: use an envelope address at ${domain}, and have its SPF record name ${addresses.join(", ")}.`,
  ];
};
