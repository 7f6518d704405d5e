import type { Attempt, Dialogue, DomainEvidence, Evidence } from "./evidence.ts";

const indent = (lines: readonly string[], by = "  "): string[] => lines.map((line) => by + line);

const DOMAIN_WORDS: Readonly<Record<DomainEvidence["outcome"], string>> = {
  mail_hosts: "it has mail hosts",
  nxdomain: "it does not exist",
  no_mail_server: "it exists, but has neither MX nor A nor AAAA",
  null_mx: "it says that it takes no mail (null MX)",
  unroutable: "none of its mail hosts has an address that may be connected to",
  dns_error: "DNS gave no usable answer",
};

const addressLines = ({ address }: Evidence): string[] => {
  if (address.problem !== null) return [`Address  not one: ${address.problem}`];
  return [
    `Address  ${address.normalized_email}`,
    ...(address.suggestion === null ? [] : [`         perhaps ${address.suggestion} was meant`]),
    ...(address.role_account === null ? [] : [`         a role account ("${address.role_account}")`]),
    ...(address.disposable === null ? [] : [`         a disposable domain (${address.disposable})`]),
  ];
};

const domainLines = (domain: DomainEvidence): string[] => [
  `Domain   ${domain.name}: ${DOMAIN_WORDS[domain.outcome]}${domain.implicit_mx ? " (no MX: the domain itself)" : ""}`,
  ...indent(
    domain.questions.map(({ name, type, outcome, records, ttl_s, server, from_cache, elapsed_ms }) => {
      const answer = outcome === "answer" ? `${records.join(", ")} (TTL ${ttl_s} s)` : outcome;
      const source = from_cache ? "from the cache" : `${elapsed_ms} ms, ${server ?? "nobody asked"}`;
      return `${type.padEnd(5)} ${name} → ${answer}  [${source}]`;
    }),
    "         ",
  ),
  ...indent(
    domain.hosts.flatMap(({ host, addresses }) =>
      addresses
        .filter(({ allowed }) => !allowed)
        .map(({ address }) => `${host} is at ${address}, which is not public: not asked`),
    ),
    "         ",
  ),
];

const dialogueLines = (dialogue: Dialogue): string[] => [
  `${dialogue.host} [${dialogue.address}]:${dialogue.port}${dialogue.tls ? ", over TLS" : ""}${dialogue.connection === "reused" ? ", on a connection that stood" : ""}`,
  ...indent(
    dialogue.transcript.map(
      ({ at_ms, from, text }) => `${String(at_ms).padStart(6)} ms ${from === "us" ? "→" : "←"} ${text}`,
    ),
  ),
  ...(dialogue.failure === null ? [] : [`  ended at ${dialogue.failure.stage}: ${dialogue.failure.kind}`]),
  ...indent(
    dialogue.replies.map(({ stage, about, code, enhanced, reading, rule }) => {
      const subject = about === "us" ? stage.toUpperCase() : `RCPT of the ${about} address`;
      return `${subject}: ${code}${enhanced === null ? "" : ` ${enhanced}`} reads as ${reading} (rule ${rule})`;
    }),
  ),
];

const attemptLines = (attempt: Attempt): string[] => [
  `Attempt ${attempt.number} at ${attempt.started_at}`,
  ...indent(attempt.dialogues.flatMap(dialogueLines)),
];

/** The evidence as text for people: what was asked, what was answered, what was concluded and why. */
export const explain = (evidence: Evidence): string => {
  const { domain, attempts, retries, conclusion } = evidence;
  const retryLines = (number: number): string[] => {
    const retry = retries[number - 1];
    return retry === undefined
      ? []
      : [`Retry    because ${retry.reason}, at ${retry.due_at} (${retry.waited_for.replace("_", " ")})`];
  };
  return [
    ...addressLines(evidence),
    ...(domain === null ? [] : domainLines(domain)),
    ...attempts.flatMap((attempt) => [...attemptLines(attempt), ...retryLines(attempt.number)]),
    ...(conclusion === null
      ? ["Verdict  none yet"]
      : [
          `Verdict  ${conclusion.verdict} (${conclusion.sub_status}), quality ${conclusion.quality_score}, confidence ${conclusion.confidence}`,
          `Because  ${conclusion.because}`,
        ]),
  ].join("\n");
};
