import { DomainAlerts, alertsSchema, createAlertRoutes, LIST_DMARC_ALERTS } from "./finding-routes.ts";
import { createDmarcAlertHarness } from "../testing/dmarc-alert-harness.ts";
import { createServer } from "../service/server.ts";
import { createApplication } from "../service/http-application.ts";
import { createBudgets } from "../foundation/http/request-memory.ts";
import { Guard } from "../foundation/http/guard.ts";
import { newId } from "../foundation/base/secrets.ts";
import { createTokenBuckets } from "../foundation/base/limits.ts";
import { AppError } from "../foundation/base/errors.ts";
import { z } from "zod";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { describe, expect, test } from "bun:test";

const bodySchema = z.looseObject({
  error: z.string().optional(),
  alerts: z.array(z.looseObject({ subject: z.string() })).default([]),
  next_cursor: z.string().nullable().default(null),
});
const newHarness = createDmarcAlertHarness();

const start = () => {
  const harness = newHarness();
  const { clock, log, alerts: store, domains, db, raise } = harness;
  const caller = { keyId: "key", accountId: "account", mode: "live", rate: { perSecond: 1, burst: 1 } } as const;
  const guard = new Guard((key) => ({ ...caller, scopes: key === "blind" ? ["bulk:write"] : ["dmarc:read"] }), {
    buckets: createTokenBuckets(clock),
    budgets: createBudgets(clock),
  });
  const findDomain = (_: unknown, id: string) => {
    const row = domains.findById(id);
    if (row?.accountId === "account") return row;
    throw new AppError("not_found");
  };
  const routes = createAlertRoutes({ guard, alerts: new DomainAlerts(store, findDomain) });
  const application = createApplication({ log, clock, routes });
  const app = createServer({ log, clock, clients: new ClientAddresses([]), applicationOf: () => application });
  const domain = harness.add("example.com");
  for (let n = 1; n <= 5; n++) {
    const alert = {
      rule: "new_source",
      subject: `s${n}`,
      data: { n },
      summary: `number ${n}`,
      cooldown: true,
    } as const;
    db.transact((tx) => raise(tx, domain, alert, clock.nowMs()));
  }
  return {
    domain,
    add: harness.add,
    async get(id: string, query = "", key = "own") {
      const url = `http://localhost/v1/dmarc/domains/${id}/alerts${query}`;
      const answer = await app.handle(new Request(url, { headers: { authorization: key } }));
      return { status: answer.status, body: bodySchema.parse(await answer.json()) };
    },
  };
};

describe("the alerts of a domain", () => {
  test("are listed newest first, page by page, as documented", async () => {
    const { get, domain } = start();
    const { status, body } = await get(domain.id, "?limit=2");
    expect(status).toBe(200);
    expect(alertsSchema.safeParse(body).error).toBeUndefined();
    expect(body.alerts).toMatchObject([
      { rule: "new_source", subject: "s5", summary: "number 5", data: { n: 5 }, at: "2026-11-20T12:00:00.000Z" },
      { subject: "s4" },
    ]);
    const { body: second } = await get(domain.id, `?limit=3&cursor=${body.next_cursor}`);
    expect(second.alerts.map(({ subject }) => subject)).toEqual(["s3", "s2", "s1"]);
    expect(second.next_cursor).toBeNull();
    expect(alertsSchema.safeParse(LIST_DMARC_ALERTS.responses[200]?.example).error).toBeUndefined();
  });

  test("are not there for strangers, and need the scope", async () => {
    const { get, domain, add } = start();
    const other = add("example.com", { accountId: "other" });
    for (const id of [other.id, newId(), "1"]) expect((await get(id)).status).toBe(404);
    expect((await get(domain.id, "", "blind")).status).toBe(403);
    expect((await get(domain.id, "?limit=0")).body.error).toBe("Invalid limit");
    expect((await get(domain.id, "?rule=x")).body.error).toBe("Invalid query");
    expect((await get(domain.id, "?cursor=x")).body.error).toBe("Invalid cursor");
  });
});
