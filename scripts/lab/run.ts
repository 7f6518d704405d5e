import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createAccount } from "../harness/binary.ts";
import { type Asked, type Bench, type Subject, askByCommandLine, askByHttp } from "./ask.ts";
import { HTTP, SERVICE_SENDER } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";
import type { Row } from "./table.ts";
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
const evidenceLines = (evidence: unknown): string[] => {
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

/** Rows that are under way at once. Each starts the command line too: more of them leave two slow processors too little for the replies. */
const ROWS_AT_ONCE = 6;
const CREDITS = 10_000;

/** The quality score that each verdict allows, both ends included. */
const QUALITY: Readonly<Record<Row["verdict"], readonly [number, number]>> = {
  deliverable: [80, 100],
  risky: [30, 79],
  undeliverable: [0, 20],
};

/** A row with both answers. It is right when both gave the expected verdict and sub_status, a score that fits, in time. */
export interface Judged {
  readonly row: Row;
  readonly cli: Asked;
  /** Null for a row with settings of its own. */
  readonly http: Asked | null;
  readonly late: boolean;
  readonly right: boolean;
  /** For a row that is not right: what the binary heard, line by line. */
  readonly doubts: readonly string[];
}

/** Starts `serve` on one of the lab's HTTP addresses and returns a live key with credits enough for every row. */
export const startService = async (
  supervisor: Supervisor,
  subject: Subject,
  { name, ip, port } = { name: "serve", ...HTTP } as {
    readonly name: string;
    readonly ip: string;
    readonly port: number;
  },
): Promise<string> => {
  // A sender of its own, so that greylisting meets the service afresh after the command line has passed.
  const env = {
    ...subject.environment,
    POSTWARDEN_DATA_DIR: join(subject.directory, `${name}-data`),
    POSTWARDEN_MAIL_FROM: SERVICE_SENDER,
  };
  await mkdir(env.POSTWARDEN_DATA_DIR);
  const key = createAccount("lab", { env, binary: subject.binary, cwd: "/", credits: CREDITS });
  supervisor.start({
    name,
    argv: [subject.binary, "serve"],
    env: { ...env, POSTWARDEN_HOST: ip, POSTWARDEN_PORT: String(port) },
  });
  await supervisor.waitForPort(name, ip, port);
  return key;
};

const judge = async (bench: Bench, row: Row, index: number): Promise<Judged> => {
  const asking = row.environment === null ? askByHttp(bench, row) : null;
  const [cli, http] = await Promise.all([askByCommandLine(bench, row, index), asking]);
  const answers = { "by command line": cli, ...(http === null ? {} : { "by HTTP": http }) };
  const isLate = ({ elapsedMs }: Asked): boolean => elapsedMs > 1000 * row.limitS;
  const [least, most] = QUALITY[row.verdict];
  const isRight = ({ verdict, subStatus, quality }: Asked): boolean =>
    verdict === row.verdict && subStatus === row.subStatus && quality >= least && quality <= most;
  const doubts: string[] = [];
  for (const [way, asked] of Object.entries(answers)) {
    if (!isRight(asked) || isLate(asked))
      doubts.push(`${row.address} ${way}:`, ...evidenceLines(await asked.evidence()));
  }
  return { row, cli, http, late: Object.values(answers).some(isLate), right: doubts.length === 0, doubts };
};

/** Asks the binary about every row, by command line and by HTTP, and answers in the order of `rows`. */
export const runTable = async (
  bench: Bench,
  rows: readonly Row[],
  tell: (judged: Judged) => void,
): Promise<readonly Judged[]> => {
  // The slowest first, so that the run does not end with one row and nobody else at work.
  const queue = [...rows.entries()].toSorted(([, a], [, b]) => b.limitS - a.limitS);
  const judged: { readonly index: number; readonly result: Judged }[] = [];
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, row] = next;
      const result = await judge(bench, row, index);
      judged.push({ index, result });
      tell(result);
    }
  };
  await Promise.all(Array.from({ length: ROWS_AT_ONCE }, work));
  return judged.toSorted((a, b) => a.index - b.index).map(({ result }) => result);
};
