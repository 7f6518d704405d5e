import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { HTTP } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";
import type { Row } from "./table.ts";
import { z } from "zod";

/** How long one row may take by either way before it is given up. */
const ROW_DEADLINE_MS = 60_000;
/** What the HTTP call is held open for; the longest row has to end within it. */
const HTTP_TIMEOUT_S = 50;
const HTTP_TRIES_MAX = 40;
const VERIFICATIONS = `http://${HTTP.ip}:${HTTP.port}/v1/email-verifications`;

const Outcome = z.object({
  verdict: z.string(),
  sub_status: z.string(),
  quality_score: z.number(),
  confidence: z.number(),
});
const Printed = Outcome.extend({ evidence: z.unknown() });
const Answer = z.object({ id: z.string(), status: z.string(), result: Outcome.optional() });

/** What one way of asking said about one row; `problem` when it said nothing usable. */
export interface Asked {
  readonly verdict: string;
  readonly subStatus: string;
  readonly quality: number;
  readonly confidence: number;
  readonly elapsedMs: number;
  readonly problem?: string;
  /** Fetches the evidence behind the answer, for those who doubt it. */
  readonly evidence: () => Promise<unknown>;
}

/** The binary, the environment that points it at the lab, and a directory for its data. */
export interface Subject {
  readonly binary: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly directory: string;
}

/** All that asking needs: `key` is the live key of the running service. */
export interface Bench {
  readonly supervisor: Supervisor;
  readonly subject: Subject;
  readonly key: string;
}

const asked = (outcome: z.infer<typeof Outcome>, sinceMs: number, evidence: () => Promise<unknown>): Asked => ({
  verdict: outcome.verdict,
  subStatus: outcome.sub_status,
  quality: outcome.quality_score,
  confidence: outcome.confidence,
  elapsedMs: Math.round(performance.now() - sinceMs),
  evidence,
});

const nothing = (problem: string, sinceMs: number): Asked => ({
  verdict: "-",
  subStatus: "-",
  quality: 0,
  confidence: 0,
  elapsedMs: Math.round(performance.now() - sinceMs),
  problem,
  evidence: async () => null,
});

/** Asks by `postwarden verify`, in a fresh data directory. */
export const askByCommandLine = async ({ supervisor, subject }: Bench, row: Row, index: number): Promise<Asked> => {
  const sinceMs = performance.now();
  const dataDirectory = join(subject.directory, `cli-${index}`);
  await mkdir(dataDirectory);
  const ended = await supervisor.finish([subject.binary, "verify", "--json", "--evidence", "--", row.address], {
    cwd: dataDirectory,
    env: { ...subject.environment, ...row.environment, POSTWARDEN_DATA_DIR: dataDirectory },
    timeoutMs: ROW_DEADLINE_MS,
  });
  try {
    const printed = Printed.parse(JSON.parse(ended.stdout));
    return asked(printed, sinceMs, async () => printed.evidence);
  } catch {
    return nothing(`exit ${ended.code ?? "by signal"}: ${(ended.stdout + ended.stderr).slice(0, 300)}`, sinceMs);
  }
};

const post = async (headers: Readonly<Record<string, string>>, row: Row): Promise<Asked> => {
  let sinceMs = performance.now();
  let last = "";
  for (let tries = 0; tries < HTTP_TRIES_MAX; tries += 1) {
    sinceMs = performance.now();
    const response = await fetch(`${VERIFICATIONS}?timeout=${HTTP_TIMEOUT_S}`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ email: row.address }),
      signal: AbortSignal.timeout(ROW_DEADLINE_MS),
    });
    const body = await response.text();
    last = `${response.status} ${body.slice(0, 300)}`;
    if (response.status !== 429) {
      const answer = Answer.safeParse(response.status === 200 ? JSON.parse(body) : {});
      if (!answer.success || answer.data.result === undefined) break;
      const { id, result } = answer.data;
      return asked(result, sinceMs, async () => (await fetch(`${VERIFICATIONS}/${id}/evidence`, { headers })).json());
    }
    await Bun.sleep(1000 * Number(response.headers.get("retry-after") ?? "1"));
  }
  return nothing(last, sinceMs);
};

