import { isIP } from "node:net";
import type {
  Attempt,
  SessionEvidence,
  DnsQueryEvidence,
  DomainEvidence,
  Evidence,
  ProbeFinding,
  PlannedRetry,
} from "./evidence.ts";

const indent = (lines: readonly string[], by = "  "): string[] => lines.map((line) => by + line);

/** Replies are shown on terminals: their control characters must not reach one. */
const printable = (line: string): string => line.replace(/[\p{Cc}\p{Cf}]/gu, "·");

const sectionOf = (title: string, lines: readonly string[]): string[] => ["", title, ...indent(lines)];

const conclusionLines = ({ address, conclusion }: Evidence): string[] => {
  const name = address.problem === null ? address.normalized_email : address.submitted;
  if (conclusion === null) return [`${name}: no verdict yet`];
  const { verdict, sub_status, quality_score, confidence, because } = conclusion;
  return [`${name}: ${verdict} (${sub_status}), quality ${quality_score}, confidence ${confidence}`, because];
};

const LISTING_WORDS = { clean: "not on a blocklist", listed: "on a blocklist", unknown: "no blocklist responded" };

const addressLines = ({ address, toxic, bounce, dnsbl }: Evidence): string[] => {
  const { submitted, normalized_email: normalized, read_as: readAs, suggestion } = address;
  const { problem, role_account: role, disposable } = address;
  const hints = suggestion === null ? [] : [`did you mean ${suggestion}?`];
  if (problem !== null) return [`not an address: ${problem}`, ...hints];
  const lists = [
    disposable === null ? "not a disposable domain" : `disposable domain (${disposable})`,
    role === null ? "not a role account" : `role account ("${role}")`,
    ...(bounce === null ? [] : [`bounced on ${bounce.bounced_at.slice(0, 10)} (${bounce.status}, ${bounce.source})`]),
    ...(toxic === null ? [] : [toxic.entry === null ? "not suppressed" : `suppressed (${toxic.entry})`]),
    ...(dnsbl === null ? [] : [LISTING_WORDS[dnsbl.outcome]]),
  ];
  return [
    ...(submitted === normalized ? [] : [`submitted as ${submitted}`]),
    ...(readAs === null ? [] : [`read as ${readAs}`]),
    ...hints,
    lists.join(", "),
    ...(dnsbl?.listings ?? []).map(({ listing, subject }) => `${subject} is on ${listing}`),
  ];
};

const DOMAIN_WORDS: Readonly<Record<DomainEvidence["outcome"], string>> = {
  mail_hosts: "has mail hosts",
  nxdomain: "does not exist",
  no_mail_server: "exists but has no MX, A or AAAA records",
  null_mx: "accepts no mail (null MX)",
  unroutable: "has no mail host with a public address",
  dns_error: "could not be resolved: no usable DNS response",
  local_failure: "could not be resolved: this machine could not send its DNS queries",
};

const queryLine = ({
  name,
  type,
  outcome,
  records,
  ttl_s,
  server,
  from_cache,
  elapsed_ms,
}: DnsQueryEvidence): string => {
  const response = outcome === "response" ? `${records.join(", ")} (TTL ${ttl_s} s)` : outcome.replaceAll("_", " ");
  const source = from_cache ? "from the cache" : `${server ?? "not sent"}, ${elapsed_ms} ms`;
  return `${type.padEnd(4)} ${name} → ${response}  [${source}]`;
};

const domainLines = ({
  dns_queries: queries,
  hosts,
  implicit_mx,
  unverifiable_provider: provider,
}: DomainEvidence): string[] => [
  ...queries.map(queryLine),
  ...(implicit_mx ? ["no MX record: the domain itself is the mail host"] : []),
  ...hosts.flatMap(({ host, addresses }) =>
    addresses
      .filter(({ allowed }) => !allowed)
      .map(({ address }) => `${host} has the address ${address}, which is not public: not probed`),
  ),
  ...hosts
    .filter(({ host, addresses }) => isIP(host) !== 0 && addresses.length === 0)
    .map(({ host }) => `${host} is an IP address where MX requires a host name (RFC 1035 §3.3.9): not probed`),
  ...(provider === null ? [] : [`${provider} gives the same reply for every recipient, so no reply is conclusive`]),
];

