import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { createApps, type TestAppOptions } from "../../../testing/app.ts";
import { sampleReportMail, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { ingestionSchema, ingestionsSchema, uploadedSchema } from "./ingestion-schemas.ts";
import { UPLOAD_BYTES_MAX, UPLOAD_FILE_BYTES_MAX, UPLOAD_FILES_MAX } from "./report-uploads.ts";

const start = createApps();
const REPORTS = "/v1/dmarc/reports";
const PATH = "/v1/dmarc/ingestions";

const startWithDomain = async (options: TestAppOptions = {}) => {
  const app = start({ ...options, settings: { REPORT_HOST: "reports.example.net", ...options.settings } });
  const key = app.newKey();
  const domain = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "example.com" } });
  const { id: domainId } = z.object({ domain: z.object({ id: z.string() }) }).parse(domain.body).domain;
  const upload = async (body: unknown, headers: Record<string, string> = {}) => {
    const answer = await app.request("POST", REPORTS, { key, body, headers });
    return {
      answer,
      ingestions: answer.status === 200 ? z.strictObject(uploadedSchema.shape).parse(answer.body).ingestions : [],
    };
  };
  const get = (path: string) => app.request("GET", path, { key });
  return { app, key, domainId, upload, get };
};

const formOf = async (files: ReadonlyArray<readonly [string, string | Uint8Array<ArrayBuffer>]>) => {
  const form = new FormData();
  for (const [name, content] of files) form.append("any", new File([content], name));
  const made = new Response(form);
  const headers = { "content-type": made.headers.get("content-type") ?? "" };
  return { body: new Uint8Array(await made.arrayBuffer()), headers };
};

describe("an upload", () => {
  test.each<[string, Uint8Array<ArrayBuffer> | string]>([
    ["mail", new Uint8Array(sampleReportMail())],
    ["XML", sampleReportXml()],
    ["gzip", Bun.gzipSync(sampleReportXml())],
  ])("of %s is stored when it is answered", async (_what, body) => {
    const { app, domainId, upload } = await startWithDomain();
    const { answer, ingestions } = await upload(body);
    expect(answer.status).toBe(200);
    expect(ingestions).toMatchObject([
      {
        ...{
          via: "http",
          status: "done",
          outcome: "stored",
          reason: null,
          name: null,
          domain_id: null,
          raw_available: true,
        },
        ...{
          received_at: isoTime(app.clock.nowMs()),
          finished_at: isoTime(app.clock.nowMs()),
          client: null,
          mail_from: null,
        },
        findings: [{ outcome: "stored", domain_id: domainId, domain: "example.com", org_name: "receiver.example" }],
      },
    ]);
    expect(app.db.sqlite.query("SELECT count(*) AS n FROM dmarc_records").get()).toEqual({ n: 1 });
  });

  test("of a TLS report is JSON", async () => {
    const { upload } = await startWithDomain();
    const { ingestions } = await upload({ policies: [{ policy: { "policy-domain": "example.com" } }] });
    expect(ingestions).toMatchObject([{ outcome: "stored", reason: "tls_report" }]);
  });

  test("as a form has any number of files, each with an ingestion in its order", async () => {
    const { upload } = await startWithDomain();
    const xml = sampleReportXml();
    const { body, headers } = await formOf([
      ["a.xml", xml],
      ["b.txt", "hello"],
      ["c.gz", Bun.gzipSync(xml)],
    ]);
    const { ingestions } = await upload(body, headers);
    expect(ingestions.map(({ name, outcome, reason }) => ({ name, outcome, reason }))).toEqual([
      { name: "a.xml", outcome: "stored", reason: null },
      { name: "b.txt", outcome: "rejected", reason: "no_report" },
      { name: "c.gz", outcome: "duplicate", reason: null },
    ]);
  });

  test("as a form may have other fields", async () => {
    const { upload } = await startWithDomain();
    const form = new FormData();
    form.append("note", "hello");
    form.append("file", new File([sampleReportXml()], "a.xml"));
    const made = new Response(form);
    const headers = { "content-type": made.headers.get("content-type") ?? "" };
    const { ingestions } = await upload(new Uint8Array(await made.arrayBuffer()), headers);
    expect(ingestions.map(({ name, outcome }) => [name, outcome])).toEqual([["a.xml", "stored"]]);
    expect(ingestions[0]?.findings[0]?.message).toBe("The report is stored.");
  });

  test("of a truncated report is rejected with the line, and not counted", async () => {
    const { upload, get, domainId } = await startWithDomain();
    const xml = sampleReportXml().split("\n").join("\n\n").replace("</row>", "</row></row>");
    const { ingestions } = await upload(xml);
    const lines = xml.slice(0, xml.indexOf("</row></row>")).split("\n").length;
    expect(ingestions).toMatchObject([
      { outcome: "rejected", reason: "truncated", findings: [{ message: expect.stringContaining(`line ${lines}.`) }] },
    ]);
    expect((await get(`/v1/dmarc/domains/${domainId}/reports`)).body).toMatchObject({ reports: [] });
  });

  test("that is invalid gets an error and stores nothing", async () => {
    const { app, key, upload } = await startWithDomain();
    const boundary = { "content-type": "multipart/form-data; boundary=b" };
    const cutOff = '--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n<feedback>';
    const many = await formOf(Array.from({ length: UPLOAD_FILES_MAX + 1 }, (_, at) => [`${at}`, "x"] as const));
    const refused = [
      await upload(""),
      await upload("--b--\r\n", boundary),
      await upload(cutOff, boundary),
      await upload("x", { "content-type": "multipart/form-data" }),
      await upload(many.body, many.headers),
    ];
    expect(refused.map(({ answer }) => [answer.status, answer.body.error])).toEqual(
      refused.map(() => [400, "Invalid request body"]),
    );
    const declared = async (bytes: number, type: string): Promise<number> => {
      const headers = { "content-length": String(bytes), "content-type": type };
      return (await app.request("POST", REPORTS, { key, body: "x", headers })).status;
    };
    expect(await declared(UPLOAD_FILE_BYTES_MAX + 1, "text/xml")).toBe(413);
    expect(await declared(UPLOAD_FILE_BYTES_MAX + 1, "multipart/form-data; boundary=b")).toBe(400);
    expect(await declared(UPLOAD_BYTES_MAX + 2 ** 20 + 1, "multipart/form-data; boundary=b")).toBe(413);
    const packed = { "content-encoding": "gzip" };
    expect((await app.request("POST", REPORTS, { key, body: "x", headers: packed })).status).toBe(415);
    expect((await app.request("POST", REPORTS, { body: "x" })).status).toBe(401);
    const reader = app.newKey({ scopes: ["dmarc:read"] });
    expect((await app.request("POST", REPORTS, { key: reader, body: "x" })).status).toBe(403);
    expect(app.db.sqlite.query("SELECT count(*) AS n FROM dmarc_ingestions").get()).toEqual({ n: 0 });
  });
});

