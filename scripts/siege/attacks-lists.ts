import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { workbookWith } from "../../src/testing/workbook.ts";
import { ask, keyOf, LISTS, listIdOf } from "./api.ts";
import { type Attack, type AttackContext, type Finding, flood, pause, tallyOf } from "./attack.ts";
import { type Held, requestHead, statusHeard } from "./connections.ts";

const MB = 1_000_000;

const linesOf = (count: number, addressOf: (n: number) => string): Buffer<ArrayBuffer> =>
  Buffer.from(`email\r\n${Array.from({ length: count }, (_, n) => `${addressOf(n)}\r\n`).join("")}`);

/** What the other account found when it ordered small lists. */
interface OtherLists {
  readonly statuses: readonly number[];
  readonly slowestMs: number;
}

const ORDER_EVERY_MS = 500;

/** The other account orders lists of one address, one after the other, until `isOver`. */
const orderLists = async (context: AttackContext, isOver: () => boolean): Promise<OtherLists> => {
  const statuses: number[] = [];
  let slowestMs = 0;
  for (let n = 0; !isOver() && !context.signal.aborted; n++) {
    const fromMs = performance.now();
    const key = keyOf(context.keys.other.live, n);
    const body = JSON.stringify({ emails: [`ada@healthy${n}.test`] });
    const { status } = await ask(context, LISTS, { key, body });
    // Requests that were under way when the time was up were not refused, but have waited.
    if (!context.signal.aborted) statuses.push(status);
    slowestMs = Math.max(slowestMs, performance.now() - fromMs);
    await pause(context, ORDER_EVERY_MS);
  }
  return { statuses, slowestMs };
};

const SLOWEST_MS_MAX = 5_000;

const findingsOf = ({ statuses, slowestMs }: OtherLists): readonly Finding[] => [
  {
    ...{ what: "other account's lists of one address not accepted", unit: "" },
    ...{ value: statuses.filter((status) => status !== 202).length, limit: { most: 0 } },
    note: tallyOf(statuses),
  },
  { what: "the slowest of them", value: slowestMs, unit: "ms", limit: { most: SLOWEST_MS_MAX } },
];

const INTAKE_MS = 15_000;
const INTAKES = 30;
const INTAKE_ROWS = 300_000;

const intake: Attack = {
  name: "intake",
  about: `${INTAKES} CSVs of ${INTAKE_ROWS.toLocaleString("en")} rows at once, another account orders lists of one address`,
  isQuick: false,
  seconds: 30,
  prepare: async (context) => {
    const body = linesOf(INTAKE_ROWS, (n) => `ada${n}@d${n % 1000}.test`);
    return async () => {
      const key = keyOf(context.keys.attacker.test, 0);
      const endsAtMs = performance.now() + INTAKE_MS;
      const statuses: number[] = [];
      const uploads = flood(context, { atOnce: INTAKES, forMs: INTAKE_MS }, async () => {
        const { status } = await ask(context, LISTS, { key, type: "text/csv", body });
        statuses.push(status);
        if (status !== 202) await pause(context, ORDER_EVERY_MS);
      });
      const others = await orderLists(context, () => performance.now() > endsAtMs);
      const note = tallyOf(statuses);
      const answered = { what: "large lists answered meanwhile", value: statuses.length, unit: "", note };
      // Uploads that are under way end with the attack.
      void uploads;
      return [...findingsOf(others), answered];
    };
  },
};

const XLSX_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const FORMATS = 15;
const FORMAT_BRACKETS = 900_000;
const WORKBOOKS_MS = 8_000;
const WORKBOOKS_AT_ONCE = 4;

/** A workbook of some kB whose number formats have 13 MB of brackets, which expressions for formats must not search again and again. */
const bracketWorkbook = (): Uint8Array<ArrayBuffer> => {
  const formats = Array.from(
    { length: FORMATS },
    (_, n) => `<numFmt numFmtId="${164 + n}" formatCode="${"[".repeat(FORMAT_BRACKETS)}"/>`,
  );
  const cell = (text: string) => `<row><c t="str"><v>${text}</v></c></row>`;
  const styles = `<numFmts>${formats.join("")}</numFmts>`;
  return new Uint8Array(workbookWith({ rows: cell("email") + cell("mailbox_exists@a.test"), styles }));
};

const hostileWorkbooks: Attack = {
  name: "hostile-workbooks",
  about: `dry runs of workbooks with number formats of ${FORMAT_BRACKETS.toLocaleString("en")} brackets, another account orders lists of one address`,
  isQuick: true,
  seconds: 25,
  prepare: async (context) => {
    const body = bracketWorkbook();
    const key = keyOf(context.keys.attacker.test, 0);
    return async () => {
      const endsAtMs = performance.now() + WORKBOOKS_MS;
      const statuses: number[] = [];
      const uploads = flood(context, { atOnce: WORKBOOKS_AT_ONCE, forMs: WORKBOOKS_MS }, async () => {
        const { status } = await ask(context, `${LISTS}?dry_run=true`, { key, type: XLSX_TYPE, body });
        statuses.push(status);
        if (status !== 200) await pause(context, ORDER_EVERY_MS);
      });
      const others = await orderLists(context, () => performance.now() > endsAtMs);
      await uploads;
      const note = `${body.length} bytes each: ${tallyOf(statuses)}`;
      return [...findingsOf(others), { what: "workbooks answered", value: statuses.length, unit: "", note }];
    };
  },
};

