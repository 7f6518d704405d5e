import fc from "fast-check";
import { checkMtaSts } from "./inbound.ts";
import {
  coversMxHost,
  parseMtaStsPolicy,
  policyIdOf,
  policyRecordOf,
  policyTextOf,
} from "../../records/sts/policy-text.ts";
import { checkMx } from "./mx.ts";
import { createHealthDns } from "./section-report.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../../../testing/smtp-stub-key.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { createUrlPolicy, createGetter, type Getter, POST_TIMEOUT_MS } from "../../../foundation/net/fetch-url.ts";
import { afterEach, describe, expect, test } from "bun:test";

const stops: Array<() => void> = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** The certificate of the tests is for this host. */
const HOST = "mx.example.test";
const POLICY =
  "version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.backup.example.net\r\nmax_age: 1209600\r\n";
const PLAIN = { headers: { "content-type": "text/plain; charset=utf-8" } };
const BASE: Zone = {
  "example.com": {
    MX: [
      [10, "mail.example.com"],
      [20, "b.backup.example.net"],
    ],
  },
  "_mta-sts.example.com": { TXT: ["v=STSv1; id=20261122;"] },
  "mta-sts.example.com": { A: ["127.0.0.1"] },
};

const serve = (answer: (path: string) => Response | Promise<Response>, certificate = HOST) => {
  const clock = createTestClock();
  const paths: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { key: TEST_KEY, cert: TEST_CERTIFICATE },
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      paths.push(pathname);
      return answer(pathname);
    },
  });
  const { port } = server;
  stops.push(() => void server.stop(true));
  const resolver = createZoneResolver({ [HOST]: { A: ["127.0.0.1"] }, [certificate]: { A: ["127.0.0.1"] } });
  const get = createGetter({ clock, resolver, rules: createUrlPolicy(["127.0.0.0/8"]), ca: TEST_CERTIFICATE });
  const local: Getter = (order) =>
    get({ ...order, url: order.url.replace("mta-sts.example.com", `${certificate}:${port}`) });
  return { get: local, clock, paths };
};

const never: Getter = async () => {
  throw new Error("nothing is to be fetched");
};

const check = async (get: Getter, zone: Zone = BASE, hosted: string | null = null) => {
  const dns = createHealthDns(createZoneResolver(zone));
  const signal = new AbortController().signal;
  const section = await checkMtaSts({ dns, get, signal, hosted }, "example.com", await checkMx(dns, "example.com"));
  return { ...section, codes: section.findings.map(({ code, severity }) => `${severity} ${code}`) };
};
const withPolicy = (text: string) => serve(() => new Response(text, PLAIN)).get;

