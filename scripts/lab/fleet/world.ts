import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ReportMailRules } from "../../../src/dmarc/reports/ingest/report-mail-rules.ts";
import type { Clock } from "../../../src/foundation/base/clock.ts";
import { err } from "../../../src/foundation/base/errors.ts";
import { createLog } from "../../../src/foundation/base/log.ts";
import { openDb } from "../../../src/foundation/db/open.ts";
import { ClientAddresses } from "../../../src/foundation/http/client-addresses.ts";
import { createApplications } from "../../../src/service/applications.ts";
import { Service, type ServiceOptions } from "../../../src/service/compose.ts";
import { readConfig } from "../../../src/service/config.ts";
import { createServer } from "../../../src/service/server.ts";
import { type FleetDns, createFleetDns } from "./dns.ts";
import type { ReportMail } from "./report-mail.ts";

interface SunkMail {
  readonly to: string;
  readonly subject: string;
  /** As it came: header and body. */
  readonly text: string;
}

interface MailSink {
  readonly port: number;
  /** What came so far, in order. */
  readonly mails: readonly SunkMail[];
  stop(): void;
}

interface Session {
  buffer: string;
  isData: boolean;
  to: string;
}

const END_OF_DATA = "\r\n.\r\n";

const decodeWords = (text: string): string =>
  text.replace(/\?=\s+=\?/g, "?==?").replace(/=\?utf-8\?(q|b)\?([^?]*)\?=/gi, (_, encoding: string, body: string) =>
    encoding.toLowerCase() === "b"
      ? Buffer.from(body, "base64").toString()
      : Buffer.from(
          body
            .replaceAll("_", " ")
            .replace(/=([0-9A-F]{2})/gi, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
          "latin1",
        ).toString(),
  );

const subjectOf = (text: string): string => {
  const head = text.slice(0, text.indexOf("\r\n\r\n")).replace(/\r\n[ \t]+/g, " ");
  return decodeWords(/^Subject: (.*)$/im.exec(head)?.[1] ?? "");
};

export const startMailSink = (): MailSink => {
  const mails: SunkMail[] = [];
  const answer = (session: Session, line: string): string => {
    const verb = line.slice(0, 4).toUpperCase();
    if (verb === "EHLO") return "250-sink.example\r\n250 8BITMIME\r\n";
    if (verb === "RCPT") session.to = /<([^>]*)>/.exec(line)?.[1] ?? "";
    if (verb === "DATA") {
      session.isData = true;
      return "354 go on\r\n";
    }
    return verb === "QUIT" ? "221 bye\r\n" : "250 ok\r\n";
  };
  const server = Bun.listen<Session>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { buffer: "", isData: false, to: "" };
        socket.write("220 sink.example\r\n");
      },
      data(socket, bytes) {
        const session = socket.data;
        session.buffer += bytes.toString();
        for (;;) {
          const mark = session.isData ? END_OF_DATA : "\r\n";
          const end = session.buffer.indexOf(mark);
          if (end === -1) return;
          const text = session.buffer.slice(0, end);
          session.buffer = session.buffer.slice(end + mark.length);
          if (session.isData) {
            session.isData = false;
            mails.push({ to: session.to, subject: subjectOf(text), text });
            socket.write("250 taken\r\n");
          } else socket.write(answer(session, text));
        }
      },
    },
  });
  return { port: server.port, mails, stop: () => server.stop(true) };
};

/** A clock that jumps. Timers that became due on the way run once, in order, as in a process that was asleep. */
interface FleetClock extends Clock {
  jumpTo(ms: number): Promise<void>;
}

const TURNS = 10;

/** Lets what is runnable run. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < TURNS; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
};

export const createFleetClock = (startMs: number): FleetClock => {
  let now = startMs;
  let serial = 0;
  const tasks = new Map<number, { readonly dueMs: number; readonly run: () => void }>();
  return {
    nowMs: () => now,
    monotonicMs: () => now - startMs,
    after(delayMs, run) {
      const id = ++serial;
      tasks.set(id, { dueMs: now + Math.max(0, delayMs), run });
      return () => void tasks.delete(id);
    },
    async jumpTo(ms) {
      await settle();
      now = Math.max(now, ms);
      const due = [...tasks].filter(([, task]) => task.dueMs <= now).toSorted((a, b) => a[1].dueMs - b[1].dueMs);
      for (const [id, task] of due) {
        if (!tasks.delete(id)) continue;
        task.run();
        await settle();
      }
    },
  };
};

export const REPORT_HOST = "reports.fleet-watch.net";
const ACCOUNT = "fleet";
const MINUTE_MS = 60_000;
/** What is done once a day here: what the timetable does rarely, and the figures for lists of domains, which nobody looks at. */
const RARE = /expire|purge|rebuild|sumUp/i;

