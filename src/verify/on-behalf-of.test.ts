import { describe, expect, test } from "bun:test";
import type { OnBehalfOf } from "../foundation/base/on-behalf-of.ts";
import { createApps } from "../testing/app.ts";
import { postList, untilJobEnded } from "../testing/bulk-requests.ts";
import { createMailNetworks } from "../testing/mail-network.ts";
import { beginEvidence } from "./address-evidence.ts";

const networks = createMailNetworks();
const apps = createApps();

describe("DNS queries and probes run on behalf of the account", () => {
  test("by the engine, with its priority", async () => {
    const network = networks();
    const list: OnBehalfOf = { account: "account-1", priority: "bulk" };
    await network.engine.verify(beginEvidence("ada@x.example"), { onBehalfOf: list });
    expect(new Set([...network.queriedFor, ...network.probedFor])).toEqual(new Set([list]));
    expect(network.probedFor.length).toBeGreaterThan(0);
  });

  test("for a single verification", async () => {
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