describe("the list of ingestions", () => {
  const fill = async () => {
    const harness = await startWithDomain();
    await harness.upload(sampleReportXml());
    await harness.app.advance(60_000);
    await harness.upload(sampleReportXml({ domain: "foreign.example" }));
    await harness.upload("junk");
    const list = async (query = "") => {
      const { body } = await harness.get(PATH + query);
      return z
        .strictObject(ingestionsSchema.shape)
        .parse(body)
        .ingestions.map(({ outcome }) => outcome);
    };
    return { ...harness, list };
  };

  test("is newest first, in pages, and for its owner only", async () => {
    const { app, get, list } = await fill();
    expect(await list()).toEqual(["rejected", "quarantined", "stored"]);
    const first = ingestionsSchema.parse((await get(`${PATH}?limit=2`)).body);
    expect(first.ingestions.map(({ outcome }) => outcome)).toEqual(["rejected", "quarantined"]);
    const rest = ingestionsSchema.parse((await get(`${PATH}?limit=2&cursor=${first.next_cursor}`)).body);
    expect(rest).toMatchObject({ ingestions: [{ outcome: "stored" }], next_cursor: null });
    for (const key of [app.newKey({ mode: "live" }), app.newKey({ account: "other" })]) {
      expect((await app.request("GET", PATH, { key })).body).toEqual({ ingestions: [], next_cursor: null });
      const one = first.ingestions[0]?.id ?? "";
      for (const path of [one, `${one}/raw`])
        expect((await app.request("GET", `${PATH}/${path}`, { key })).status).toBe(404);
      expect((await app.request("POST", `${PATH}/${one}/retry`, { key })).status).toBe(404);
    }
  });

  test.each([
    ["?outcome=stored", ["stored"]],
    ["?reason=foreign_domain", ["quarantined"]],
    ["?status=pending", []],
    ["?via=smtp", []],
    ["?created_after=2026-01-01T00:00:30Z", ["rejected", "quarantined"]],
    ["?created_before=2026-01-01T00:00:30%2B00:00", ["stored"]],
    ["?domain_id=019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a00", []],
  ])("is narrowed down by %s", async (query, outcomes) => {
    expect(await (await fill()).list(query)).toEqual(outcomes as never);
  });

  test("is filtered by domain: what is about it, and mails to its address", async () => {
    const { app, domainId, list, upload } = await fill();
    expect(await list(`?domain_id=${domainId}`)).toEqual(["stored"]);
    await upload(sampleReportXml());
    expect(await list(`?domain_id=${domainId}`)).toEqual(["duplicate", "stored"]);
    app.db.sqlite.run("DELETE FROM dmarc_ingestions WHERE outcome = 'duplicate'");
    app.db.sqlite.run(
      "UPDATE dmarc_ingestions SET domain = (SELECT number FROM dmarc_domains) WHERE outcome = 'rejected'",
    );
    expect(await list(`?domain_id=${domainId}`)).toEqual(["rejected", "stored"]);
  });

  test.each(["?outcome=lost", "?colour=red", "?created_after=yesterday", "?domain_id=zzz", "?limit=0", "?cursor=x"])(
    "refuses %s",
    async (query) => {
      const { get } = await startWithDomain();
      expect((await get(PATH + query)).status).toBe(400);
    },
  );
});

