import { z } from "zod";
import { HTTP } from "./hosts.ts";
import type { Row } from "./table.ts";

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
export interface Listed {
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
