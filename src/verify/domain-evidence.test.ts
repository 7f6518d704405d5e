import { describe, expect, test } from "bun:test";
import type { Random } from "../foundation/base/secrets.ts";
import { parseAddress } from "../foundation/mail/address.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import { createZoneResolver, type Zone, type ZoneFailure } from "../testing/dns-zone.ts";
import { createTestClock, settle } from "../testing/clock.ts";
import { createDomainLookup } from "./domain-evidence.ts";
import { evidenceSchema } from "./evidence.ts";

/** Always the first of what is left: no shuffle. */
const inOrder: Random = { integer: () => 0 };
const backwards: Random = { integer: (below) => below - 1 };

const inquire = async (zone: Zone, { email = "ada@x.example", random = inOrder, allow = [] as string[] } = {}) => {
  const address = parseAddress(email);
  if (!address.ok) throw new Error(`not an address: ${email}`);
  const resolver = createZoneResolver(zone);
  const evidence = await createDomainLookup({
    resolver,
    policy: createAddressPolicy(allow),
    random,
    clock: createTestClock(),
  })(address.value);
  expect(evidenceSchema.shape.domain.safeParse(evidence).success).toBe(true);
  return { ...evidence, asked: resolver.queries };
};

const PUBLIC = "203.0.114.25";
const PUBLIC_2 = "203.0.114.26";
const PUBLIC_6 = "2a00:1450::25";
const MX = { "x.example": { MX: [[10, "mx.x.example"]] } } as const;

describe("mail hosts", () => {
  test("come by preference, each with all its addresses", async () => {
    const { outcome, hosts, implicit_mx } = await inquire({
      "x.example": {
        MX: [
          [20, "b.x.example"],
          [10, "a.x.example"],
        ],
      },
      "a.x.example": { A: [PUBLIC], AAAA: [PUBLIC_6] },
      "b.x.example": { A: [PUBLIC_2] },
    });
    expect([outcome, implicit_mx]).toEqual(["mail_hosts", false]);
    expect(hosts).toEqual([
      {
        host: "a.x.example",
        preference: 10,
        addresses: [
          { address: PUBLIC, allowed: true },
          { address: PUBLIC_6, allowed: true },
        ],
        lookup_failed: false,
      },
      { host: "b.x.example", preference: 20, addresses: [{ address: PUBLIC_2, allowed: true }], lookup_failed: false },
    ]);
  });

  test("of equal preference are shuffled, others are not", async () => {
    const zone: Zone = {
      "x.example": {
        MX: [
          [20, "c.x.example"],
          [10, "a.x.example"],
          [10, "b.x.example"],
        ],
      },
      "a.x.example": { A: [PUBLIC] },
      "b.x.example": { A: [PUBLIC] },
      "c.x.example": { A: [PUBLIC] },
    };
    const order = async (random: Random) => (await inquire(zone, { random })).hosts.map(({ host }) => host.slice(0, 1));
    expect(await order(inOrder)).toEqual(["a", "b", "c"]);
    expect(await order(backwards)).toEqual(["b", "a", "c"]);
  });

  test("beyond the fortieth are not looked at", async () => {
    const names = Array.from({ length: 60 }, (_, at) => `mx${at}.x.example`);
    const hosts = Object.fromEntries(names.map((name) => [name, { A: [PUBLIC] }]));
    const zone: Zone = { "x.example": { MX: names.map((name, at) => [at, name] as const) }, ...hosts };
    const evidence = await inquire(zone);
    expect(evidence.hosts.map(({ host }) => host)).toEqual(names.slice(0, 40));
    expect(evidence.dns_queries.length).toBe(1 + 40 * 2);
  });

  test("beyond the fortieth leave it open when none before is usable", async () => {
    const names = Array.from({ length: 45 }, (_, at) => `mx${at}.x.example`);
    const hosts = Object.fromEntries(names.map((name) => [name, { A: ["10.0.0.1"] }]));
    const exchanges = names.map((name, at) => [at, name] as const);
    const zone: Zone = { "x.example": { MX: exchanges }, ...hosts, "mx44.x.example": { A: [PUBLIC] } };
    expect((await inquire(zone)).outcome).toBe("dns_error");
    expect((await inquire({ ...hosts, "x.example": { MX: exchanges.slice(0, 40) } })).outcome).toBe("unroutable");
  });

  test("behind aliases are found, for the domain and for the host", async () => {
    const { outcome, hosts } = await inquire({
      "x.example": { CNAME: "real.example" },
      "real.example": { MX: [[10, "mx.x.example"]] },
      "mx.x.example": { CNAME: "box.example" },
      "box.example": { A: [PUBLIC] },
    });
    expect(outcome).toBe("mail_hosts");
    expect(hosts.map(({ host, addresses }) => [host, addresses[0]?.address])).toEqual([["mx.x.example", PUBLIC]]);
  });

  test("a null MX among real ones is left out", async () => {
    const zone: Zone = {
      "x.example": {
        MX: [
          [0, "."],
          [10, "mx.x.example"],
        ],
      },
      "mx.x.example": { A: [PUBLIC] },
    };
    expect((await inquire(zone)).hosts.map(({ host }) => host)).toEqual(["mx.x.example"]);
  });

  test("of an unverifiable provider are known by their suffix", async () => {
    const zone: Zone = {
      "x.example": { MX: [[1, "mta7.am0.yahoodns.net"]] },
      "mta7.am0.yahoodns.net": { A: [PUBLIC] },
    };
    expect((await inquire(zone)).unverifiable_provider).toBe("Yahoo");
    const lookalike: Zone = { "x.example": { MX: [[1, "notyahoodns.net"]] }, "notyahoodns.net": { A: [PUBLIC] } };
    expect((await inquire(lookalike)).unverifiable_provider).toBeNull();
  });
});