const SUBJECTS = {
  submitted: " for the address",
  random: " for a random recipient",
  control: " for postmaster",
  us: "",
} as const;

const sessionLines = (session: SessionEvidence): string[] => {
  const { host, address, port, egress, tls, connection, transcript, failure, replies, cooldown_since: since } = session;
  const how = [
    egress === "direct" ? "" : `from ${egress}`,
    tls ? "over TLS" : "",
    connection === "reused" ? "on a reused connection" : "",
    since === null ? "" : `not probed: on cooldown since ${since} because it kept timing out`,
  ];
  return [
    [`${host} at ${address}, port ${port}`, ...how.filter((part) => part !== "")].join(", "),
    ...indent(
      transcript.map(({ at_ms, from, text }) => `${String(at_ms).padStart(6)} ms ${from === "us" ? "→" : "←"} ${text}`),
    ),
    ...replies.map(({ stage, about, code, enhanced, reading, rule }) => {
      const given = enhanced === null ? String(code) : `${code} ${enhanced}`;
      return `  ${stage.toUpperCase()}${SUBJECTS[about]}: ${given} means ${reading} (rule ${rule})`;
    }),
    ...(failure === null
      ? []
      : [`  ended at ${failure.stage}: ${failure.kind === "reply" ? "refused" : failure.kind.replaceAll("_", " ")}`]),
  ];
};

const CATCH_ALL_WORDS: Readonly<Record<ProbeFinding["catch_all"], string>> = {
  yes: ", and accepts every recipient",
  no: ", and refuses a random recipient",
  unknown: "; whether it accepts every recipient is unknown",
  skipped: "",
};

const controlWords = (control: ProbeFinding["positive_control"]): string => {
  if (control === null) return "";
  const accepted = control.recipient === "postmaster" ? "postmaster" : "another recipient of the domain";
  const age = control.age_s === 0 ? "" : ` (${control.age_s} s before)`;
  return `, because it accepted ${accepted} from the same egress${age}`;
};

const findingLine = ({ reading, host, catch_all, catch_all_age_s: ageS, ...finding }: ProbeFinding): string => {
  const age = ageS === null ? "" : ` (probed ${ageS} s before)`;
  return `found: ${reading}${host === null ? "" : ` at ${host}`}${CATCH_ALL_WORDS[catch_all]}${age}${controlWords(finding.positive_control)}`;
};

const retryLine = ({ reason, due_at, waited_for }: PlannedRetry): string =>
  `${reason}: next attempt at ${due_at}, ${waited_for === "schedule" ? "by the schedule" : "as the server requested"}`;

const attemptLines = ({ sessions, finding }: Attempt, retry: PlannedRetry | undefined): string[] => [
  ...sessions.flatMap(sessionLines),
  findingLine(finding),
  ...(retry === undefined ? [] : [retryLine(retry)]),
];

/** The evidence as text: the verdict and its reason, then what was queried and probed, with the responses. */
export const explain = (evidence: Evidence): string => {
  const { domain, attempts, retries } = evidence;
  return [
    ...conclusionLines(evidence),
    ...sectionOf("Address", addressLines(evidence)),
    ...(domain === null ? [] : sectionOf(`Domain ${domain.name} ${DOMAIN_WORDS[domain.outcome]}`, domainLines(domain))),
    ...attempts.flatMap((attempt, at) =>
      sectionOf(`Attempt ${attempt.number}, ${attempt.started_at}`, attemptLines(attempt, retries[at])),
    ),
  ]
    .map(printable)
    .join("\n");
};
