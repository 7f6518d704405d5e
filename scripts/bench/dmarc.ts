import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { encodeResponse, soaFor, startDnsServer } from "../../src/testing/dns-server.ts";
import { createStream } from "../chaos/dmarc-stream.ts";
import { peakMbOf } from "../harness/binary.ts";
import { freePort } from "../harness/world.ts";
import { ensureReporters } from "../lab/packages.ts";
import { type BulkService, startForLists } from "./bulk.ts";
import { HISTORY, fillHistory } from "./dmarc-history.ts";
import { DOMAIN, mailOf, messagesOf } from "./dmarc-mails.ts";
import { type CpuTimes, cpuMarks, startCpuMeter } from "./cpu.ts";
import { type Mark, percentile } from "./marks.ts";
import { type Settings, type Stage, environment, keep, openData } from "./stage.ts";

const CACHE = resolve(import.meta.dir, "../../node_modules/.cache/postwarden-lab");
/** The duration of the rival's run, which then stops by itself. */
const SECONDS = 20;

const SCRIPT = `use strict; use warnings; use Time::HiRes 'time'; use Mail::DMARC::Report::Receive;
my ($directory, $seconds) = @ARGV; my ($count, $begin) = (0, time);
my $receive = Mail::DMARC::Report::Receive->new();
open my $out, '>&', \\*STDOUT; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null';
for my $file (sort glob "$directory/*.eml") { last if time - $begin > $seconds; $receive->from_file($file); $count++; }
my $stored = $receive->report->store->backend->query('SELECT count(*) AS n FROM report_record')->[0]{n};
print $out join(' ', $count, time - $begin, $stored), "\\n";
`;

const CONFIGURATION = (directory: string): string => `[organization]
domain = bench-lab.com
org_name = Bench
email = dmarc@bench-lab.com
[report_store]
backend = SQL
dsn = dbi:SQLite:dbname=${directory}/rival.sqlite
user =
pass =
[dns]
public_suffix_list = /usr/share/publicsuffix/public_suffix_list.dat
[smtp]
hostname = mail.bench-lab.com
`;

/** Mail::DMARC stores the mails of a directory into SQLite, as many as it can in 20 s. */
const measureRival = async (
  { supervisor, directory }: Stage,
  mails: string,
): Promise<{ readonly perSecond: number; readonly reports: number; readonly rows: number }> => {
  await ensureReporters(supervisor, CACHE);
  const config = join(directory, "rival.ini");
  const script = join(directory, "rival.pl");
  await Bun.write(config, CONFIGURATION(directory));
  await Bun.write(script, SCRIPT);
  const said = await supervisor.run(["perl", script, mails, String(SECONDS)], {
    env: { MAIL_DMARC_CONFIG_FILE: config },
  });
  const [reports = 0, seconds = 0, rows = 0] = said.trim().split(" ").map(Number);
  return { perSecond: reports / seconds, reports, rows };
};

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
const NO_TIMES: CpuTimes = { total: Number.NaN, eventLoop: Number.NaN, compiler: Number.NaN };

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
  let [mb, cpu] = [0, NO_TIMES];
  const used = startCpuMeter(child.pid);
  while ((await Promise.race([ended, Bun.sleep(PEAK_EVERY_MS).then(() => null)])) === null) {
    mb = Math.max(mb, peakMbOf(child.pid));
    try {
      cpu = used(MAILS);
    } catch {
      // The import has just ended: the last reading stands.
    }
  }
  const code = await ended;
  const rate = perSecond(MAILS, startedMs);
  await stop();
  if (code !== 0) throw new Error(`dmarc import ended with ${code}: ${await said}`);
  return { rate, mb, cpu, wrong: wrongIn(storedIn(dataDir)) };
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
    const used = startCpuMeter(running.service.pid);
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
    return { accepted, rate, cpu: used(MAILS), mb: peakMbOf(running.service.pid), wrong: wrongIn(stored) };
  } finally {
    await running.service.stop();
  }
};

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
      summary: percentile(await timesOf(`summary?${range}`), 0.95),
      sources: percentile(await timesOf(`sources?${range}`), 0.95),
      records: percentile(await timesOf(`records?${range}&limit=100`), 0.95),
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
      ...cpuMarks({ group: GROUP, what: "reports imported" }, [imported.cpu]),
      { ...figure("memory of the import", imported.mb, "MB"), ...most(220), note: "at its peak" },
      { ...figure("mails accepted by SMTP", received.accepted, "/s"), ...least(1_000), note: "20 connections" },
      { ...figure("until all are stored", received.rate, "/s"), ...least(1_400) },
      ...cpuMarks({ group: GROUP, what: "mails by SMTP" }, [received.cpu]),
      { ...figure("memory of the service", received.mb, "MB"), ...most(220), note: "at its peak" },
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