describe("a definite answer", () => {
  const rows: ReadonlyArray<readonly [string, Zone, string]> = [
    ["NXDOMAIN", {}, "nxdomain"],
    ["null MX", { "x.example": { MX: [[0, "."]] } }, "null_mx"],
    ["neither MX nor address", { "x.example": { TXT: ["hello"] } }, "no_mail_server"],
    ["no MX and a private address", { "x.example": { A: ["10.0.0.1"] } }, "unroutable"],
    ["MX without any address", { ...MX, "mx.x.example": { TXT: ["hello"] } }, "unroutable"],
    ["MX that does not exist", MX, "unroutable"],
    // DNS answered, and an address is not the name of a host (RFC 1035 §3.3.9).
    ["an address as MX", { "x.example": { MX: [[10, PUBLIC]] } }, "unroutable"],
    [
      "an address as MX beside one that does not exist",
      {
        "x.example": {
          MX: [
            [10, PUBLIC],
            [20, "gone.x.example"],
          ],
        },
      },
      "unroutable",
    ],
    [
      "an address as MX beside one that cannot be looked up",
      {
        "x.example": {
          MX: [
            [10, PUBLIC],
            [20, "b.example"],
          ],
        },
        "b.example": "servfail",
      },
      "dns_error",
    ],
    [
      "an address as MX beside a usable one",
      {
        "x.example": {
          MX: [
            [10, PUBLIC],
            [20, "mx.x.example"],
          ],
        },
        "mx.x.example": { A: [PUBLIC] },
      },
      "mail_hosts",
    ],
    [
      "several null MX",
      {
        "x.example": {
          MX: [
            [0, "."],
            [10, "."],
          ],
        },
      },
      "null_mx",
    ],
    [
      "a null MX beside a host without address",
      {
        "x.example": {
          MX: [
            [0, "."],
            [10, "gone.x.example"],
          ],
        },
      },
      "unroutable",
    ],
    [
      "MX at addresses that are not public",
      { ...MX, "mx.x.example": { A: ["127.0.0.1"], AAAA: ["fd00::1"] } },
      "unroutable",
    ],
    [
      "MX at 127.0.0.1 and ::, which no filter answers together",
      { ...MX, "mx.x.example": { A: ["127.0.0.1"], AAAA: ["::"] } },
      "unroutable",
    ],
    ["MX with one public address among others", { ...MX, "mx.x.example": { A: ["10.0.0.1", PUBLIC] } }, "mail_hosts"],
  ];
  test.each(rows)("%s", async (_, zone, outcome) => {
    expect((await inquire(zone)).outcome).toBe(outcome as never);
  });

  test("every address is listed with whether it may be connected to", async () => {
    const { hosts } = await inquire({ ...MX, "mx.x.example": { A: ["10.0.0.1", PUBLIC] } });
    expect(hosts[0]?.addresses).toEqual([
      { address: "10.0.0.1", allowed: false },
      { address: PUBLIC, allowed: true },
    ]);
  });

  test("an allowed network counts as public", async () => {
    const zone: Zone = { ...MX, "mx.x.example": { A: ["10.0.0.1"] } };
    expect((await inquire(zone, { allow: ["10.0.0.0/8"] })).outcome).toBe("mail_hosts");
  });

  test("without MX the domain itself is the mail host", async () => {
    const { outcome, implicit_mx, hosts, asked } = await inquire({ "x.example": { A: [PUBLIC] } });
    expect([outcome, implicit_mx]).toEqual(["mail_hosts", true]);
    expect(hosts.map(({ host }) => host)).toEqual(["x.example"]);
    expect(asked).toEqual(["MX x.example", "A x.example", "AAAA x.example"]);
  });
});

