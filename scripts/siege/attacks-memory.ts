import { ask, keyOf, LISTS, listIdOf, untilListEnds } from "./api.ts";
import { type Attack, type AttackContext, type Finding, flood, pause, tallyOf } from "./attack.ts";
import { type Held, requestHead, statusHeard } from "./connections.ts";

const HOST = "127.0.0.1";
const MB = 1_000_000;
/** The most bytes of one page of a list. */
const PAGE_MB_MAX = 16;

/** A CSV of things that are no addresses, each of this size. */
const largeCsv = (rows: number, cellBytes: number): string => {
  const cell = "x".repeat(cellBytes);
  return `email\r\n${Array.from({ length: rows }, (_, n) => `${cell}${n}@large.test\r\n`).join("")}`;
};

/** Opens connections that send a request and never read the answer. */
const askUnread = async (context: AttackContext, key: string, paths: readonly string[]): Promise<readonly Held[]> =>
  Promise.all(
    paths.map(async (path) => {
      const held = await context.connections.open({ host: HOST, port: context.service.port }, { reads: false });
      held.write(requestHead("GET", path, { key }));
      return held;
    }),
  );

const CELL_SIZES = [250_000, 64_000, 16_000, 4_000, 1_000];
const LARGE_ROWS = 400;

/** Orders the largest of these lists that is accepted. */
const orderLarge = async (context: AttackContext, key: string) => {
  const refused: string[] = [];
  for (const cellBytes of CELL_SIZES) {
    const answer = await ask(context, LISTS, { key, type: "text/csv", body: largeCsv(LARGE_ROWS, cellBytes) });
    const id = listIdOf(answer);
    if (id !== null) return { id, cellBytes, refused };
    refused.push(`${cellBytes} bytes: ${answer.status}`);
  }
  throw new Error(`no list was accepted: ${refused.join(", ")}`);
};

const bigPages: Attack = {
  name: "big-pages",
  about: `pages of ${LARGE_ROWS} rows with addresses of 250 kB, read once and then 20 times unread`,
  isQuick: true,
  seconds: 25,
  prepare: async (context) => () => runBigPages(context),
};

const runBigPages = async (context: AttackContext): Promise<readonly Finding[]> => {
  const key = keyOf(context.keys.attacker.test, 0);
  const { id, cellBytes, refused } = await orderLarge(context, key);
  await untilListEnds(context, key, id);
  const path = `${LISTS}/${id}/items?limit=1000`;
  const page = await ask(context, path, { key });
  await askUnread(
    context,
    key,
    Array.from({ length: 20 }, () => path),
  );
  await pause(context, 6_000);
  const isRead = page.status === 200;
  const note = `status ${page.status}; cells of ${cellBytes} bytes accepted ${refused.join(", ")}`.trimEnd();
  const value = isRead ? page.text.length / MB : null;
  return [{ what: "one page of items", value, unit: "MB", limit: { most: PAGE_MB_MAX }, note }];
};

interface OpenBodies {
  readonly path: string;
  readonly length: number;
  readonly connections: number;
}

const OPEN_MS = 5_000;
const AT_ONCE = 25;
const PIECE = Buffer.alloc(64 * 1024, " ");

/** Sends all of a body but its last bytes, and holds the connection. */
const openBody = async (context: AttackContext, { path, length }: OpenBodies, key: string): Promise<Held> => {
  const held = await context.connections.open({ host: HOST, port: context.service.port });
  held.write(requestHead("POST", path, { key, type: "application/json", length }));
  for (let sent = 0; sent < length - 10 && held.isOpen() && !context.signal.aborted; sent += PIECE.length) {
    held.write(PIECE.subarray(0, Math.min(PIECE.length, length - 10 - sent)));
    // Bytes that the service has not read yet must not pile up here.
    if (sent % (1024 * 1024) === 0) await Bun.sleep(0);
  }
  return held;
};

const holdBodies = async (context: AttackContext, bodies: OpenBodies): Promise<Finding> => {
  const key = keyOf(context.keys.attacker.test, 0);
  const held: Held[] = [];
  await flood(context, { atOnce: AT_ONCE, times: bodies.connections }, async () => {
    held.push(await openBody(context, bodies, key));
  });
  await pause(context, OPEN_MS);
  const open = held.filter((each) => each.isOpen()).length;
  const note = tallyOf(held.map(statusHeard));
  context.connections.closeAll();
  return { what: `open bodies of ${(bodies.length / MB).toFixed(1)} MB held`, value: open, unit: "", note };
};

const openLists: Attack = {
  name: "open-lists",
  about: "200 JSON lists of 8 MiB, all but their last bytes",
  isQuick: true,
  seconds: 25,
  prepare: async (context) => async () => [
    await holdBodies(context, { path: LISTS, length: 8 * 1024 * 1024, connections: 200 }),
  ],
};

const openTargets: Attack = {
  name: "open-targets",
  about: "1,500 blocklist targets with bodies of 1 MiB, all but their last bytes",
  isQuick: true,
  seconds: 25,
  prepare: async (context) => async () => [
    await holdBodies(context, { path: "/v1/blacklist/targets", length: 1024 * 1024, connections: 1_500 }),
  ],
};

const UNREAD_ROWS = 50_000;
const UNREAD_EACH = 100;
const UNREAD_MS = 8_000;

const unreadResponses: Attack = {
  name: "unread-responses",
  about: `${UNREAD_EACH} requests each of results.csv, items and openapi.json, never read`,
  isQuick: true,
  seconds: 25,
  prepare: async (context) => {
    const key = keyOf(context.keys.attacker.test, 0);
    const rows = Array.from(
      { length: UNREAD_ROWS },
      (_, n) => `ada${n}@unread${n % 100}.test,${"note ".repeat(20)}\r\n`,
    );
    const body = `email,notes\r\n${rows.join("")}`;
    const answer = await ask(context, LISTS, { key, type: "text/csv", body });
    const id = listIdOf(answer);
    if (id === null) throw new Error(`the list was answered with ${answer.status} ${answer.text}`);
    await untilListEnds(context, key, id);
    return async () => {
      const paths = [`${LISTS}/${id}/results.csv`, `${LISTS}/${id}/items?limit=1000`, "/openapi.json"];
      const held: Held[] = [];
      for (const path of paths)
        held.push(
          ...(await askUnread(
            context,
            key,
            Array.from({ length: UNREAD_EACH }, () => path),
          )),
        );
      await pause(context, UNREAD_MS);
      return [{ what: "unread connections still open", value: held.filter((each) => each.isOpen()).length, unit: "" }];
    };
  },
};

/** Attacks that want memory. */
export const memoryAttacks: readonly Attack[] = [bigPages, openLists, openTargets, unreadResponses];