describe("a policy file", () => {
  test("that is in order", async () => {
    const { get, paths } = serve(() => new Response(POLICY, PLAIN));
    expect(await check(get)).toMatchObject({
      status: "ok",
      findings: [],
      unchecked: [],
      record: "v=STSv1; id=20261122;",
      policy: { mode: "enforce", max_age_s: 1_209_600, mx: ["mail.example.com", "*.backup.example.net"] },
    });
    expect(paths).toEqual(["/.well-known/mta-sts.txt"]);
  });

  test.each([
    ["mode: testing", POLICY.replace("enforce", "testing"), "ok", ["info mta_sts_mode"]],
    ["mode: none", "version: STSv1\nmode: none\nmax_age: 86400\n", "ok", ["info mta_sts_mode"]],
    ["an MX host that it does not name", POLICY.replace("*.backup", "*.other"), "problems", ["error mta_sts_mx"]],
    [
      "the same while testing",
      POLICY.replace("*.backup", "*.other").replace("enforce", "testing"),
      "warnings",
      ["info mta_sts_mode", "warning mta_sts_mx"],
    ],
    ["a short max_age", POLICY.replace("1209600", "3600"), "warnings", ["warning mta_sts_max_age"]],
    ["no version", POLICY.replace("version: STSv1\r\n", ""), "problems", ["error mta_sts_policy"]],
    ["no mode", POLICY.replace("mode: enforce\r\n", ""), "problems", ["error mta_sts_policy"]],
    ["no mx", POLICY.replaceAll(/mx: .*\r\n/g, ""), "problems", ["error mta_sts_policy"]],
    ["a web page", "<!doctype html><title>Not here</title>", "problems", ["error mta_sts_policy"]],
  ])("with %s", async (_, text, status, codes) => {
    expect(await check(withPolicy(text))).toMatchObject({ status, codes });
  });

  test("with another content type", async () => {
    const { get } = serve(() => new Response(POLICY, { headers: { "content-type": "text/html" } }));
    expect(await check(get)).toMatchObject({
      status: "warnings",
      codes: ["warning mta_sts_content_type"],
      policy: { mode: "enforce" },
    });
  });

  test("behind a redirect is not followed", async () => {
    const { get, paths } = serve((path) =>
      path === "/elsewhere" ? new Response(POLICY, PLAIN) : Response.redirect("/elsewhere", 302),
    );
    expect(await check(get)).toMatchObject({ status: "problems", codes: ["error mta_sts_response"], policy: null });
    expect(paths).toEqual(["/.well-known/mta-sts.txt"]);
  });

  test.each([404, 500, 204])("with status %d", async (status) => {
    const { get } = serve(() => new Response(null, { status }));
    expect((await check(get)).codes).toEqual(["error mta_sts_response"]);
  });

  test("that is too long is read to 64 KiB and ignored", async () => {
    const line = "mx: mail.example.com\n".repeat(500);
    const { get } = serve(() => new Response(new ReadableStream({ pull: (stream) => stream.enqueue(line) }), PLAIN));
    expect(await check(get)).toMatchObject({ status: "problems", codes: ["error mta_sts_response"], policy: null });
  });

  test("that is slow is unknown after the deadline", async () => {
    const reached = Promise.withResolvers<void>();
    const { get, clock } = serve(() => {
      reached.resolve();
      return Promise.withResolvers<Response>().promise;
    });
    const checked = check(get);
    await reached.promise;
    await clock.advance(POST_TIMEOUT_MS);
    expect(await checked).toMatchObject({
      status: "unknown",
      findings: [],
      unchecked: [expect.stringContaining("15 seconds")],
    });
  });

  test("behind a certificate of another name", async () => {
    const { get, paths } = serve(() => new Response(POLICY, PLAIN), "other.example.test");
    expect(await check(get)).toMatchObject({ status: "problems", codes: ["error mta_sts_certificate"], policy: null });
    expect(paths).toEqual([]);
  });

  test("at a server that refuses connections is unknown", async () => {
    const { get } = serve(() => new Response());
    for (const stop of stops.splice(0)) stop();
    expect(await check(get)).toMatchObject({
      status: "unknown",
      findings: [],
      unchecked: [expect.stringContaining("The connection failed")],
    });
  });

  test("at a private address is not fetched", async () => {
    const get = createGetter({
      clock: createTestClock(),
      resolver: createZoneResolver(BASE),
      rules: createUrlPolicy([]),
    });
    expect(await check(get)).toMatchObject({
      status: "unknown",
      findings: [],
      unchecked: [expect.stringContaining("is not an allowed address")],
    });
  });
});