/** The whole service, composed as in production, with a clock and a DNS of its own. */
export interface FleetWorld {
  readonly clock: FleetClock;
  readonly dns: FleetDns;
  readonly sink: MailSink;
  readonly logged: readonly string[];
  /** Asks the interface; throws when it does not answer with 2xx. */
  ask<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** As the SMTP receiver hands a mail over. */
  receive(mail: ReportMail, to: string): Promise<void>;
  /** Goes to a point in time, and does what the timetable does then. */
  work(atMs: number, isRareToo: boolean): Promise<void>;
  /** Ends the service, and starts it again over the same database. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

const settingsOf = (dataDir: string, sinkPort: number): Record<string, string> => ({
  POSTWARDEN_DATA_DIR: dataDir,
  POSTWARDEN_HELO_NAME: "mx.fleet-watch.net",
  POSTWARDEN_DNSBL_SIGNAL: "off",
  // A thread starts the program, and this process is not the program.
  POSTWARDEN_WORKERS: "0",
  POSTWARDEN_REPORT_HOST: REPORT_HOST,
  POSTWARDEN_NOTIFY_SMTP_URL: `smtp://127.0.0.1:${sinkPort}`,
  POSTWARDEN_NOTIFY_FROM: "postwarden@fleet-watch.net",
});

const bodyOf = (body: unknown): string | Uint8Array<ArrayBuffer> =>
  body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body);

const BASE_URL = "https://fleet-watch.net";

type Parts = Omit<ServiceOptions, "baseUrl">;

/** The service, as `serve` starts it. */
const startService = async (parts: Parts) => {
  const service = new Service({ ...parts, baseUrl: BASE_URL });
  const { dmarc } = service;
  const { clock } = parts.platform;
  await dmarc.start();
  const reception = new ReportMailRules(
    { clock, log: parts.log },
    { ...dmarc.reports, domains: dmarc.stores.domains, reportHost: REPORT_HOST },
  );
  return { service, reception };
};

/** Starts the service at a point in time. */
export const startWorld = async (startMs: number, given?: FleetDns): Promise<FleetWorld> => {
  const clock = createFleetClock(startMs);
  const dns = given ?? createFleetDns(clock.nowMs);
  const sink = startMailSink();
  const dataDir = mkdtempSync(join(tmpdir(), "postwarden-fleet-"));
  const config = readConfig(settingsOf(dataDir, sink.port));
  if (!config.ok) throw new Error(config.error.join("\n"));
  // Nobody tests durability here, and the disk would take a third of the time.
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  const db = opened.value;
  const logged: string[] = [];
  const log = createLog("warn", clock, (line) => logged.push(line));
  const connector = async () => err("refused_or_unreachable" as const);
  const platform = { clock, random: { integer: () => 0 }, resolver: dns, connector };
  const parts: Parts = { config: config.value, db, log, platform };
  let { service, reception } = await startService(parts);
  const { accounts, keys } = service.accounts;
  accounts.create(ACCOUNT, "scale");
  const issued = keys.create({ account: ACCOUNT, mode: "live" });
  if (!issued.ok) throw new Error(issued.error);
  const { key } = issued.value;
  const isMail = (name: string): boolean => name.startsWith("mail");

  const doJobs = async (wanted: (name: string) => boolean): Promise<void> => {
    const jobs = Object.entries(service.dmarc.jobs) as ReadonlyArray<readonly [string, () => Promise<unknown>]>;
    for (const [, run] of jobs.filter(([name]) => wanted(name))) await run();
  };

  const clients = new ClientAddresses([]);
  const applicationOf = createApplications(service, { ...parts, baseUrl: BASE_URL }, clients);
  const server = createServer({ log: parts.log, clock, clients, applicationOf });
  return {
    clock,
    dns,
    sink,
    logged,
    async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
      const response: Response = await server.handle(
        new Request(`http://localhost${path}`, {
          method,
          headers: { authorization: `Bearer ${key}` },
          ...(body === undefined ? {} : { body: bodyOf(body) }),
        }),
      );
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 400)}`);
      return JSON.parse(text) as T;
    },
    async receive(mail, to) {
      const outcome = await reception.acceptMail({ ...mail, recipients: [to], tls: true });
      if (outcome !== "accepted") throw new Error(`a report mail was not taken: ${outcome}`);
    },
    async work(atMs, isRareToo) {
      await clock.jumpTo(atMs);
      await service.dmarc.reports.ingester.idle();
      // Reverse names are found before the rules look, as in a service that has its five minutes.
      await doJobs((name) => !isMail(name) && (isRareToo || !RARE.test(name)));
      await doJobs((name) => !isMail(name) && !RARE.test(name));
      await clock.jumpTo(atMs + 2 * MINUTE_MS);
      await doJobs(isMail);
      await settle();
    },
    async restart() {
      await service.dmarc.stop();
      ({ service, reception } = await startService(parts));
    },
    async close() {
      await service.dmarc.stop();
      sink.stop();
      db.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
};