describe("what is no statement about the domain leaves it open", () => {
  test.each<[string, Zone]>([
    ["no name as MX", { "x.example": { MX: [[10, "mx"]] }, mx: "invalid_name" }],
    ["0.0.0.0, as resolvers that filter answer", { ...MX, "mx.x.example": { A: ["0.0.0.0"] } }],
    [":: likewise", { ...MX, "mx.x.example": { A: ["0.0.0.0"], AAAA: ["::"] } }],
    ["0.0.0.0 of the domain itself", { "x.example": { A: ["0.0.0.0"] } }],
    [
      "a private address, and a host that cannot be looked up",
      {
        "x.example": {
          MX: [
            [10, "a.example"],
            [20, "b.example"],
          ],
        },
        "a.example": { A: ["10.0.0.1"] },
        "b.example": "servfail",
      },
    ],
  ])("%s", async (_, zone) => {
    expect((await inquire(zone)).outcome).toBe("dns_error");
  });

  test("but a host with a public address is probed", async () => {
    const zone: Zone = {
      "x.example": {
        MX: [
          [10, "203.0.114.25"],
          [20, "mx.x.example"],
        ],
      },
      "mx.x.example": { A: [PUBLIC] },
    };
    expect((await inquire(zone)).outcome).toBe("mail_hosts");
  });
});

/** The resolver's word for queries that were not sent: the failure is ours. */
const NOT_SENT: readonly ZoneFailure[] = ["local_failure", "overloaded", "aborted"];

describe("a DNS failure is never a no", () => {
  const failures: readonly ZoneFailure[] = [
    "unconfirmed",
    "servfail",
    "refused",
    "timeout",
    "malformed",
    "network_error",
    "cname_loop",
    "invalid_name",
    ...NOT_SENT,
  ];
  for (const failure of failures)
    test(failure, async () => {
      const zones: Zone[] = [
        { "x.example": { MX: failure } },
        { "x.example": { A: failure } },
        { "x.example": { AAAA: failure } },
        { ...MX, "mx.x.example": failure },
        { ...MX, "mx.x.example": { A: failure } },
        { ...MX, "mx.x.example": { AAAA: failure } },
        { ...MX, "mx.x.example": { A: ["10.0.0.1"], AAAA: failure } },
        {
          "x.example": {
            MX: [
              [10, "mx.x.example"],
              [20, "gone.x.example"],
            ],
          },
          "mx.x.example": failure,
        },
      ];
      const isOurs = NOT_SENT.includes(failure);
      for (const zone of zones) expect((await inquire(zone)).outcome).toBe(isOurs ? "local_failure" : "dns_error");
    });

  test("but one host that is known is enough", async () => {
    const zone: Zone = { ...MX, "mx.x.example": { A: [PUBLIC], AAAA: "servfail" } };
    const { outcome, hosts } = await inquire(zone);
    expect([outcome, hosts[0]?.lookup_failed]).toEqual(["mail_hosts", true]);
  });
});

