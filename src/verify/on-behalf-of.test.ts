import { describe, expect, test } from "bun:test";
import type { OnBehalfOf } from "../base/on-behalf-of.ts";
import { createApps } from "../testing/app.ts";
import { postList, untilJobEnded } from "../testing/bulk-requests.ts";
import { createMailNetworks } from "../testing/mail-network.ts";
import { beginEvidence } from "./address-evidence.ts";

const worlds = createMailNetworks();
const apps = createApps();

describe("DNS and mail hosts are asked for the account that wants to know", () => {
  test("by the engine, with its priority", async () => {
    const world = worlds();
    const list: OnBehalfOf = { account: "account-1", priority: "bulk" };
    await world.engine.verify(beginEvidence("ada@x.example"), { onBehalfOf: list });
    expect(new Set([...world.queriedFor, ...world.probedFor])).toEqual(new Set([list]));
    expect(world.probedFor.length).toBeGreaterThan(0);
  });

  test("for a single check, which somebody waits for", async () => {
    const app = apps();
    await app.verify(app.newKey({ mode: "live" }), "ada@gone.example");
    const who: OnBehalfOf = { account: app.accountId(), priority: "realtime" };
    expect(new Set(app.resolver.queriedFor)).toEqual(new Set([who]));
  });

  test("for a list", async () => {
    const app = apps();
    const key = app.newKey({ mode: "live" });
    const { id } = await postList(app, { key, body: { emails: ["ada@gone.example"] } });
    await untilJobEnded(app, key, id);
    const who: OnBehalfOf = { account: app.accountId(), priority: "bulk" };
    expect(new Set(app.resolver.queriedFor)).toEqual(new Set([who]));
  });
});
