import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { createApps } from "../testing/app.ts";
import { sampleReportMail } from "../testing/dmarc-reports.ts";
import { type FullAccount, FULL_SETTINGS, fillAccount } from "../testing/full-account.ts";

const start = createApps();

const contentSchema = z.object({ content: z.record(z.string(), z.unknown()).default({}) });
const documentSchema = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ responses: z.record(z.string(), contentSchema) }))),
});

/** Responses that the request chooses by its Accept header. */
const NEGOTIATED = ["application/json", "text/csv", "application/x-ndjson"];

/** Nothing of these kinds exists in the account: their 404 is not what is tested. */
const ABSENT = [
  "/v1/dmarc/domains/{id}/failure-reports/{reportId}",
  "/v1/blacklist/targets/{id}/members",
  "/v1/bulk-verifications/{jobId}/comparison",
  "/v1/bulk-verifications/{jobId}/comparison.csv",
];

/** The values of path parameters; operations of what does not exist are left out. */
const pathOf = (account: FullAccount & { readonly reportId: string; readonly mail: string }, path: string): string => {
  const byFolder: Readonly<Record<string, string>> = {
    "email-verifications": account.verification,
    "bulk-verifications": account.endedList,
    targets: account.target,
    domains: account.domain,
    ingestions: account.mail,
    reports: account.reportId,
    sources: "own",
    deliveries: account.failedDelivery,
    items: "0",
    docs: "lists",
  };
  return path.replaceAll(/([\w-]+)\/\{\w+\}/g, (_, folder: string) => `${folder}/${byFolder[folder] ?? "none"}`);
};

const fill = async () => {
  const account = await fillAccount(start({ settings: FULL_SETTINGS }));
  const listed = await account.request(
    "GET",
    `/v1/dmarc/domains/${account.domain}/reports?from=2025-12-31&to=2026-01-02`,
  );
  const [report] = z.object({ reports: z.array(z.object({ id: z.string() })) }).parse(listed.body).reports;
  const sent = await account.request("POST", "/v1/dmarc/reports", new Uint8Array(sampleReportMail()));
  const [mail] = z.object({ ingestions: z.array(z.object({ id: z.string() })) }).parse(sent.body).ingestions;
  return { ...account, reportId: report?.id ?? "", mail: mail?.id ?? "" };
};

/** Every GET route of the API with the media types of its 200. */
const documented = async (account: FullAccount): Promise<ReadonlyArray<readonly [string, readonly string[]]>> => {
  const { paths } = documentSchema.parse((await account.app.request("GET", "/openapi.json")).body);
  return Object.entries(paths).flatMap(([path, { get }]) =>
    get === undefined || path === "/metrics" ? [] : [[path, Object.keys(get.responses["200"]?.content ?? {})] as const],
  );
};

const typeOf = async (account: FullAccount, path: string, accept: string): Promise<readonly [number, string]> => {
  const headers = { authorization: `Bearer ${account.key.key}`, accept };
  const response = await account.app.handle(new Request(`http://localhost${path}`, { headers }));
  await response.body?.cancel();
  return [response.status, (response.headers.get("content-type") ?? "").split(";")[0] ?? ""];
};

describe("media types of responses", () => {
  test("are documented, and each that is documented is served where Accept names it", async () => {
    const account = await fill();
    const routes = await documented(account);
    const several = routes.filter(([, types]) => types.length > 1).map(([path]) => path);
    expect(several).toEqual([
      "/v1/bounces",
      "/v1/bounces/summary",
      "/v1/dmarc/ingestions/{id}/raw",
      "/v1/dmarc/domains/{id}/sources",
      "/v1/dmarc/domains/{id}/own-hosts",
      "/v1/dmarc/domains/{id}/sources/{key}/addresses",
      "/v1/dmarc/domains/{id}/records",
    ]);
    let served = 0;
    for (const [path, types] of routes) {
      for (const accept of new Set([...types, ...NEGOTIATED])) {
        const [status, type] = await typeOf(account, pathOf(account, path), accept);
        if (status === 404 && ABSENT.includes(path)) continue;
        expect([path, accept, status, types.includes(type)]).toEqual([path, accept, 200, true]);
        if (types.includes(accept) && NEGOTIATED.includes(accept)) expect([path, type]).toEqual([path, accept]);
        served++;
      }
    }
    expect(served).toBeGreaterThan(100);
    expect(await typeOf(account, `/v1/dmarc/ingestions/${account.mail}/raw`, "*/*")).toEqual([200, "message/rfc822"]);
  });
});