describe("an address literal", () => {
  test.each([
    [`ada@[${PUBLIC}]`, PUBLIC, "mail_hosts"],
    [`ada@[IPv6:${PUBLIC_6}]`, PUBLIC_6, "mail_hosts"],
    ["ada@[10.0.0.1]", "10.0.0.1", "unroutable"],
    ["ada@[IPv6:::ffff:127.0.0.1]", null, "unroutable"],
  ])("%s asks no DNS", async (email, address, outcome) => {
    const evidence = await inquire({}, { email });
    expect(evidence.outcome).toBe(outcome as never);
    if (address !== null) expect(evidence.hosts[0]?.addresses[0]?.address).toBe(address);
    expect(evidence.asked).toEqual([]);
  });
});

test("every query is kept with its response", async () => {
  const { dns_queries } = await inquire({ ...MX, "mx.x.example": { A: [PUBLIC] } });
  const brief = dns_queries.map(({ name, type, outcome, records, ttl_s }) => [type, name, outcome, records, ttl_s]);
  expect(brief).toEqual([
    ["MX", "x.example", "response", ["10 mx.x.example"], 300],
    ["A", "mx.x.example", "response", [PUBLIC], 300],
    ["AAAA", "mx.x.example", "no_data", [], 300],
  ]);
});

describe("a slow name server of one mail host", () => {
  const network = () => {
    const clock = createTestClock();
    const zone = createZoneResolver({
      "x.example": {
        MX: [
          [10, "good.x.example"],
          [20, "slow.elsewhere.example"],
        ],
      },
      "y.example": {
        MX: [
          [10, "slow.elsewhere.example"],
          [20, "good.x.example"],
        ],
      },
      "good.x.example": { A: ["198.51.101.1"] },
      "slow.elsewhere.example": { A: ["198.51.101.2"] },
    });
    const { promise: later, resolve: answer } = Promise.withResolvers<void>();
    const resolver: DnsResolver = {
      async resolve(name, type) {
        if (name.startsWith("slow")) await later;
        return zone.resolve(name, type);
      },
    };
    const inquire = createDomainLookup({
      resolver,
      policy: createAddressPolicy([]),
      random: { integer: () => 0 },
      clock,
    });
    const ask = async (email: string) => {
      const address = parseAddress(email);
      if (!address.ok) throw new Error(address.error);
      return inquire(address.value);
    };
    return { clock, ask, answer };
  };

  test("delays the lookup by at most a second when a better host is known", async () => {
    const { clock, ask } = network();
    const asking = ask("ada@x.example");
    await settle();
    await clock.advance(1_000);
    const { outcome, hosts } = await asking;
    expect([outcome, hosts.map(({ host, lookup_failed }) => [host, lookup_failed])]).toEqual([
      "mail_hosts",
      [
        ["good.x.example", false],
        ["slow.elsewhere.example", true],
      ],
    ]);
  });

  test("is waited for when it is the best host's: a worse one must not speak first", async () => {
    const { clock, ask, answer } = network();
    const asking = ask("ada@y.example");
    await settle();
    await clock.advance(5_000);
    answer();
    expect((await asking).hosts.map(({ lookup_failed }) => lookup_failed)).toEqual([false, false]);
  });
});