/** Asks the running service; the time is that of the call which was not turned away for its rate. */
export const askByHttp = async ({ key }: Bench, row: Row): Promise<Asked> => {
  const sinceMs = performance.now();
  return post({ authorization: `Bearer ${key}` }, row).catch((error: unknown) => nothing(String(error), sinceMs));
};

const LISTS = `http://${HTTP.ip}:${HTTP.port}/v1/bulk-verifications`;
const ROWS = 2_000;
const END_MS_MAX = 180_000;

const Job = z.object({
  id: z.string(),
  status: z.string(),
  addresses: z.object({ total: z.number(), finished: z.number() }),
  credits: z.object({ held: z.number(), charged: z.number(), released: z.number() }),
});
const Page = z.object({
  emails: z.array(
    z.object({
      row_index: z.number(),
      submitted_email: z.string(),
      result: z.object({ verdict: z.string(), sub_status: z.string() }).nullable(),
    }),
  ),
  next_cursor: z.string().nullable(),
});

/** What came of a list of the lab's addresses. */
interface Listed {
  readonly addresses: number;
  readonly seconds: number;
  /** A sentence for each address, or for the job, that did not turn out as it had to. */
  readonly wrong: readonly string[];
}

const itemsOf = async (id: string, headers: Record<string, string>) => {
  const items: z.infer<typeof Page>["emails"] = [];
  let cursor = "";
  for (;;) {
    const answer = await fetch(`${LISTS}/${id}/items?limit=1000${cursor}`, { headers });
    const page = Page.parse(await answer.json());
    items.push(...page.emails);
    if (page.next_cursor === null) return items;
    cursor = `&cursor=${page.next_cursor}`;
  }
};

const wrongItems = (rows: readonly Row[], items: z.infer<typeof Page>["emails"]): string[] => {
  const sentences = rows.flatMap((row, index) => {
    const item = items[index];
    if (item === undefined || item.row_index !== index || item.submitted_email !== row.address)
      return [`row ${index} is not ${row.address}`];
    const { verdict = "-", sub_status: subStatus = "-" } = item.result ?? {};
    if (verdict === row.verdict && subStatus === row.subStatus) return [];
    return [`${row.address}: ${verdict} ${subStatus} instead of ${row.verdict} ${row.subStatus} (${row.truth})`];
  });
  return [...new Set(sentences)];
};

/** Has the service work off one list of 2,000 rows over all servers: the table's addresses again and again. */
export const askList = async (key: string, table: readonly Row[]): Promise<Listed> => {
  const known = table.filter(({ environment }) => environment === null);
  const rows = Array.from({ length: known.length === 0 ? 0 : ROWS }, (_, at) => known[at % known.length]).filter(
    (row) => row !== undefined,
  );
  if (rows.length === 0) return { addresses: 0, seconds: 0, wrong: [] };
  const headers = { authorization: `Bearer ${key}` };
  const startedMs = performance.now();
  const body = JSON.stringify({ emails: rows.map(({ address }) => address) });
  const accepted = await fetch(LISTS, { method: "POST", headers, body });
  if (accepted.status !== 202)
    throw new Error(`the list was answered with ${accepted.status}: ${await accepted.text()}`);
  let job = Job.parse(await accepted.json());
  for (const endsAtMs = startedMs + END_MS_MAX; performance.now() < endsAtMs; await Bun.sleep(200)) {
    job = Job.parse(await (await fetch(`${LISTS}/${job.id}`, { headers })).json());
    if (job.status !== "queued" && job.status !== "running") break;
  }
  const wrong = wrongItems(rows, await itemsOf(job.id, headers));
  const { held, charged, released } = job.credits;
  if (job.status !== "completed") wrong.push(`the job is ${job.status}`);
  if (held !== 0 || charged + released !== job.addresses.total)
    wrong.push(`${held} credits held, ${charged} charged, ${released} released for ${job.addresses.total} addresses`);
  return { addresses: job.addresses.total, seconds: (performance.now() - startedMs) / 1000, wrong };
};

export const listText = ({ addresses, seconds, wrong }: Listed): string =>
  [
    `A list of ${ROWS.toLocaleString("en")} rows, ${addresses} addresses, in ${seconds.toFixed(1)} s: ${wrong.length} wrong`,
    ...wrong.map((sentence) => `  ${sentence}`),
  ].join("\n");
