import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { encodeResponse, startDnsServer, soaFor } from "../../src/testing/dns-server.ts";
import { createStream } from "../chaos/dmarc-stream.ts";
import { type BulkService, startForLists } from "./bulk.ts";
import { fillHistory, HISTORY } from "./dmarc-history.ts";
import { DOMAIN, mailOf, messagesOf } from "./dmarc-mails.ts";
import { measureRival } from "./dmarc-rival.ts";
import type { Mark } from "./marks.ts";
import { peakMbOf } from "../harness/binary.ts";
import { environment, freePort, keep, openData, type Settings, type Stage } from "./stage.ts";

const GROUP = "dmarc";
const MAILS = 10_000;
const CONNECTIONS = 20;
const CALLS = 50;
const END_MS_MAX = 60_000;
const DAY_S = 86_400;
const PATH = "/v1/dmarc/domains";
const todayS = Math.floor(Date.now() / 1000 / DAY_S) * DAY_S;
const MESSAGES = Array.from({ length: MAILS }, (_, n) => messagesOf(n)).reduce((sum, n) => sum + n, 0);

interface Enrolled {
  readonly id: string;
  readonly address: string;
}

const enrol = async ({ ask, live }: BulkService, domain: string): Promise<Enrolled> => {
  const headers = { authorization: `Bearer ${live}` };
  const answer = await ask(PATH, { method: "POST", headers, body: JSON.stringify({ domain }) });
  const body = (await answer.json()) as { domain?: { id: string; reporting_address: string } };
  if (body.domain === undefined) throw new Error(`${domain} was answered with ${answer.status}`);
  return { id: body.domain.id, address: body.domain.reporting_address };
};

/** What is stored: reports and messages, and what still waits to be read. */
const storedIn = (dataDir: string) => {
  const db = openData(dataDir);
  const count = (query: string) => (db.sqlite.query(query).get() as { n: number }).n;
  const stored = {
    reports: count("SELECT count(*) AS n FROM dmarc_reports WHERE is_complete = 1"),
    messages: count("SELECT coalesce(sum(messages), 0) AS n FROM dmarc_daily"),
    pending: count("SELECT count(*) AS n FROM dmarc_ingestions WHERE status = 'pending'"),
  };
  db.close();
  return stored;
};

const wrongIn = ({ reports, messages, pending }: ReturnType<typeof storedIn>): number =>
  Math.abs(MAILS - reports) + Math.abs(MESSAGES - messages) + pending;

const PEAK_EVERY_MS = 50;

const perSecond = (count: number, sinceMs: number): number =>
  Math.round(count / ((performance.now() - sinceMs) / 1000));

/** A directory of mails goes in by the command line. */
const measureImport = async (stage: Stage, settings: Settings, mails: string) => {
  const name = "dmarc-import";
  const running = await startForLists(stage, name, settings);
  const { address } = await enrol(running, DOMAIN);
  await running.service.stop();
  await mkdir(mails, { recursive: true });
  for (let n = 0; n < MAILS; n++)
    await Bun.write(join(mails, `${String(n).padStart(6, "0")}.eml`), mailOf(n, address, todayS));
  const dataDir = join(stage.directory, name);
  const env = environment({ ...settings, POSTWARDEN_DATA_DIR: dataDir });
  const argv = [stage.binary, "dmarc", "import", mails, "--account", "bench", "--json"];
  const startedMs = performance.now();
  const child = Bun.spawn(argv, { cwd: dataDir, env, stdio: ["ignore", "ignore", "pipe"] });
  const stop = keep(stage, child);
  const said = new Response(child.stderr).text();
  const ended = child.exited;
  // The peak that a child reports at its end includes the memory of its parent at the fork.
  let mb = 0;
  while ((await Promise.race([ended, Bun.sleep(PEAK_EVERY_MS).then(() => null)])) === null)
    mb = Math.max(mb, peakMbOf(child.pid));
  const code = await ended;
  const rate = perSecond(MAILS, startedMs);
  await stop();
  if (code !== 0) throw new Error(`dmarc import ended with ${code}: ${await said}`);
  return { rate, mb, wrong: wrongIn(storedIn(dataDir)) };
};