/** The bytes of all files below a folder. */
const bytesBelow = (folder: string): number =>
  readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sum + bytesBelow(path);
    return sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  }, 0);

const UPLOADS = 60;
const UPLOAD_BYTES = 95 * MB;
const AT_ONCE_BYTES = 20 * MB;
const DRIP_MS = 500;
const DISK_MB_MAX = 500;
const DRIPPING_MS = 12_000;

/** Sends the first bytes of an upload at once, and then a line at a time. */
const drip = async (context: AttackContext, chunk: Uint8Array): Promise<Held> => {
  const held = await context.connections.open({ host: "127.0.0.1", port: context.service.port });
  const key = keyOf(context.keys.attacker.test, 0);
  held.write(requestHead("POST", LISTS, { key, type: "text/csv", length: UPLOAD_BYTES }));
  for (let sent = 0; sent < AT_ONCE_BYTES && held.isOpen() && !context.signal.aborted; sent += chunk.length) {
    held.write(chunk);
    await Bun.sleep(5);
  }
  return held;
};

const uploadsThatNeverEnd: Attack = {
  name: "endless-uploads",
  about: `${UPLOADS} CSV uploads that never end, each with ${AT_ONCE_BYTES / MB} MB at once`,
  isQuick: false,
  seconds: 35,
  prepare: async (context) => {
    const chunk = linesOf(10_000, (n) => `ada${n}@d${n % 100}.test`);
    return async () => {
      let mostBytes = 0;
      const over = new AbortController();
      const watchDisk = async (): Promise<void> => {
        for (; !over.signal.aborted && !context.signal.aborted; await pause(context, 250))
          mostBytes = Math.max(mostBytes, bytesBelow(context.dataDir));
      };
      const watching = [watchDisk(), orderLists(context, () => over.signal.aborted)] as const;
      const held = await Promise.all(Array.from({ length: UPLOADS }, () => drip(context, chunk)));
      for (const endsAtMs = performance.now() + DRIPPING_MS; performance.now() < endsAtMs && !context.signal.aborted;) {
        for (const each of held) each.write("ada@drip.test\r\n");
        await pause(context, DRIP_MS);
      }
      over.abort();
      const [, others] = await Promise.all(watching);
      return [
        { what: "disk", value: mostBytes / MB, unit: "MB", limit: { most: DISK_MB_MAX } },
        ...findingsOf(others),
        {
          ...{ what: "uploads still open", unit: "", note: tallyOf(held.map(statusHeard)) },
          value: held.filter((each) => each.isOpen()).length,
        },
      ];
    };
  },
};

/** A live list of the attacker runs for a while. */
const runList = (options: {
  readonly name: string;
  readonly about: string;
  readonly addresses: number;
  readonly addressOf: (n: number) => string;
}): Attack => ({
  name: options.name,
  about: options.about,
  isQuick: false,
  seconds: 30,
  prepare: async (context) => {
    const body = linesOf(options.addresses, options.addressOf);
    const key = keyOf(context.keys.attacker.live, 0);
    return async () => {
      const answer = await ask(context, LISTS, { key, type: "text/csv", body });
      const id = listIdOf(answer);
      if (id === null) throw new Error(`the list was answered with ${answer.status} ${answer.text}`);
      await pause(context, LIST_MS);
      const { text } = await ask(context, `${LISTS}/${id}`, { key });
      const finished = Number(/"addresses":\{"total":\d+,"finished":(\d+)/.exec(text)?.[1] ?? Number.NaN);
      return [{ what: "addresses finished meanwhile", value: finished, unit: "" }];
    };
  },
});

const LIST_MS = 15_000;

const silentDomains = runList({
  name: "silent-domains",
  about: "a list of 20,000 domains whose name server never answers",
  addresses: 20_000,
  addressOf: (n) => `ada@mute${n}.test`,
});

const sharedProvider = runList({
  name: "shared-provider",
  about: "a list of 40,000 addresses at 5,000 domains of one provider",
  addresses: 40_000,
  addressOf: (n) => `ada${n}@shared${n % 5_000}.test`,
});

const failingDomains = runList({
  name: "failing-domains",
  about: "a list of 20,000 domains whose name server answers SERVFAIL",
  addresses: 20_000,
  addressOf: (n) => `ada@fail${n}.test`,
});

/** Attacks with lists and uploads. */
export const listAttacks: readonly Attack[] = [
  silentDomains,
  failingDomains,
  sharedProvider,
  intake,
  hostileWorkbooks,
  uploadsThatNeverEnd,
];
