import { describe, expect, test } from "bun:test";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import { type PolicyDiscovery, discoverPolicy, findDeclaredSuffix, QUERIES_MAX, walkTargets } from "./discovery.ts";
import { mergeRua } from "./merge.ts";

/** A zone with these texts at the `_dmarc` names of these domains. */
const zoneOf = (texts: Readonly<Record<string, string | readonly string[]>>): Zone =>
  Object.fromEntries(
    Object.entries(texts).map(([domain, text]) => [
      `_dmarc.${domain}`,
      { TXT: typeof text === "string" ? [text] : text },
    ]),
  );
const discover = (domain: string, zone: Zone): Promise<PolicyDiscovery> =>
  discoverPolicy(createZoneResolver(zone), domain);
const hostsOf = ({ queried }: PolicyDiscovery): string[] => queried.map(({ host }) => host);
const fromOf = (discovery: PolicyDiscovery): string | null => {
  if (discovery.kind === "own") return "own";
  return discovery.kind === "inherited" ? discovery.from : discovery.kind;
};

describe("a domain with a record of its own", () => {
  test("has its policy from there, and nobody above is asked", async () => {
    const zone = zoneOf({
      "a.example.com": "v=DMARC1; p=quarantine; sp=none; np=reject; adkim=s; t=y",
      "example.com": "v=DMARC1; p=reject",
    });
    const discovery = await discover("a.example.com", zone);
    expect(discovery).toMatchObject({
      kind: "own",
      policy: {
        p: "quarantine",
        sp: "none",
        np: "reject",
        adkim: "s",
        aspf: "r",
        t: "y",
        own: true,
        inheritedFrom: null,
      },
      published: { kind: "texts" },
    });
    expect(hostsOf(discovery)).toEqual(["_dmarc.a.example.com"]);
  });

  test("may have it behind an alias, which stays visible", async () => {
    const zone: Zone = {
      "_dmarc.example.com": { CNAME: "x.vendor.example" },
      "x.vendor.example": { TXT: ["v=DMARC1; p=reject"] },
    };
    expect(await discover("example.com", zone)).toMatchObject({
      kind: "own",
      policy: { p: "reject" },
      published: { kind: "alias", target: "x.vendor.example" },
    });
  });

  test("has p=none where p is missing", async () => {
    expect(await discover("example.com", zoneOf({ "example.com": "v=DMARC1" }))).toMatchObject({
      policy: { p: "none", own: true },
    });
  });
});

describe("the names asked", () => {
  test.each([
    ["com", []],
    ["example.com", ["com"]],
    ["a.mail.example.com", ["mail.example.com", "example.com", "com"]],
    ["1.2.3.4.5.6.7", ["2.3.4.5.6.7", "3.4.5.6.7", "4.5.6.7", "5.6.7", "6.7", "7"]],
    ["1.2.3.4.5.6.7.8", ["2.3.4.5.6.7.8", "3.4.5.6.7.8", "4.5.6.7.8", "5.6.7.8", "6.7.8", "7.8", "8"]],
    // The example of RFC 9989 §4.10.
    [
      "a.b.c.d.e.f.g.h.i.j.mail.example.com",
      [
        "g.h.i.j.mail.example.com",
        "h.i.j.mail.example.com",
        "i.j.mail.example.com",
        "j.mail.example.com",
        "mail.example.com",
        "example.com",
        "com",
      ],
    ],
  ])("behind %s are its parents, the longest left out", (domain, targets) => {
    expect(walkTargets(domain)).toEqual(targets);
  });

  test("are never more than eight, however long the name is", async () => {
    for (const labels of [1, 2, 7, 8, 9, 30, 120]) {
      const domain = Array.from({ length: labels }, () => "a").join(".");
      const resolver = createZoneResolver({});
      expect((await discoverPolicy(resolver, domain)).kind).toBe("none");
      expect(resolver.queries.length).toBe(Math.min(labels, QUERIES_MAX));
    }
  });

  test("are kept with what they said", async () => {
    const { queried } = await discover(
      "a.example.com",
      zoneOf({ "example.com": ["v=DMARC1; p=reject", "v=spf1 -all"] }),
    );
    expect(queried).toEqual([
      { host: "_dmarc.a.example.com", outcome: "nxdomain", records: [], ttlS: 300 },
      { host: "_dmarc.example.com", outcome: "response", records: ["v=DMARC1; p=reject"], ttlS: 300 },
      { host: "_dmarc.com", outcome: "nxdomain", records: [], ttlS: 300 },
    ]);
  });
});