/** The same mails come in by SMTP. */
const measureReception = async (stage: Stage, settings: Settings) => {
  const name = "dmarc-smtp";
  const place = { ip: "127.0.0.1", port: freePort() };
  const running = await startForLists(stage, name, {
    ...settings,
    POSTWARDEN_REPORT_LISTEN: `${place.ip}:${place.port}`,
  });
  try {
    const { address } = await enrol(running, DOMAIN);
    const parcels = Array.from({ length: MAILS }, (_, n) => mailOf(n, address, todayS));
    const parcelOf = (n: number) => ({
      from: "dmarc@reporter.example",
      to: address,
      bytes: parcels[n] ?? new Uint8Array(),
    });
    const stream = createStream(place, MAILS, { connections: CONNECTIONS, parcelOf });
    const startedMs = performance.now();
    const sending = stream.send(2 * MAILS);
    await Promise.race([sending.done, Bun.sleep(END_MS_MAX)]);
    sending.stop();
    const accepted = perSecond(stream.acknowledged.size, startedMs);
    const dataDir = join(stage.directory, name);
    let stored = storedIn(dataDir);
    for (; performance.now() - startedMs < END_MS_MAX && stored.reports < MAILS; stored = storedIn(dataDir))
      await Bun.sleep(50);
    const rate = perSecond(stored.reports, startedMs);
    return { accepted, rate, mb: peakMbOf(running.service.pid), wrong: wrongIn(stored) };
  } finally {
    await running.service.stop();
  }
};

const p95 = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.95) - 1] ?? Number.NaN;

/** A domain with a long history is looked at. */
const measureReading = async (stage: Stage, settings: Settings) => {
  const name = "dmarc-reading";
  const running = await startForLists(stage, name, settings);
  try {
    const { id } = await enrol(running, "history-lab.com");
    const db = openData(join(stage.directory, name));
    const messages = fillHistory(db, id, todayS / DAY_S - 1);
    db.close();
    const isoDay = (s: number) => new Date(s * 1000).toISOString().slice(0, 10);
    const range = `from=${isoDay(todayS - HISTORY.days * DAY_S)}&to=${isoDay(todayS)}`;
    const timesOf = async (what: string): Promise<number[]> => {
      const times: number[] = [];
      for (let call = 0; call < CALLS; call++) {
        const startedMs = performance.now();
        const answer = await running.ask(`${PATH}/${id}/${what}`, {
          headers: { authorization: `Bearer ${running.live}` },
        });
        const text = await answer.text();
        times.push(performance.now() - startedMs);
        if (answer.status !== 200) throw new Error(`${what} was answered with ${answer.status}: ${text}`);
        if (what.startsWith("summary") && !text.includes(String(messages)))
          throw new Error(`${messages} messages are not in ${text}`);
      }
      return times;
    };
    return {
      summary: p95(await timesOf(`summary?${range}`)),
      sources: p95(await timesOf(`sources?${range}`)),
      records: p95(await timesOf(`records?${range}&limit=100`)),
    };
  } finally {
    await running.service.stop();
  }
};

/** Reports come in as files and as mails, beside how Mail::DMARC does it, and a long history is read. */
export const measureDmarc = async (stage: Stage): Promise<Mark[]> => {
  // Nobody publishes anything: whether mails are authentic is asked, and answered at once.
  const dns = await startDnsServer((query) => encodeResponse(query, { rcode: 3, authorities: [soaFor(query.name)] }));
  const settings: Settings = {
    POSTWARDEN_DNS_SERVERS: `${dns.server.address}:${dns.server.port}`,
    POSTWARDEN_REPORT_HOST: "reports.bench.test",
  };
  try {
    const mails = join(stage.directory, "dmarc-mails");
    const imported = await measureImport(stage, settings, mails);
    const received = await measureReception(stage, settings);
    const rival = await measureRival(stage, mails);
    const reading = await measureReading(stage, settings);
    const figure = (what: string, value: number, unit: string): Mark => ({ group: GROUP, what, value, unit });
    const least = (limit: number) => ({ limit: { least: limit } });
    const most = (limit: number) => ({ limit: { most: limit } });
    const note = `${rival.reports} reports, ${rival.rows} rows, into SQLite`;
    const long = `${HISTORY.reports.toLocaleString("en")} reports of ${HISTORY.rows} rows; 95 of 100 calls`;
    return [
      { ...figure("reports imported", imported.rate, "/s"), ...least(2_000), note: `${MAILS} mails of 10 rows` },
      { ...figure("memory of the import", imported.mb, "MB"), ...most(150), note: "at its peak" },
      { ...figure("mails accepted by SMTP", received.accepted, "/s"), ...least(1_000), note: "20 connections" },
      { ...figure("until all are stored", received.rate, "/s"), ...least(1_500) },
      { ...figure("memory of the service", received.mb, "MB"), ...most(150), note: "at its peak" },
      { ...figure("reports, messages or mails missing", imported.wrong + received.wrong, ""), ...most(0) },
      { ...figure("Mail::DMARC stores", rival.perSecond, "/s"), note },
      figure("import over Mail::DMARC", imported.rate / rival.perSecond, ""),
      { ...figure("summary of 90 days", reading.summary, "ms"), ...most(20), note: long },
      { ...figure("sources of 90 days", reading.sources, "ms"), ...most(100), note: long },
      { ...figure("100 records of 90 days", reading.records, "ms"), note: long },
    ];
  } finally {
    dns.stop();
  }
};