describe("an ingestion", () => {
  test("is shown as in the response to its upload", async () => {
    const { upload, get } = await startWithDomain();
    const [file] = (await upload("junk")).ingestions;
    expect((await get(`${PATH}/${file?.id}`)).body).toEqual({ ...file });
  });

  test("is downloaded byte for byte, with a type that no browser executes", async () => {
    const { app, key, upload } = await startWithDomain();
    const mail = new Uint8Array(sampleReportMail());
    const packed = new Uint8Array(Bun.gzipSync(mail));
    const bodies = [
      [mail, ".eml"],
      [new Uint8Array([0, 255, 1]), ".bin"],
      [packed, ".xml.gz"],
    ] as const;
    for (const [body, suffix] of bodies) {
      const [row] = (await upload(body)).ingestions;
      const request = new Request(`http://localhost${PATH}/${row?.id}/raw`, {
        headers: { authorization: `Bearer ${key.key}` },
      });
      const response = await app.handle(request);
      expect(new Uint8Array(await response.arrayBuffer())).toEqual(body);
      expect(response.headers.get("content-type")).toBe(body === mail ? "message/rfc822" : "application/octet-stream");
      expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${row?.id}${suffix}"`);
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    }
  });

  test("can be retried, alone or with all others, unless its bytes are gone", async () => {
    const { app, key, upload, get } = await startWithDomain();
    app.service.dmarc.reports.ingester.start();
    const [row] = (await upload(sampleReportXml({ domain: "later.example" }))).ingestions;
    expect(row?.outcome).toBe("quarantined");
    await app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "later.example" } });
    const again = await app.request("POST", `${PATH}/${row?.id}/retry`, { key });
    expect(again.status).toBe(202);
    expect(again.headers.get("location")).toBe(`${PATH}/${row?.id}`);
    expect(ingestionSchema.parse(again.body).id).toBe(row?.id ?? "");
    await app.service.dmarc.reports.ingester.idle();
    expect((await get(`${PATH}/${row?.id}`)).body).toMatchObject({ status: "done", outcome: "stored" });
    for (const [body, status] of [
      [{}, 202],
      [{ accept_unauthenticated: false }, 400],
      [{ accept: true }, 400],
      [{ accept_unauthenticated: true }, 409],
    ] as const) {
      expect((await app.request("POST", `${PATH}/${row?.id}/retry`, { key, body })).status).toBe(status);
      await app.service.dmarc.reports.ingester.idle();
    }
    const [junk] = (await upload("junk")).ingestions;
    const all = await app.request("POST", `${PATH}/retry`, { key });
    expect([all.status, all.body]).toEqual([202, { retried: 1 }]);
    await app.service.dmarc.reports.ingester.idle();
    app.db.sqlite.run("UPDATE dmarc_ingestions SET has_raw = 0");
    app.db.sqlite.run("DELETE FROM dmarc_raw");
    for (const [method, path] of [
      ["POST", "retry"],
      ["GET", "raw"],
    ] as const) {
      const answer = await app.request(method, `${PATH}/${junk?.id}/${path}`, { key });
      expect([answer.status, answer.body.error]).toEqual([409, "conflict"]);
    }
    await app.service.dmarc.reports.ingester.stop();
  });

  test.each(["x", "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a00"])("that is not there is 404 (%s)", async (id) => {
    const { app, key, get } = await startWithDomain();
    expect((await get(`${PATH}/${id}`)).status).toBe(404);
    expect((await get(`${PATH}/${id}/raw`)).status).toBe(404);
    expect((await app.request("POST", `${PATH}/${id}/retry`, { key })).status).toBe(404);
  });
});