describe("whose record applies to a.mail.example.com", () => {
  const rows: ReadonlyArray<readonly [string, Readonly<Record<string, string | readonly string[]>>, string]> = [
    ["nobody's", {}, "none"],
    ["its parent's", { "mail.example.com": "v=DMARC1; p=reject" }, "mail.example.com"],
    ["its organisation's", { "example.com": "v=DMARC1; p=reject" }, "example.com"],
    [
      "the shortest name's",
      { "mail.example.com": "v=DMARC1; p=none", "example.com": "v=DMARC1; p=reject" },
      "example.com",
    ],
    [
      "the first with psd=n",
      { "mail.example.com": "v=DMARC1; psd=n", "example.com": "v=DMARC1; p=reject" },
      "mail.example.com",
    ],
    ["the suffix's with psd=y", { com: "v=DMARC1; p=reject; psd=y" }, "com"],
    ["a suffix's that forgot psd=y", { com: "v=DMARC1; p=reject" }, "com"],
    ["the one below psd=y", { "example.com": "v=DMARC1; p=none", com: "v=DMARC1; p=reject; psd=y" }, "example.com"],
    [
      "the one right below psd=y, not one further down",
      { "mail.example.com": "v=DMARC1; p=none", "example.com": "v=DMARC1", com: "v=DMARC1; psd=y" },
      "example.com",
    ],
    [
      "the suffix's, when only one further down has a record too",
      { "mail.example.com": "v=DMARC1; p=none", com: "v=DMARC1; p=reject; psd=y" },
      "com",
    ],
    [
      "that of a longer suffix with psd=y, and the walk ends there",
      { "example.com": "v=DMARC1; p=reject; psd=y", com: "v=DMARC1; p=none" },
      "example.com",
    ],
    ["not one of two at a name", { "example.com": ["v=DMARC1; p=reject", "v=DMARC1; p=none"] }, "none"],
    ["not its own two", { "a.mail.example.com": ["v=DMARC1", "v=DMARC1"], "example.com": "v=DMARC1" }, "example.com"],
    ["not what is no record", { "example.com": ["v=spf1 -all", "v=dmarc1; p=reject"] }, "none"],
    ["a record among other texts", { "example.com": ["v=spf1 -all", "v=DMARC1; p=reject", "x"] }, "example.com"],
    ["its own with psd=y", { "a.mail.example.com": "v=DMARC1; psd=y", "example.com": "v=DMARC1" }, "own"],
  ];
  test.each(rows)("%s", async (_, texts, from) => {
    const discovery = await discover("a.mail.example.com", zoneOf(texts));
    expect(fromOf(discovery)).toBe(from);
    if (discovery.kind === "inherited") {
      expect(discovery.policy).toMatchObject({ own: false, inheritedFrom: from });
      expect(discovery.record.text).toStartWith("v=DMARC1");
    }
  });

  test("the walk stops at psd=n and at psd=y", async () => {
    for (const psd of ["n", "y"]) {
      const discovery = await discover("a.mail.example.com", zoneOf({ "mail.example.com": `v=DMARC1; psd=${psd}` }));
      expect(hostsOf(discovery)).toEqual(["_dmarc.a.mail.example.com", "_dmarc.mail.example.com"]);
    }
  });
});

