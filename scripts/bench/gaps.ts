import { join } from "node:path";
import { inTurns } from "../harness/world.ts";
import { postList, untilEnded } from "./bulk.ts";
import { FILL_EVIDENCE, SIZES, fillAccount } from "./dashboard-history.ts";
import { DOMAIN, largeMailOf, mailOf } from "./dmarc-mails.ts";
import { GROUP, GapMeter, WATCH, type Watched, spawnWatched } from "./gap-meter.ts";
import { latenciesDuring } from "./latencies.ts";
import { type Mark, percentile } from "./marks.ts";
import { listOf, startProviders } from "./providers.ts";
import { type Service, type Settings, type Stage, environment, newDataDir, openData, startServing } from "./stage.ts";

const DAY_MS = 86_400_000;
/** Older ones are purged: about a third of the checks, and two thirds of the evidence. */
const RETENTION: Settings = {
  POSTWARDEN_VERIFICATION_RETENTION_DAYS: "60",
  POSTWARDEN_EVIDENCE_RETENTION_DAYS: "30",
};

interface Purge {
  readonly meter: GapMeter;
  readonly dataDir: string;
  readonly what: "nightly" | "keys";
}

/** A purge, in a process of its own. */
const watchPurge = async (stage: Stage, what: string, { meter, dataDir, what: kind }: Purge): Promise<void> => {
  const env = environment({ ...RETENTION, POSTWARDEN_DATA_DIR: dataDir });
  const purge = spawnWatched(stage, [join(import.meta.dir, "purge-child.ts"), kind], env);
  await purge.ready;
  await meter.during(what, purge, () => purge.said);
  await purge.stop();
};

/** One API key at 25 requests/s for an hour, and some hours of that after a stop. */
const EXPIRED_KEYS = [90_000, 300_000];
const FILL_KEYS = `INSERT INTO idempotency_keys (key_id, idempotency_key, request_hash, resource_id, created_at_ms)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
  SELECT 'bench', lower(hex(randomblob(16))), lower(hex(randomblob(32))), lower(hex(randomblob(16))), ?2 + i FROM n`;

/** The hourly purge of Idempotency-Keys. */
const measureKeyPurge = async (stage: Stage, { meter, dataDir }: Omit<Purge, "what">): Promise<void> => {
  for (const keys of EXPIRED_KEYS) {
    const db = openData(dataDir);
    try {
      db.sqlite.query(FILL_KEYS).run(keys, Date.now() - 2 * DAY_MS);
    } finally {
      db.close();
    }
    const what = `purging ${keys.toLocaleString("en")} Idempotency-Keys`;
    await watchPurge(stage, what, { meter, dataDir, what: "keys" });
  }
};

/** The nightly purge, and the hourly one of Idempotency-Keys. */
const measurePurges = async (stage: Stage, { meter, dataDir }: Omit<Purge, "what">): Promise<void> => {
  await watchPurge(stage, "purging", { meter, dataDir, what: "nightly" });
  await measureKeyPurge(stage, { meter, dataDir });
};

const ROWS = 1_000_000;
const REPORTS = 2_000;
const LARGE_REPORT_ROWS = 50_000;
const DAY_S = 86_400;
const WARM_UP_MS = 2_000;
/** A list is not processed for longer. */
const PROCESSED_MS = 60_000;

const answered = async (response: Response, what: string): Promise<string> => {
  const text = await response.text();
  if (!response.ok) throw new Error(`${what} was answered with ${response.status}: ${text.slice(0, 200)}`);
  return text;
};

interface Account {
  readonly session: string;
  readonly live: string;
}

const fill = (dataDir: string, count: number): Account => {
  const db = openData(dataDir);
  try {
    const account = fillAccount(db, count);
    db.sqlite.run(FILL_EVIDENCE);
    return account;
  } finally {
    db.close();
  }
};

/** What a client does with a service, each step as it would be done. */
class Client {
  readonly #headers: { readonly authorization: string };

  constructor(
    private readonly service: Service,
    private readonly account: Account,
  ) {
    this.#headers = { authorization: `Bearer ${account.live}` };
  }

