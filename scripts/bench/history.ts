import { systemClock } from "../../src/foundation/base/clock.ts";
import { AccountsSlice } from "../../src/accounts/open.ts";
import type { Mark } from "./marks.ts";
import { newDataDir, openData, type Stage, startBinary } from "./stage.ts";

const CHECKS = 1_000_000;
const AT_ONCE = 20;
const GAP_MS_MAX = 50;
const GAP_OF_MANY_MS_MAX = 100;
/** Filters that none of the checks pass: the whole history of the key is looked at. */
const FILTERS = ["source=other", "email=nobody@any.example", "verdict=risky", "status=pending"];

/** A key with a long history of checks. */
const prepare = (dataDir: string): string => {
  const db = openData(dataDir);
  try {
    const { accounts, keys } = new AccountsSlice({ db, clock: systemClock });
    if (!accounts.create("bench", "scale").ok) throw new Error("the account could not be made");
    const issued = keys.create({ account: "bench", mode: "test" });
    if (!issued.ok) throw new Error(`no key: ${issued.error}`);
    db.sqlite.run(
      `INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, source, status, verdict, sub_status,
        result, created_at_ms, completed_at_ms, attempts)
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
        SELECT printf('019aa0d6-5b7e-7c31-9f4c-%012d', i), k.account_id, k.id, 'test', printf('u%d@any.example', i),
          printf('u%d@any.example', i), 'bench', 'completed', 'deliverable', 'mailbox_exists',
          '{"filler":"' || hex(zeroblob(250)) || '"}', 1767225600000, 1767225600000, 1 FROM n, api_keys k WHERE k.id = ?`,
      [CHECKS, issued.value.id],
    );
    return issued.value.key;
  } finally {
    db.close();
  }
};

/** The longest that a request which needs nothing had to wait while `work` went on, in milliseconds. */
const gapDuring = async (url: string, work: Promise<unknown>): Promise<number> => {
  const over = new AbortController();
  const ended = work.finally(() => over.abort());
  let worst = 0;
  while (!over.signal.aborted) {
    const begunMs = performance.now();
    await (await fetch(`${url}/healthz`)).arrayBuffer();
    worst = Math.max(worst, performance.now() - begunMs);
  }
  await ended;
  return worst;
};

/** A filter of a list looks at a million checks: how long do others wait meanwhile? */
export const measureHistory = async (stage: Stage): Promise<Mark[]> => {
  const dataDir = await newDataDir(stage, "history");
  const key = prepare(dataDir);
  const service = await startBinary(stage, dataDir);
  try {
    const ask = async (filter: string): Promise<void> => {
      const headers = { authorization: `Bearer ${key}` };
      const response = await fetch(`${service.url}/v1/email-verifications?${filter}`, { headers });
      const text = await response.text();
      if (response.status !== 200) throw new Error(`${response.status} ${text}`);
    };
    await ask(FILTERS[0] ?? "");
    const single: number[] = [];
    for (const filter of FILTERS) single.push(await gapDuring(service.url, ask(filter)));
    const many = await gapDuring(
      service.url,
      Promise.all(Array.from({ length: AT_ONCE }, () => ask(FILTERS[0] ?? ""))),
    );
    const group = "history";
    const limit = { most: GAP_MS_MAX };
    const note = `${CHECKS.toLocaleString("en")} checks of one key, none passes`;
    return [
      { group, what: "longest wait of others during a filter", value: Math.max(...single), unit: "ms", limit, note },
      {
        group,
        what: `the same, ${AT_ONCE} filters at once`,
        value: many,
        unit: "ms",
        limit: { most: GAP_OF_MANY_MS_MAX },
        note,
      },
    ];
  } finally {
    await service.stop();
  }
};
