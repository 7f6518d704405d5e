import { ask, keyOf, LISTS } from "./api.ts";
import { type Attack, type AttackContext, type Finding, flood, pause, tallyOf } from "./attack.ts";

const HANGING_URLS = 300;
const GOOD_MS = 12_000;
const GOOD_EVERY_MS = 1_000;
const IN_TIME_MS = 5_000;

/** A receiver that takes requests under /hang and never answers them, and answers all others. */
const startReceiver = () => {
  const arrivedAtMs = new Map<string, number>();
  const held: Array<() => void> = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      if (pathname.startsWith("/hang/")) {
        await new Promise<void>((resolve) => held.push(resolve));
      } else if (!arrivedAtMs.has(pathname)) arrivedAtMs.set(pathname, performance.now());
      return new Response(null, { status: 204 });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    arrivedAtMs,
    hanging: () => held.length,
    stop: async () => {
      for (const release of held) release();
      await server.stop(true);
    },
  };
};

/** Orders a list of one address whose end is sent to a URL. */
const orderWithWebhook = async (context: AttackContext, key: string, url: string): Promise<number> => {
  const body = JSON.stringify({ emails: ["ada@example.com"], webhook_url: url });
  return (await ask(context, LISTS, { key, body })).status;
};

const run = async (context: AttackContext, receiver: ReturnType<typeof startReceiver>): Promise<readonly Finding[]> => {
  const statuses: number[] = [];
  await flood(context, { atOnce: 8, times: HANGING_URLS }, async (n) => {
    statuses.push(await orderWithWebhook(context, keyOf(context.keys.attacker.test, n), `${receiver.url}/hang/${n}`));
  });
  const orderedAtMs = new Map<string, number>();
  for (const endsAtMs = performance.now() + GOOD_MS; performance.now() < endsAtMs && !context.signal.aborted;) {
    const path = `/good/${orderedAtMs.size}`;
    orderedAtMs.set(path, performance.now());
    await orderWithWebhook(context, keyOf(context.keys.other.test, orderedAtMs.size), `${receiver.url}${path}`);
    await pause(context, GOOD_EVERY_MS);
  }
  await pause(context, IN_TIME_MS - GOOD_EVERY_MS);
  const waits = [...orderedAtMs].map(([path, ms]) => (receiver.arrivedAtMs.get(path) ?? Number.POSITIVE_INFINITY) - ms);
  const late = waits.filter((ms) => ms > IN_TIME_MS);
  const slowest = Math.max(0, ...waits.filter(Number.isFinite));
  const note = `of ${waits.length}; the slowest that arrived took ${Math.round(slowest)} ms`;
  return [
    { what: "lists with hanging webhooks", value: statuses.length, unit: "", note: tallyOf(statuses) },
    { what: "requests that hang", value: receiver.hanging(), unit: "" },
    { what: "good webhooks not received within 5 s", value: late.length, unit: "", limit: { most: 0 }, note },
  ];
};

const hangingWebhooks: Attack = {
  name: "hanging-webhooks",
  about: `webhooks to ${HANGING_URLS} URLs that never answer, another account's to one that does`,
  isQuick: false,
  seconds: 35,
  prepare: async (context) => {
    const receiver = startReceiver();
    return async () => {
      try {
        return await run(context, receiver);
      } finally {
        await receiver.stop();
      }
    };
  },
};

/** Attacks with webhooks. */
export const webhookAttacks: readonly Attack[] = [hangingWebhooks];