describe("the record", () => {
  const zone = (TXT: readonly string[], more: Zone = {}): Zone => ({
    ...BASE,
    "_mta-sts.example.com": { TXT },
    ...more,
  });

  test.each([
    ["is missing", zone([]), "ok", ["info mta_sts_missing"]],
    ["is something else", zone(["v=spf1 -all"]), "ok", ["info mta_sts_missing"]],
    ["stands twice", zone(["v=STSv1; id=1;", "v=STSv1; id=2;"]), "problems", ["error mta_sts_several"]],
    [
      "is missing where no mail is received",
      zone([], { "example.com": { MX: [[0, "."]] } }),
      "ok",
      ["info mta_sts_not_needed"],
    ],
  ])("%s", async (_, records, status, codes) => {
    expect(await check(never, records)).toMatchObject({ status, codes, policy: null });
  });

  test.each(["v=STSv1;", "v=STSv1; id=;", "v=STSv1; id=a-b;", `v=STSv1; id=${"1".repeat(33)}`])(
    "%s has no valid id",
    async (text) => {
      expect((await check(withPolicy(POLICY), zone([text]))).codes).toEqual(["error mta_sts_syntax"]);
    },
  );

  test("leads to a host without an address", async () => {
    const records = { ...BASE, "mta-sts.example.com": "nxdomain" } as const;
    expect(await check(never, records)).toMatchObject({ status: "problems", codes: ["error mta_sts_host_missing"] });
  });

  test.each(["servfail", "timeout", "unconfirmed", "refused"] as const)(
    "and its host are unknown on %s",
    async (failure) => {
      expect(await check(never, { ...BASE, "_mta-sts.example.com": failure })).toMatchObject({
        status: "unknown",
        findings: [],
      });
      expect(await check(never, { ...BASE, "mta-sts.example.com": failure })).toMatchObject({
        status: "unknown",
        findings: [],
      });
    },
  );
});

describe("a policy of this service", () => {
  const own = policyTextOf("testing", ["b.backup.example.net", "mail.example.com"]);
  const id = policyIdOf(own);
  const recordOf = (text: string): Zone => ({ ...BASE, "_mta-sts.example.com": { TXT: [text] } });
  const enforced = policyTextOf("enforce", ["mail.example.com"]);

  test.each([
    ["is in order", own, policyRecordOf(id), own, []],
    ["has another id than the record", own, "v=STSv1; id=20261122;", own, ["warning mta_sts_id"]],
    ["has another id, and is enforced", enforced, "v=STSv1; id=1;", enforced, ["error mta_sts_mx", "error mta_sts_id"]],
    [
      "is not the one at the host",
      own,
      policyRecordOf(id),
      enforced,
      ["error mta_sts_mx", "warning mta_sts_not_served_here"],
    ],
  ])("%s", async (_, hosted, record, served, codes) => {
    const found = (await check(withPolicy(served), recordOf(record), hosted)).codes;
    expect(found.filter((code) => code !== "info mta_sts_mode")).toEqual(codes);
  });

  test("without a record names the record to publish", async () => {
    const { findings } = await check(never, { ...BASE, "_mta-sts.example.com": { TXT: [] } }, own);
    expect(findings).toMatchObject([
      {
        severity: "warning",
        code: "mta_sts_missing",
        record: { host: "_mta-sts.example.com", value: policyRecordOf(id) },
      },
    ]);
  });
});

test.each([
  ["mail.example.com", "mail.example.com", true],
  ["*.example.com", "mail.example.com", true],
  ["*.example.com", "a.b.example.com", false],
  ["*.example.com", "example.com", false],
  ["mail.example.com", "mail2.example.com", false],
  ["*.com", "com", false],
])("%s covers %s: %p", (pattern, host, expected) => {
  expect(coversMxHost(pattern, host)).toBe(expected);
});

test("no policy text throws, and a valid one has all it needs", () => {
  const line = fc.constantFrom(
    "version: STSv1",
    "mode: enforce",
    "mode: none",
    "mx: a.example",
    "mx: *",
    "max_age: 1",
    "max_age: 99999999999",
    ":",
    "a:b",
    "",
  );
  const text = fc
    .array(fc.oneof(line, fc.string({ maxLength: 20 })), { maxLength: 15 })
    .map((lines) => lines.join("\n"));
  fc.assert(
    fc.property(text, (input) => {
      const { mode, maxAgeS, mx, faults } = parseMtaStsPolicy(input);
      if (faults.length === 0)
        expect(mode !== null && maxAgeS !== null && (mode === "none" || mx.length > 0)).toBe(true);
    }),
  );
  expect(parseMtaStsPolicy("mx: a.example\n".repeat(5_000)).mx.length).toBeLessThanOrEqual(200);
});
