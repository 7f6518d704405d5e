import { insertEvent } from "../../src/foundation/db/outbox.ts";
import type { Mark } from "./marks.ts";
import { newDataDir, openData, type Stage, startBinary } from "./stage.ts";

const EVENTS = 10_000;
const END_MS_MAX = 60_000;

/** Events for `urls` URLs are in the outbox when the binary starts; the time ends with the last one received. */
const deliver = async (stage: Stage, urls: number) => {
  const received = new Map<string, number>();
  const last = new Map<string, string>();
  const ended = Promise.withResolvers<void>();
  let outOfOrder = 0;
  const receiver = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      await request.text();
      const id = request.headers.get("webhook-id") ?? "";
      // Ids of events grow with time, so that the order of one URL can be seen.
      if (id < (last.get(request.url) ?? "")) outOfOrder++;
      last.set(request.url, id);
      received.set(id, performance.now());
      if (received.size === EVENTS) ended.resolve();
      return new Response(null, { status: 204 });
    },
  });
  const dataDir = await newDataDir(stage, `webhooks-${urls}`);
  const db = openData(dataDir);
  const data = { target: "100.20.30.40", listing: "spamcop", status: "listed", listed_on: ["spamcop"] };
  db.transact((tx) => {
    for (let n = 0; n < EVENTS; n++) {
      const url = `http://127.0.0.1:${receiver.port}/${n % urls}`;
      const event = { accountId: "bench", mode: "live", type: "blacklist.listed" } as const;
      insertEvent(db, tx, { ...event, subject: `target:${n % urls}`, data, url, createdAtMs: Date.now() });
    }
  });
  db.close();
  const startedMs = performance.now();
  const service = await startBinary(stage, dataDir, { POSTWARDEN_WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8" });
  await Promise.race([ended.promise, Bun.sleep(END_MS_MAX)]);
  const endedMs = Math.max(startedMs, ...received.values());
  await service.stop();
  await receiver.stop(true);
  return { perSecond: received.size / ((endedMs - startedMs) / 1000), lost: EVENTS - received.size, outOfOrder };
};

/** 10,000 events to a receiver on this machine, over many URLs and over one. */
export const measureWebhooks = async (stage: Stage): Promise<Mark[]> => {
  const group = "webhooks";
  const many = await deliver(stage, 100);
  const one = await deliver(stage, 1);
  const note = "from the start of the binary to the last one received";
  const most = { most: 0 };
  return [
    {
      group,
      what: "webhooks to 100 URLs",
      value: Math.round(many.perSecond),
      unit: "/s",
      limit: { least: 2_000 },
      note,
    },
    { group, what: "webhooks to one URL", value: Math.round(one.perSecond), unit: "/s", note: "one after the other" },
    { group, what: "webhooks lost", value: many.lost + one.lost, unit: "", limit: most },
    { group, what: "webhooks out of order", value: many.outOfOrder + one.outOfOrder, unit: "", limit: most },
  ];
};
