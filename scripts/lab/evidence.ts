import { z } from "zod";

/** Questions to DNS that took less, and had an answer, are left out. */
const SLOW_QUESTION_MS = 500;
const LINE_CHARACTERS_MAX = 160;
const HARMLESS: ReadonlySet<string> = new Set(["response", "no_data", "nxdomain"]);

const Question = z.object({ name: z.string(), type: z.string(), outcome: z.string(), elapsed_ms: z.number() });
const Session = z.object({
  host: z.string(),
  address: z.string(),
  started_at: z.string(),
  failure: z.object({ stage: z.string(), kind: z.string() }).nullable(),
  transcript: z.array(z.object({ at_ms: z.number(), from: z.string(), text: z.string() })),
});
/** What of the evidence is printed; the rest is for other readers. */
const Evidence = z.object({
  domain: z.object({ outcome: z.string(), dns_queries: z.array(Question) }).nullable(),
  attempts: z.array(z.object({ started_at: z.string(), finished_at: z.string(), sessions: z.array(Session) })),
});

const sessionLines = ({ host, address, started_at, failure, transcript }: z.infer<typeof Session>): string[] => [
  `    ${started_at} ${host} ${address}${failure === null ? "" : ` failed at ${failure.stage}: ${failure.kind}`}`,
  ...transcript.map(({ at_ms, from, text }) =>
    `      ${at_ms} ${from}: ${JSON.stringify(text)}`.slice(0, LINE_CHARACTERS_MAX),
  ),
];

/** The evidence of one answer as lines: slow or failed queries to DNS, and what was said to whom, with the times. */
export const evidenceLines = (evidence: unknown): string[] => {
  const parsed = Evidence.safeParse(evidence);
  if (!parsed.success) return [`  no readable evidence: ${JSON.stringify(evidence).slice(0, LINE_CHARACTERS_MAX)}`];
  const { domain, attempts } = parsed.data;
  const queries = (domain?.dns_queries ?? []).filter(
    ({ outcome, elapsed_ms }) => !HARMLESS.has(outcome) || elapsed_ms >= SLOW_QUESTION_MS,
  );
  return [
    `  DNS: ${domain?.outcome ?? "not asked"}`,
    ...queries.map(({ name, type, outcome, elapsed_ms }) => `    ${name} ${type}: ${outcome}, ${elapsed_ms} ms`),
    ...attempts.flatMap(({ started_at, finished_at, sessions }) => [
      `  attempt from ${started_at} to ${finished_at}`,
      ...sessions.flatMap(sessionLines),
    ]),
  ];
};
