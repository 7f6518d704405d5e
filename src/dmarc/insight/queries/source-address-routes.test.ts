import { expect, test } from "bun:test";
import { createDmarcPageTests } from "../../../testing/dmarc-page-tests.ts";

const newTest = createDmarcPageTests();
const KEY = encodeURIComponent("org:sender-crm.net");

/** Three addresses of one sender: one fails, one passes, one was only forwarded. */
const filled = async () => {
  const made = await newTest();
  const id = await made.enrol();
  const crm = { dkimResults: ["sender-crm.net pass s1"], spfResults: [] } as const;
  await made.report(3, {
    rows: [
      { ip: "192.0.2.1", count: 7, dkim: "fail", spf: "fail", ...crm },
      { ip: "192.0.2.2", count: 90 },
      { ip: "192.0.2.3", count: 5, dkim: "fail", spf: "fail", ...crm },
    ],
  });
  made.nameAddresses({
    "192.0.2.1": "out1.sender-crm.net",
    "192.0.2.2": "out2.sender-crm.net",
    "192.0.2.3": "out3.sender-crm.net",
  });
  const path = `/v1/dmarc/domains/${id}/sources`;
  return { ...made, id, path };
};

test("the addresses of a source are listed, paged and exported, those that fail most first", async () => {
  const { app, key, path, id, visitor } = await filled();
  const sources = (await app.request("GET", path, { key })).body.sources as Array<{ key: string; failing: number }>;
  const failing = sources.find((source) => source.failing > 0)?.key ?? "";
  const target = `${path}/${encodeURIComponent(failing)}/addresses`;
  const all = (await app.request("GET", `${target}?failing=true`, { key })).body.addresses as Array<{ ip: string }>;
  expect(all).toMatchObject([
    { ip: "192.0.2.1", reverse_name: "out1.sender-crm.net", messages: 7, failing: 7, forwarded: 0, aligned_percent: 0 },
    { ip: "192.0.2.3", failing: 5 },
  ]);
  const first = (await app.request("GET", `${target}?failing=true&limit=1`, { key })).body;
  const second = (await app.request("GET", `${target}?failing=true&limit=1&cursor=${first.next_cursor}`, { key })).body;
  expect([first.addresses, second.addresses, second.next_cursor]).toMatchObject([[all[0]], [all[1]], null]);
  const csv = await app.handle(
    new Request(`http://localhost${target}?failing=true`, {
      headers: { authorization: `Bearer ${key.key}`, accept: "text/csv" },
    }),
  );
  const lines = (await csv.text()).trim().split("\r\n");
  expect([lines.length, lines[1]]).toEqual([3, expect.stringMatching(/^192\.0\.2\.1,out1\.sender-crm\.net,/)]);
  const page = `/dmarc/${id}/sources/${encodeURIComponent(failing)}`;
  expect((await visitor.get(page)).html).toContain("addresses.csv?days=30&amp;failing=yes");
  expect((await visitor.get(`${page}/addresses.csv?days=30&failing=yes`)).html.trim().split("\r\n")).toEqual(lines);
});

test("an unknown source, another account's domain and a wrong filter are errors", async () => {
  const { app, key, path } = await filled();
  expect(
    (await app.request("GET", `${path}/${encodeURIComponent("org:nobody.example")}/addresses`, { key })).status,
  ).toBe(404);
  expect((await app.request("GET", `${path}/${KEY}/addresses?failing=yes`, { key })).status).toBe(400);
  const other = app.newKey({ account: "other", mode: "live" });
  expect((await app.request("GET", `${path}/own/addresses`, { key: other })).status).toBe(404);
});
