import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { sampleReportMail, sampleReportXml } from "../../src/testing/dmarc-reports.ts";
import { bring, greet, openTalk } from "../lab/dmarc-smtp.ts";
import { type Answer, ask, enrol, keyOf, LISTS } from "./api.ts";
import { type Attack, type AttackContext, type Finding, flood, pause, tallyOf } from "./attack.ts";
import { headerBomb, mailWith, manyKeys, recordBomb, zipBomb } from "./bombs.ts";
import type { Held } from "./connections.ts";
import { REPORT_HOST_IP } from "./service.ts";

const MB = 1_000_000;
const DOMAIN = "owner-siege.com";

/** Brings one mail; answers the code that decided, or that the connection broke. */
const deliver = async ({ service }: AttackContext, to: string, bytes: Uint8Array): Promise<string> => {
  try {
    const talk = await openTalk({ ip: REPORT_HOST_IP, port: service.reportPort });
    try {
      await greet(talk, "mail.reporter.test");
      const { code } = await bring(talk, { from: "dmarc@reporter.test", to, bytes });
      return String(code);
    } finally {
      talk.end();
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

const databaseBytes = (dataDir: string): number =>
  ["", "-wal"].reduce(
    (sum, end) => sum + (statSync(join(dataDir, `postwarden.db${end}`), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );

/** Waits until no report mail waits to be read. */
const untilAllRead = async (context: AttackContext): Promise<void> => {
  const db = new Database(join(context.dataDir, "postwarden.db"), { readonly: true });
  try {
    const pending = db.query<{ n: number }, []>("SELECT count(*) AS n FROM dmarc_ingestions WHERE status = 'pending'");
    while (!context.signal.aborted && (pending.get()?.n ?? 0) > 0) await pause(context, 200);
  } finally {
    db.close();
  }
};

const BOMBS = 20;
const GROWTH_MB_MAX = 100;
const PAGE_MB_MAX = 16;

const pageFinding = (what: string, { status, text }: Answer): Finding => ({
  ...{ what, value: status === 200 ? text.length / MB : null, unit: "MB", limit: { most: PAGE_MB_MAX } },
  note: `status ${status}`,
});

const reportBombs: Attack = {
  name: "report-bombs",
  about: `${BOMBS} report mails of 190 kB that unpack to 57 MB, then the owner reads the records`,
  isQuick: true,
  seconds: 40,
  prepare: async (context) => {
    const key = keyOf(context.keys.attacker.live, 0);
    const { id, address } = await enrol(context, key, DOMAIN);
    const mails = Array.from({ length: BOMBS }, (_, n) => {
      const bytes = recordBomb(DOMAIN, n);
      return mailWith(address, { name: `reporter.test!${DOMAIN}!1!2!${n}.xml.gz`, type: "application/gzip", bytes });
    });
    return async () => {
      const before = databaseBytes(context.dataDir);
      const codes: string[] = [];
      await flood(context, { atOnce: 4, times: BOMBS }, async (n) => {
        codes.push(await deliver(context, address, mails[n] ?? Buffer.alloc(0)));
      });
      await untilAllRead(context);
      const records = `/v1/dmarc/domains/${id}/records`;
      const first = await ask(context, records, { key });
      const large = await ask(context, `${records}?limit=1000`, { key });
      const growth = (databaseBytes(context.dataDir) - before) / MB;
      return [
        { what: "replies to the mails", value: codes.length, unit: "", note: tallyOf(codes) },
        { what: "growth of the database", value: growth, unit: "MB", limit: { most: GROWTH_MB_MAX } },
        pageFinding("first page of records", first),
        pageFinding("page of 1,000 records", large),
      ];
    };
  },
};

const HOLDERS = 10;
const HELD_EACH = 20;
const NOOP_EVERY_MS = 25_000;
const RETRY_MS = 2_000;
/** A reporter tries again for hours; what counts is that it is not kept out for good. */
const KEPT_OUT_S_MAX = 60;

/** Holds places of the receiver from several addresses, and says NOOP now and then. */
const holdPlaces = async (context: AttackContext): Promise<readonly Held[]> => {
  const held: Held[] = [];
  for (let n = 0; n < HOLDERS * HELD_EACH; n++) {
    const localAddress = `127.22.0.${1 + (n % HOLDERS)}`;
    const place = { host: REPORT_HOST_IP, port: context.service.reportPort, localAddress };
    held.push(await context.connections.open(place));
  }
  for (const each of held) each.write("EHLO mail.holder.test\r\n");
  return held;
};

const receiverHolders: Attack = {
  name: "receiver-holders",
  about: `${HOLDERS} addresses hold ${HELD_EACH} connections each to the report receiver`,
  isQuick: false,
  seconds: 75,
  prepare: async (context) => {
    const { address } = await enrol(context, keyOf(context.keys.other.live, 0), DOMAIN);
    return async () => {
      const held = await holdPlaces(context);
      const noops = setInterval(() => {
        for (const each of held) each.write("NOOP\r\n");
      }, NOOP_EVERY_MS);
      const fromMs = performance.now();
      const codes: string[] = [];
      while (codes.at(-1) !== "250" && !context.signal.aborted) {
        codes.push(await deliver(context, address, sampleReportMail({ domain: DOMAIN }, address)));
        if (codes.at(-1) !== "250") await pause(context, RETRY_MS);
      }
      clearInterval(noops);
      const seconds = codes.at(-1) === "250" ? (performance.now() - fromMs) / 1000 : null;
      await pause(context, 5_000 - (performance.now() - fromMs));
      return [
        { what: "places held", value: held.filter((each) => each.heard().startsWith("220")).length, unit: "" },
        {
          ...{
            what: "until a genuine report was accepted",
            value: seconds,
            unit: "s",
            limit: { most: KEPT_OUT_S_MAX },
          },
          note: tallyOf(codes),
        },
      ];
    };
  },
};

const FILLER_BYTES = 64 * 1024 * 1024 - 1024;
const KEYS = 600_000;

const bombFiles: Attack = {
  name: "bombs",
  about:
    "an archive of 16 × 256 MiB of zeros by mail and upload, 64 MB of filler, JSON of 600,000 keys, a 20 MB header",
  isQuick: true,
  seconds: 45,
  prepare: async (context) => {
    const key = keyOf(context.keys.attacker.live, 0);
    const { address } = await enrol(context, key, DOMAIN);
    const zip = zipBomb();
    const upload = async (type: string, body: Uint8Array<ArrayBuffer>) => {
      const { status } = await ask(context, "/v1/dmarc/reports", { key, type, body });
      await untilAllRead(context);
      return `${status}`;
    };
    const mail = async (bytes: Uint8Array) => {
      const code = await deliver(context, address, bytes);
      await untilAllRead(context);
      return code;
    };
    const steps: ReadonlyArray<readonly [string, () => Promise<string>]> = [
      ["archive by mail", () => mail(mailWith(address, { name: "report.zip", type: "application/zip", bytes: zip }))],
      ["archive by upload", () => upload("application/zip", Uint8Array.from(zip))],
      ...[" ", "\n", "<"].map(
        (filler) =>
          [
            `64 MB of ${JSON.stringify(filler)}`,
            () => upload("text/xml", new Uint8Array(FILLER_BYTES).fill(filler.charCodeAt(0))),
          ] as const,
      ),
      ["JSON keys", async () => String((await ask(context, LISTS, { key, body: manyKeys(KEYS) })).status)],
      ["20 MB header", () => mail(headerBomb(address, gzipSync(sampleReportXml({ domain: DOMAIN }))))],
    ];
    return async () => {
      const findings: Finding[] = [];
      for (const [what, step] of steps) {
        const fromMs = performance.now();
        const note = context.signal.aborted ? "not tried" : `answered ${await step()}`;
        findings.push({ what, value: performance.now() - fromMs, unit: "ms", note });
      }
      return findings;
    };
  },
};

/** Attacks with DMARC reports. */
export const reportAttacks: readonly Attack[] = [reportBombs, receiverHolders, bombFiles];