describe("an inherited policy", () => {
  test.each([
    ["v=DMARC1; p=reject", { p: "reject", sp: "reject", np: "reject" }],
    ["v=DMARC1; p=reject; sp=none", { p: "none", sp: "none", np: "none" }],
    ["v=DMARC1; p=none; np=reject", { p: "none", sp: "none", np: "reject" }],
    ["v=DMARC1; p=none; sp=quarantine; aspf=s; t=y", { p: "quarantine", aspf: "s", adkim: "r", t: "y" }],
  ])("of %s is the one for existing subdomains", async (text, policy) => {
    expect(await discover("a.example.com", zoneOf({ "example.com": text }))).toMatchObject({
      kind: "inherited",
      policy,
    });
  });

  test("is what a new record takes over", async () => {
    const zone = zoneOf({ "example.com": "v=DMARC1; p=reject; sp=quarantine; adkim=s; rua=mailto:a@example.com" });
    const discovery = await discover("a.example.com", zone);
    const inherited = discovery.kind === "inherited" ? discovery : null;
    const ours = "t@reports.example.net";
    const merged = mergeRua({ domain: "a.example.com", published: discovery.published, ours, inherited });
    expect(merged).toMatchObject({
      ok: true,
      value: {
        action: "create",
        value: "v=DMARC1; p=quarantine; adkim=s; rua=mailto:a@example.com,mailto:t@reports.example.net",
      },
    });
  });
});

describe("a failure is never an absence", () => {
  test.each([
    "servfail",
    "timeout",
    "refused",
    "malformed",
    "network_error",
    "unconfirmed",
    "cname_loop",
    "overloaded",
    "aborted",
  ] as const)("%s at the domain or above it leaves all open", async (outcome) => {
    for (const name of ["a.example.com", "example.com", "com"]) {
      const zone: Zone = { [`_dmarc.${name}`]: outcome };
      expect(await discover("a.example.com", zone)).toMatchObject({
        kind: "indefinite",
        host: `_dmarc.${name}`,
        outcome,
      });
    }
  });

  test("of its own name stays visible as one", async () => {
    const { published } = await discover("a.example.com", {
      "_dmarc.a.example.com": "servfail",
      ...zoneOf({ "example.com": "v=DMARC1" }),
    });
    expect(published).toEqual({ kind: "failure", outcome: "servfail" });
  });

  test("above does not hide that there is nothing at the domain itself", async () => {
    const { published } = await discover("a.example.com", { "_dmarc.example.com": "timeout" });
    expect(published).toEqual({ kind: "texts", texts: [] });
  });

  test("above a record of its own does not matter, nor one behind psd=n", async () => {
    expect(
      fromOf(
        await discover("a.example.com", {
          "_dmarc.example.com": "servfail",
          ...zoneOf({ "a.example.com": "v=DMARC1" }),
        }),
      ),
    ).toBe("own");
    expect(
      fromOf(
        await discover("a.example.com", { "_dmarc.com": "servfail", ...zoneOf({ "example.com": "v=DMARC1; psd=n" }) }),
      ),
    ).toBe("example.com");
  });

  test("but a name too long to be asked for has no record", async () => {
    const zone: Zone = { "_dmarc.a.example.com": "invalid_name", ...zoneOf({ "example.com": "v=DMARC1" }) };
    expect(fromOf(await discover("a.example.com", zone))).toBe("example.com");
  });
});

test("a caller that has gone ends the walk", async () => {
  const resolver = createZoneResolver({});
  const discovery = await discoverPolicy(resolver, "a.example.com", { signal: AbortSignal.abort() });
  expect(discovery).toMatchObject({ kind: "indefinite", outcome: "aborted" });
  expect(resolver.queries).toHaveLength(1);
});

test.each<[string, string, Zone, string | null | undefined]>([
  ["the parent", "a.example.com", zoneOf({ "example.com": "v=DMARC1; p=none; psd=y" }), "example.com"],
  ["the nearest one", "b.a.example.com", zoneOf({ "a.example.com": "v=DMARC1; psd=y" }), "a.example.com"],
  ["none, below an organization", "b.a.example.com", zoneOf({ "a.example.com": "v=DMARC1; psd=n" }), null],
  ["none without a declaration", "a.example.com", zoneOf({ "example.com": "v=DMARC1; p=none" }), null],
  ["none of two records", "a.example.com", zoneOf({ "example.com": ["v=DMARC1; psd=y", "v=DMARC1; psd=y"] }), null],
  ["none beyond the organizational domain", "a.co.uk", zoneOf({ "co.uk": "v=DMARC1; psd=y" }), null],
  ["unknown without a response", "a.example.com", { "_dmarc.example.com": "servfail" }, undefined],
])("the declared public suffix above a domain is %s", async (_, domain, zone, suffix) => {
  expect(await findDeclaredSuffix(createZoneResolver(zone), domain)).toBe(suffix);
});
