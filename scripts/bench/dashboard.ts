import { encodeResponse, soaFor, startDnsServer } from "../../src/testing/dns-server.ts";
import { cpuSecondsOf } from "../harness/binary.ts";
import { postList, untilEnded } from "./bulk.ts";
import { fillAccount, SIZES } from "./dashboard-history.ts";
import { fillHistory, HISTORY } from "./dmarc-history.ts";
import { type Mark, median, percentile } from "./marks.ts";
import { newDataDir, openData, type Service, type Settings, type Stage, startBinary } from "./stage.ts";

const GROUP = "dashboard";
const CALLS = 100;
const WARM_UP_CALLS = 10;
const MEDIAN_MS_MAX = 15;
const DAY_MS = 86_400_000;
/** The minimum length of a page that contains the history. */
const CHARACTERS_MIN = 4_000;

interface Prepared {
  readonly service: Service;
  readonly session: string;
  readonly domainId: string;
  readonly listId: string;
  readonly targetId: string;
}

const enrol = async ({ url }: Service, key: string): Promise<string> => {
  const headers = { authorization: `Bearer ${key}` };
  const body = JSON.stringify({ domain: "history-lab.com" });
  const answer = await fetch(`${url}/v1/dmarc/domains`, { method: "POST", headers, body });
  const { domain } = (await answer.json()) as { domain?: { id: string } };
  if (domain === undefined) throw new Error(`the domain was answered with ${answer.status}`);
  return domain.id;
};

const prepare = async (stage: Stage, settings: Settings): Promise<Prepared> => {
  const dataDir = await newDataDir(stage, GROUP);
  const db = openData(dataDir);
  const { session, live, test } = fillAccount(db);
  const first = await startBinary(stage, dataDir, settings);
  const domainId = await enrol(first, live);
  const rows = Array.from({ length: SIZES.rows }, (_, row) => `user${row}@domain${row % 500}.example`);
  const ask = (path: string, init: RequestInit) => fetch(first.url + path, init);
  const listId = await postList(ask, test, `email\n${rows.join("\n")}\n`);
  await untilEnded(ask, test, listId);
  await first.stop();
  fillHistory(db, domainId, Math.floor(Date.now() / DAY_MS) - 1);
  const target = db.sqlite.query("SELECT id FROM blocklist_targets WHERE status = 'listed' LIMIT 1").get() as {
    id: string;
  };
  db.close();
  return { service: await startBinary(stage, dataDir, settings), session, domainId, listId, targetId: target.id };
};

interface Timing {
  /** From the request to the last byte, one request at a time. */
  readonly timesMs: readonly number[];
  /** Of the service, for each page: also meaningful on a machine that is busy with something else. */
  readonly processorMs: number;
}

const timesOf = async ({ service, session }: Prepared, path: string): Promise<Timing> => {
  const headers = { cookie: `pw_session=${session}`, accept: "text/html" };
  const timesMs: number[] = [];
  let startedS = 0;
  for (let call = 0; call < WARM_UP_CALLS + CALLS; call++) {
    if (call === WARM_UP_CALLS) startedS = cpuSecondsOf(service.pid);
    const startedMs = performance.now();
    const answer = await fetch(service.url + path, { headers, redirect: "manual" });
    const text = await answer.text();
    if (call >= WARM_UP_CALLS) timesMs.push(performance.now() - startedMs);
    if (answer.status !== 200) throw new Error(`${path} was answered with ${answer.status}`);
    if (text.length < CHARACTERS_MIN) throw new Error(`${path} has only ${text.length} characters`);
  }
  return { timesMs, processorMs: ((cpuSecondsOf(service.pid) - startedS) * 1_000) / CALLS };
};

/** Every page about a domain. */
const dmarcPages = (path: string): ReadonlyArray<readonly [path: string, what: string]> => {
  const from = new Date(Date.now() - HISTORY.days * DAY_MS).toISOString().slice(0, 10);
  return [
    [path, "a DMARC domain"],
    [`${path}?days=90`, "the same, 90 days"],
    [`${path}/sources`, `its ${HISTORY.sources} sources`],
    [`${path}/sources?days=90`, "the same, 90 days"],
    [`${path}/sources/own?days=90`, "a source, 90 days"],
    [`${path}/advice`, "advice"],
    [`${path}/health`, "health"],
    [`${path}/record`, "record"],
    [`${path}/reports`, "reports"],
    [`${path}/reports?from=${from}&reporter=reporter3.example`, "reports of a reporter, 90 days"],
    [`${path}/reports?from=${from}&reporter=nobody.example`, "the same, none found"],
    [`${path}/reports?from=${from}&authenticity=fail`, "reports in forged mail, 90 days, none found"],
    [`${path}/tls`, "TLS reports"],
    [`${path}/alerts`, "alerts"],
  ];
};

/** The pages that people open every day, of an account with a long history. */
export const measureDashboard = async (stage: Stage): Promise<Mark[]> => {
  const dns = await startDnsServer((query) => encodeResponse(query, { rcode: 3, authorities: [soaFor(query.name)] }));
  const prepared = await prepare(stage, {
    POSTWARDEN_DNS_SERVERS: `${dns.server.address}:${dns.server.port}`,
    POSTWARDEN_REPORT_HOST: "reports.bench.test",
  });
  const { domainId, listId, targetId } = prepared;
  const verifications = `${SIZES.verifications.toLocaleString("en")} verifications`;
  const reports = `${HISTORY.reports.toLocaleString("en")} reports`;
  const targets = `${SIZES.targets.toLocaleString("en")} targets`;
  const pages: ReadonlyArray<readonly [path: string, what: string, of: string]> = [
    ["/", "home", `${verifications}, ${reports}, ${targets}`],
    ["/verify", "history of verifications", verifications],
    ["/verify?verdict=risky", "the same, risky ones", verifications],
    [`/test/lists/${listId}`, "a list", `${SIZES.rows.toLocaleString("en")} rows`],
    ["/dmarc", "DMARC domains", reports],
    ...dmarcPages(`/dmarc/${domainId}`).map(([path, what]) => [path, what, reports] as const),
    ["/blocklists", "blocklist targets", targets],
    [`/blocklists/${targetId}`, "a target", targets],
    ["/usage", "usage", verifications],
  ];
  try {
    const marks: Mark[] = [];
    for (const [path, what, of] of pages) {
      const timing = await timesOf(prepared, path).catch((error: unknown) => String(error));
      const isMeasured = typeof timing !== "string";
      const note = isMeasured
        ? `p99 ${percentile(timing.timesMs, 0.99).toFixed(1)} ms, processor ${timing.processorMs.toFixed(1)} ms; ${of}`
        : timing;
      const value = isMeasured ? median(timing.timesMs) : null;
      marks.push({ group: GROUP, what, value, unit: "ms", limit: { most: MEDIAN_MS_MAX }, note });
    }
    return marks;
  } finally {
    await prepared.service.stop();
    dns.stop();
  }
};
