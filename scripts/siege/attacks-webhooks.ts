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

const FLOODED_LISTS = 40;
const FLOOD_MS = 15_000;
/** One message per second and URL, to two URLs, and one for the beginning of each. The redirect is retried once. */
const MESSAGES_MAX = FLOOD_MS / 1_000 + 3;

/** Addresses that no channel may lead to: private, link-local, metadata of a cloud, and written in other ways. */
const INSIDE: readonly string[] = [
  "http://10.0.0.1:8080/alerts?channel=ntfy",
  "https://192.168.1.1/alerts?channel=ntfy",
  "http://169.254.169.254/alerts?channel=ntfy",
  "https://[fd00::1]/alerts?channel=ntfy",
  "https://0x0a000001/alerts?channel=ntfy",
  "https://[::ffff:10.0.0.1]/alerts?channel=ntfy&token=tk_abcdefghijklmnopqrstuvwxyz123",
];

/** An ntfy server: /redirect leads to a page of its own that nobody may fetch. */
const startNtfy = () => {
  const messages: number[] = [];
  let followed = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      if (new URL(request.url).pathname === "/inside") {
        followed += 1;
        return new Response("secret");
      }
      messages.push(performance.now());
      const { topic } = Object(await request.json());
      if (topic === "redirect") return new Response(null, { status: 302, headers: { location: "/inside" } });
      return Response.json({ id: "x", event: "message" });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    messages: () => messages.length,
    followed: () => followed,
    stop: () => server.stop(true),
  };
};

const runFlood = async (context: AttackContext, ntfy: ReturnType<typeof startNtfy>): Promise<readonly Finding[]> => {
  const key = (n: number) => keyOf(context.keys.attacker.test, n);
  const inside: number[] = [];
  for (const [n, url] of INSIDE.entries()) inside.push(await orderWithWebhook(context, key(n), url));
  const accepted = inside.filter((status) => status < 400).length;
  await orderWithWebhook(context, key(0), `${ntfy.url}/redirect?channel=ntfy`);
  const statuses: number[] = [];
  await flood(context, { atOnce: 8, times: FLOODED_LISTS }, async (n) => {
    statuses.push(await orderWithWebhook(context, key(n), `${ntfy.url}/alerts?channel=ntfy`));
  });
  const before = ntfy.messages();
  await pause(context, FLOOD_MS);
  const note = `of ${tallyOf(statuses)}`;
  return [
    {
      what: "channels inside the network accepted",
      value: accepted,
      unit: "",
      limit: { most: 0 },
      note: tallyOf(inside),
    },
    { what: "redirects followed", value: ntfy.followed(), unit: "", limit: { most: 0 } },
    {
      what: "messages to one channel in 15 s",
      value: ntfy.messages() - before,
      unit: "",
      limit: { most: MESSAGES_MAX },
      note,
    },
  ];
};

const channelFlood: Attack = {
  name: "channel-flood",
  about: `channels that lead into the network, and the events of ${FLOODED_LISTS} lists to one channel`,
  isQuick: false,
  seconds: 40,
  prepare: async (context) => {
    const ntfy = startNtfy();
    return async () => {
      try {
        return await runFlood(context, ntfy);
      } finally {
        await ntfy.stop();
      }
    };
  },
};

/** Attacks with webhooks. */
export const webhookAttacks: readonly Attack[] = [hangingWebhooks, channelFlood];
