import { postList, startForLists, untilEnded } from "./bulk.ts";
import type { Mark } from "./marks.ts";
import { residentMbOf } from "../harness/binary.ts";
import type { Service, Stage } from "./stage.ts";

const ROWS = 1_000_000;
const PAGE_ROWS = 1_000;
const PAGES = 200;
const DOMAINS = 5_000;
const PATH = "/v1/bulk-verifications";

const listOf = function* () {
  yield "id,name,email,city\n";
  for (let row = 0; row < ROWS; row++)
    yield `${row},Name ${row},user${(row * 7_919) % ROWS}@domain${row % DOMAINS}.example,City ${row % 300}\n`;
};

/** The worst wait for a small answer, and the most memory, while something else goes on. */
export const watch = ({ url, pid }: Service) => {
  let [worstMs, mostMb, over] = [0, 0, false];
  const done = (async () => {
    while (!over) {
      const startedMs = performance.now();
      await (await fetch(`${url}/healthz`)).text();
      worstMs = Math.max(worstMs, performance.now() - startedMs);
      mostMb = Math.max(mostMb, residentMbOf(pid));
      await Bun.sleep(2);
    }
  })();
  return async () => {
    over = true;
    await done;
    return { worstMs, mostMb };
  };
};

const readPages = async ({ url }: Service, key: string, id: string): Promise<number> => {
  const headers = { authorization: `Bearer ${key}` };
  const startedMs = performance.now();
  let cursor = "";
  for (let page = 0; page < PAGES; page++) {
    const answer = await fetch(`${url}${PATH}/${id}/items?limit=${PAGE_ROWS}${cursor}`, { headers });
    const next = /"next_cursor":"([^"]+)"\}$/.exec(await answer.text())?.[1];
    if (next === undefined) throw new Error("a page without a cursor");
    cursor = `&cursor=${next}`;
  }
  return (PAGES * PAGE_ROWS) / ((performance.now() - startedMs) / 1000);
};

const readExport = async ({ url }: Service, key: string, id: string): Promise<number> => {
  const startedMs = performance.now();
  const answer = await fetch(`${url}${PATH}/${id}/results.csv`, { headers: { authorization: `Bearer ${key}` } });
  if (answer.body === null) throw new Error("an empty export");
  let lines = 0;
  for await (const chunk of answer.body) for (const byte of chunk) if (byte === 10) lines++;
  if (lines !== ROWS + 1) throw new Error(`${lines} lines were exported`);
  return ROWS / ((performance.now() - startedMs) / 1000);
};

/** A list of a million rows goes in and comes out, with a test key. */
export const measureBulkList = async (stage: Stage): Promise<Mark[]> => {
  const { service, ask, test } = await startForLists(stage, "bulk-list");
  try {
    const list = new Blob([[...listOf()].join("")]);
    const stopReceiving = watch(service);
    const startedMs = performance.now();
    const id = await postList(ask, test, list);
    const seconds = (performance.now() - startedMs) / 1000;
    const receiving = await stopReceiving();
    await untilEnded(ask, test, id);
    const pages = await readPages(service, test, id);
    const stopExporting = watch(service);
    const beforeMb = residentMbOf(service.pid);
    const exported = await readExport(service, test, id);
    const exporting = await stopExporting();
    const group = "bulk-list";
    const note = "as seen by requests meanwhile";
    return [
      { group, what: "a CSV of 1,000,000 rows accepted", value: seconds, unit: "s", limit: { most: 15 } },
      { group, what: "memory meanwhile", value: receiving.mostMb, unit: "MB", limit: { most: 300 } },
      { group, what: "longest gap meanwhile", value: receiving.worstMs, unit: "ms", limit: { most: 50 }, note },
      { group, what: "pages of 1,000 items", value: Math.round(pages), unit: "rows/s", limit: { least: 50_000 } },
      { group, what: "results.csv", value: Math.round(exported), unit: "rows/s", limit: { least: 100_000 } },
      {
        group,
        what: "memory that results.csv adds",
        value: exporting.mostMb - beforeMb,
        unit: "MB",
        limit: { most: 100 },
      },
      { group, what: "longest gap meanwhile", value: exporting.worstMs, unit: "ms", limit: { most: 50 }, note },
    ];
  } finally {
    await service.stop();
  }
};