  get = async (path: string): Promise<string> =>
    answered(await fetch(this.service.url + path, { headers: this.#headers }), path);

  page = (path: string): Promise<Response> =>
    fetch(this.service.url + path, { headers: { cookie: `pw_session=${this.account.session}`, accept: "text/html" } });

  ask = (path: string, request: RequestInit): Promise<Response> => fetch(this.service.url + path, request);

  accept = (list: Blob): Promise<string> => postList(this.ask, this.account.live, list);

  /** Has a list processed for a while, then cancels what is left of it. */
  async process(id: string): Promise<void> {
    const path = `/v1/bulk-verifications/${id}`;
    const ended = untilEnded(this.ask, this.account.live, id, PROCESSED_MS).catch(() => null);
    if ((await ended) === null)
      await answered(await this.ask(`${path}/cancel`, { method: "POST", headers: this.#headers }), "a cancellation");
  }

  async enrol(): Promise<string> {
    const request = { method: "POST", headers: this.#headers, body: JSON.stringify({ domain: DOMAIN }) };
    const text = await answered(await this.ask("/v1/dmarc/domains", request), "the domain");
    return (JSON.parse(text) as { domain: { reporting_address: string } }).domain.reporting_address;
  }

  upload = async (bytes: Uint8Array): Promise<void> => {
    const request = { method: "POST", headers: this.#headers, body: new Blob([new Uint8Array(bytes)]) };
    await answered(await this.ask("/v1/dmarc/reports", request), "a report");
  };
}

const FILTERS = [
  "source=other",
  "email=nobody@any.example",
  "verdict=undeliverable&source=other",
  "sub_status=null_mx",
  "status=pending",
];
const PAGES = ["/verify?q=nobody-has-this", "/verify?verdict=risky", "/verify", "/usage", "/"];

interface Watching {
  readonly meter: GapMeter;
  readonly watched: Watched;
}

const measureReads = async (client: Client, { meter, watched }: Watching): Promise<void> => {
  for (const filter of FILTERS)
    await meter.during(`filter ${filter}`, watched, () => client.get(`/v1/email-verifications?${filter}`));
  for (const path of PAGES)
    await meter.during(`page ${path}`, watched, async () => answered(await client.page(path), path));
};

const measureReports = async (client: Client, { meter, watched }: Watching): Promise<void> => {
  const todayS = Math.floor(Date.now() / 1000 / DAY_S) * DAY_S;
  const to = await client.enrol();
  await meter.during(`importing ${REPORTS.toLocaleString("en")} reports`, watched, () =>
    inTurns(Array(REPORTS).keys(), 2, (n) => client.upload(mailOf(n, to, todayS))),
  );
  const large = largeMailOf(to, todayS, LARGE_REPORT_ROWS);
  await meter.during(`importing a report of ${LARGE_REPORT_ROWS.toLocaleString("en")} rows`, watched, () =>
    client.upload(large),
  );
};

const measureList = async (client: Client, rows: number, { meter, watched }: Watching): Promise<void> => {
  const list = listOf("real", rows, "gap");
  const startedMs = performance.now();
  const id = await meter.during("accepting a list", watched, () => client.accept(list));
  const acceptedS = (performance.now() - startedMs) / 1_000;
  const requests = { healthz: () => client.ask("/healthz", {}), page: () => client.page(`/lists/${id}`) };
  const times = await meter.during("processing it", watched, () => latenciesDuring(requests, client.process(id)));
  await meter.during("exporting it", watched, () => client.get(`/v1/bulk-verifications/${id}/results.csv`));
  await meter.during("rare text in it", watched, async () =>
    answered(await client.page(`/lists/${id}?q=nobody-has-this`), "a list"),
  );
  const size = `a list of ${rows.toLocaleString("en")} addresses`;
  const p99Of = (name: string) => ({
    value: percentile(times.get(name) ?? [], 0.99),
    unit: "ms",
    note: `while ${size} was processed`,
  });
  meter.marks.push(
    { group: GROUP, what: `${size} accepted`, value: acceptedS, unit: "s", limit: { most: 15 } },
    { group: GROUP, what: "/healthz, p99", ...p99Of("healthz"), limit: { most: 10 } },
    { group: GROUP, what: "the page of the list, p99", ...p99Of("page") },
  );
};

/** Loads what a process loads once, with the first request of its kind, and lets it release what its start needed. */
const warmUp = async (client: Client): Promise<void> => {
  await client.get("/v1/email-verifications?limit=1");
  for (const path of ["/", "/usage", "/verify"]) await answered(await client.page(path), path);
  await Bun.sleep(WARM_UP_MS);
};

const measureClient = async (stage: Stage, client: Client, watching: Watching): Promise<void> => {
  await warmUp(client);
  await measureReads(client, watching);
  await measureReports(client, watching);
  await measureList(client, ROWS / (stage.isQuick ? 10 : 1), watching);
};

/** The longest time for which the event loop is held by each piece of work that grows with what is stored. */
export const measureGaps = async (stage: Stage): Promise<Mark[]> => {
  const dataDir = await newDataDir(stage, GROUP);
  const account = fill(dataDir, SIZES.verifications / (stage.isQuick ? 10 : 1));
  const settings: Settings = { ...(await startProviders(stage, GROUP)), POSTWARDEN_REPORT_HOST: "reports.bench.test" };
  const bare = spawnWatched(stage, [WATCH], environment({}));
  const meter = new GapMeter(bare);
  try {
    const watched = Promise.withResolvers<Watched>();
    const service = await startServing(stage, { dataDir, settings }, (env) => {
      const spawned = spawnWatched(stage, "binary", env);
      watched.resolve(spawned);
      return spawned.child;
    });
    try {
      await measureClient(stage, new Client(service, account), { meter, watched: await watched.promise });
    } finally {
      await service.stop();
    }
    await measurePurges(stage, { meter, dataDir });
    return meter.marks;
  } finally {
    await bare.stop();
  }
};
