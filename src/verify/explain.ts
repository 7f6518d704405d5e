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

/** A server's words are shown on terminals: nothing in them may steer one. */
const defused = (line: string): string => line.replace(/[\p{Cc}\p{Cf}]/gu, "·");

const sectionOf = (title: string, lines: readonly string[]): string[] => ["", title, ...indent(lines)];

const conclusionLines = ({ address, conclusion }: Evidence): string[] => {
  const name = address.problem === null ? address.normalized_email : address.submitted;
  if (conclusion === null) return [`${name}: no verdict yet`];
  const { verdict, sub_status, quality_score, confidence, because } = conclusion;
  return [`${name}: ${verdict} (${sub_status}), quality ${quality_score}, confidence ${confidence}`, because];
};

const LISTING_WORDS = { clean: "on no blocklist", listed: "on a blocklist", unknown: "the blocklists did not answer" };

const addressLines = ({ address, toxic, dnsbl }: Evidence): string[] => {
  const { submitted, normalized_email: normalized, read_as: readAs, suggestion } = address;
  const { problem, role_account: role, disposable } = address;
  const hints = suggestion === null ? [] : [`perhaps ${suggestion} was meant`];
  if (problem !== null) return [`not an address: ${problem}`, ...hints];
  const lists = [
    disposable === null ? "not a disposable domain" : `a disposable domain (${disposable})`,
    role === null ? "not a role account" : `a role account ("${role}")`,
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
  no_mail_server: "exists, but has neither MX nor A nor AAAA",
  null_mx: "says that it takes no mail (null MX)",
  unroutable: "has no mail host with an address that may be connected to",
  dns_error: "could not be looked up: DNS gave no usable answer",
  local_failure: "could not be asked: this machine could not send its queries",
};

const questionLine = ({
  name,
  type,
  outcome,
  records,
  ttl_s,
  server,
  from_cache,
  elapsed_ms,
}: DnsQueryEvidence): string => {
  const answer = outcome === "answer" ? `${records.join(", ")} (TTL ${ttl_s} s)` : outcome.replaceAll("_", " ");
  const source = from_cache ? "from the cache" : `${server ?? "nobody asked"}, ${elapsed_ms} ms`;
  return `${type.padEnd(4)} ${name} → ${answer}  [${source}]`;
};

const domainLines = ({ questions, hosts, implicit_mx, unverifiable_provider: provider }: DomainEvidence): string[] => [
  ...questions.map(questionLine),
  ...(implicit_mx ? ["without MX the domain itself is the mail host"] : []),
  ...hosts.flatMap(({ host, addresses }) =>
    addresses
      .filter(({ allowed }) => !allowed)
      .map(({ address }) => `${host} is at ${address}, which is not public: not asked`),
  ),
  ...(provider === null ? [] : [`${provider} answers every recipient alike, so no answer settles anything`]),
];

const SUBJECTS = { submitted: " for the address", random: " for a random recipient", us: "" } as const;

const dialogueLines = (dialogue: SessionEvidence): string[] => {
  const {
    host,
    address,
    port,
    exit,
    tls,
    connection,
    transcript,
    failure,
    replies,
    remembered_since: since,
  } = dialogue;
  const how = [
    exit === "direct" ? "" : `by ${exit}`,
    tls ? "over TLS" : "",
    connection === "reused" ? "over a connection that stood" : "",
    since === null ? "" : `not asked: silent time and again, last at ${since}`,
  ];
  return [
    [`${host} at ${address}, port ${port}`, ...how.filter((part) => part !== "")].join(", "),
    ...indent(
      transcript.map(({ at_ms, from, text }) => `${String(at_ms).padStart(6)} ms ${from === "us" ? "→" : "←"} ${text}`),
    ),
    ...replies.map(({ stage, about, code, enhanced, reading, rule }) => {
      const given = enhanced === null ? String(code) : `${code} ${enhanced}`;
      return `  ${stage.toUpperCase()}${SUBJECTS[about]}: ${given} reads as ${reading} (rule ${rule})`;
    }),
    ...(failure === null
      ? []
      : [`  ended at ${failure.stage}: ${failure.kind === "reply" ? "refused" : failure.kind.replaceAll("_", " ")}`]),
  ];
};

const CATCH_ALL_WORDS: Readonly<Record<ProbeFinding["catch_all"], string>> = {
  yes: ", and accepts every other recipient too",
  no: ", and refuses others",
  unknown: "; whether it accepts every other recipient too is not known",
  skipped: "",
};

const findingLine = ({ reading, host, catch_all, catch_all_age_s: ageS }: ProbeFinding): string => {
  const age = ageS === null ? "" : ` (as it said ${ageS} s before)`;
  return `found: ${reading}${host === null ? "" : ` at ${host}`}${CATCH_ALL_WORDS[catch_all]}${age}`;
};

const retryLine = ({ reason, due_at, waited_for }: PlannedRetry): string =>
  `${reason}: to be asked again at ${due_at}, ${waited_for === "schedule" ? "by our schedule" : "as the server said"}`;

const attemptLines = ({ dialogues, finding }: Attempt, retry: PlannedRetry | undefined): string[] => [
  ...dialogues.flatMap(dialogueLines),
  findingLine(finding),
  ...(retry === undefined ? [] : [retryLine(retry)]),
];

/** The evidence as text for people: what was concluded and why, then what was asked and what was answered. */
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
    .map(defused)
    .join("\n");
};
