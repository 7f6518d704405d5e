import { type Claim, claim } from "./claims.ts";
import { join } from "node:path";
import { z } from "zod";
import { type DnsScript, encodeResponse, soaFor, startDnsServer } from "../../src/testing/dns-server.ts";
import type { Subject } from "./ask.ts";
import { serverDirectory } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";
import { startService } from "./run.ts";

const THEME = "trust";
const PORT = 5353;
const UNBOUND = { ip: "127.10.9.53", port: PORT } as const;
const RBLDNSD = { ip: "127.10.9.55", port: PORT } as const;
const SCRIPTED = { ip: "127.10.9.56", port: PORT } as const;
const HTTP = { ip: "127.10.9.80", port: 8087 } as const;
const BASE = `http://${HTTP.ip}:${HTTP.port}/v1/blacklist/targets`;
const SUFFIX = "trust.test";
/** rbldnsd's own: 35 minutes. */
const POINT_TTL_S = 2100;
const TARGET_TTL_S = 2;
const NXDOMAIN = 3;
const REFUSED = 5;
/** Until rbldnsd has read its files again, and what targets were told has run out of unbound's cache. */
const SETTLE_MS = 5_000;
const CHECK_TIMEOUT_S = 60;
/** Of a pass over all targets while one list drops what it is asked. */
const PASS_MS_MAX = 40_000;
const UNBOUND_NAME = "unbound-trust";

const ADDRESSES = Array.from({ length: 14 }, (_, n) => `100.20.40.${n + 1}`);
const FIRST = ADDRESSES[0] ?? "";
const SECOND = ADDRESSES[1] ?? "";
const FOURTH = ADDRESSES[3] ?? "";
const IPV6 = "2a00:1450:40::1";
const HALVES = ["0.0.0.0/1", "128.0.0.0/1"];
const world = (answer = "127.0.0.2") => HALVES.map((half) => `${half} :${answer}:Everything`);

/** What of a list is served: at first, and after it has changed. The test entry stands in a file of its own. */
interface TrustList {
  readonly id: string;
  readonly kind: "ipv4" | "ipv6";
  readonly hasNegative: boolean;
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** Whether the test entry is served afterwards. */
  readonly isAliveAfter: boolean;
  readonly category?: "policy";
  /** Listed targets before; and after, as an honest witness would say. */
  readonly listedBefore: readonly string[];
  readonly listedAfter: readonly string[];
}

const entries = (addresses: readonly string[]) => addresses.map((ip) => `${ip} :127.0.0.2:Spam`);
const list = (id: string, more: Partial<TrustList>): TrustList => ({
  ...{
    id,
    kind: "ipv4",
    hasNegative: true,
    before: [],
    after: [],
    isAliveAfter: true,
    listedBefore: [],
    listedAfter: [],
  },
  ...more,
});

/** A quarter of all addresses, half of those below 128.0.0.0: by policy, which is honest. */
const MUCH = ["!127.0.0.1", "64.0.0.0/2 :127.0.0.2:Much"];

const LISTS: readonly TrustList[] = [
  list("honest", {
    before: entries([FIRST, SECOND]),
    after: entries([SECOND, FOURTH]),
    listedBefore: [FIRST, SECOND],
    listedAfter: [SECOND, FOURTH],
  }),
  list("ended", { before: entries(ADDRESSES), isAliveAfter: false, listedBefore: ADDRESSES, listedAfter: ADDRESSES }),
  list("bornworld", { before: ["!127.0.0.1", ...world()], after: ["!127.0.0.1", ...world()] }),
  list("bornbare", { hasNegative: false, before: world(), after: world() }),
  list("turnsworld", { hasNegative: false, after: world() }),
  list("turnshalf", { after: ["!127.0.0.1", "0.0.0.0/1 :127.0.0.2:Half"] }),
  list("turnspolicy", { hasNegative: false, category: "policy", after: world() }),
  list("third", {
    category: "policy",
    before: MUCH,
    after: MUCH,
    listedBefore: ADDRESSES,
    listedAfter: ADDRESSES,
  }),
  list("refuses", {
    before: entries([SECOND]),
    after: world("127.255.255.254"),
    listedBefore: [SECOND],
    listedAfter: [SECOND],
  }),
  list("parked", {
    before: entries([SECOND]),
    after: world("192.0.2.80"),
    listedBefore: [SECOND],
    listedAfter: [SECOND],
  }),
  list("world6", { kind: "ipv6", hasNegative: false, after: ["2000::/3 :127.0.0.2:Everything"] }),
];
/** Served by a script: `once` says "listed" once for each name, `drops` answers its test entry only, `rcode` refuses later. */
const SCRIPTED_IDS = ["once", "drops", "rcode"] as const;

const zoneOf = (id: string): string => `${id}.${SUFFIX}`;
const POINTS = { ipv4: ["127.0.0.2", "127.0.0.1"], ipv6: ["::ffff:7f00:2", "::ffff:7f00:1"] } as const;

const entryOf = ({
  id,
  kind,
  hasNegative,
  category = undefined,
}: Pick<TrustList, "id" | "kind" | "hasNegative"> & Partial<TrustList>) => ({
  id,
  name: `The lab's ${id}`,
  operator: "The lab",
  kinds: [kind],
  zone: zoneOf(id),
  codes: [
    {
      match: ["127.0.0.2"],
      id,
      name: id,
      meaning: "The lab calls it spam.",
      category: category ?? "spam",
      severity: "high",
    },
  ],
  test_points: {
    [kind]: { positive: [{ value: POINTS[kind][0] }], negative: hasNegative ? [POINTS[kind][1]] : [] },
  },
  default_enabled: true,
  budget: { queries_per_day: null, spacing_ms: 0 },
  delist_url: null,
  confidence: "A",
});

const catalogue = () => ({
  version: "lab",
  lists: [...LISTS.map(entryOf), ...SCRIPTED_IDS.map((id) => entryOf({ id, kind: "ipv4", hasNegative: true }))],
  excluded: [],
});

/** rbldnsd takes SOA and times to live from `$` lines of any file of a zone. */
const writeData = async (directory: string, phase: "before" | "after"): Promise<void> => {
  for (const each of LISTS) {
    const isAlive = phase === "before" || each.isAliveAfter;
    const soa = `$SOA 60 ns.${SUFFIX} root.${SUFFIX} 1 600 300 86400 2\n`;
    const point = isAlive ? `${POINTS[each.kind][0]} :127.0.0.2:Test entry\n` : "";
    await Bun.write(join(directory, `${each.id}-point`), `${soa}$TTL ${POINT_TTL_S}\n${point}`);
    await Bun.write(join(directory, `${each.id}-data`), `$TTL ${TARGET_TTL_S}\n${each[phase].join("\n")}\n`);
  }
};

const scripted = (hasRefused: () => boolean): DnsScript => {
  const told = new Set<string>();
  return (query) => {
    const name = query.name.toLowerCase();
    const answer = (ttl: number) =>
      encodeResponse(query, {
        answers:
          query.type === "TXT"
            ? [{ name: query.name, type: "TXT", ttl, data: ["Entry"] }]
            : [{ name: query.name, type: "A", ttl, data: "127.0.0.2" }],
      });
    const absent = () => encodeResponse(query, { rcode: NXDOMAIN, authorities: [soaFor(name)] });
    const isPoint = name.startsWith("2.0.0.127.");
    const isKnown = query.type === "A" || query.type === "TXT";
    if (name.endsWith(zoneOf("drops"))) return isPoint && isKnown ? answer(POINT_TTL_S) : undefined;
    if (name.endsWith(zoneOf("rcode"))) {
      if (hasRefused()) return encodeResponse(query, { rcode: REFUSED });
      return (isPoint || name.startsWith("2.40.20.100.")) && isKnown
        ? answer(isPoint ? POINT_TTL_S : TARGET_TTL_S)
        : absent();
    }
    if (isPoint && isKnown) return answer(POINT_TTL_S);
    if (!name.includes(".40.20.100.") || told.has(name)) return absent();
    told.add(name);
    return answer(300);
  };
};

const unboundConfiguration = (directory: string): string => {
  const stub = (id: string, { ip, port }: { readonly ip: string; readonly port: number }): string =>
    `stub-zone:\n  name: "${zoneOf(id)}"\n  stub-addr: ${ip}@${port}\n  stub-prime: no\n`;
  return `server:
  interface: ${UNBOUND.ip}@${UNBOUND.port}
  port: ${UNBOUND.port}
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  num-threads: 1
  do-daemonize: no
  do-ip6: no
  access-control: 127.0.0.0/8 allow
  do-not-query-localhost: no
  module-config: "iterator"
  local-zone: "test." transparent
${LISTS.map(({ id }) => stub(id, RBLDNSD)).join("")}${SCRIPTED_IDS.map((id) => stub(id, SCRIPTED)).join("")}remote-control:
  control-enable: no
`;
};

const Target = z.object({ id: z.uuid() });
const Seen = z.object({ status: z.string(), listed_on: z.array(z.string()), next_check_at: z.iso.datetime() });
const Checked = z.object({
  target: Seen,
  check: z.object({ added: z.array(z.string()), removed: z.array(z.string()), finished_at: z.string().nullable() }),
});
type Checked = z.infer<typeof Checked>;

const cellOf = (what: string, expected: string, got: string): Claim => claim(THEME, what, expected, got);

interface Watched {
  readonly address: string;
  readonly id: string;
}

const watch = async (headers: Record<string, string>, address: string): Promise<Watched> => {
  const added = await fetch(BASE, { method: "POST", headers, body: JSON.stringify({ target: address }) });
  return { address, id: Target.parse(await added.json()).id };
};

const checkAll = async (headers: Record<string, string>, targets: readonly Watched[]) => {
  const sinceMs = performance.now();
  const checked = await Promise.all(
    targets.map(async ({ address, id }): Promise<readonly [string, Checked]> => {
      const response = await fetch(`${BASE}/${id}/check?timeout=${CHECK_TIMEOUT_S}`, { method: "POST", headers });
      return [address, Checked.parse(await response.json())];
    }),
  );
  return { checked: new Map(checked), elapsedMs: performance.now() - sinceMs };
};

type Round = Awaited<ReturnType<typeof checkAll>>;

/** What each list says of each target: one cell for a pair. */
const truthCells = (phase: string, { checked }: Round, listed: (list: TrustList) => readonly string[]): Claim[] =>
  [...checked].flatMap(([address, { target }]) =>
    LISTS.filter(({ kind }) => kind === (address.includes(":") ? "ipv6" : "ipv4")).map((each) => {
      const said = (isOn: boolean) => (isOn ? "listed" : "free");
      return cellOf(
        `${phase}: ${address} on ${each.id}`,
        said(listed(each).includes(address)),
        said(target.listed_on.includes(each.id)),
      );
    }),
  );

const eventsOf = ({ checked }: Round): string =>
  [...checked]
    .flatMap(([address, { check }]) => [
      ...check.added.map((id) => `+${id} ${address}`),
      ...check.removed.map((id) => `-${id} ${address}`),
    ])
    .toSorted()
    .join(", ") || "none";

const startServers = async (supervisor: Supervisor, parent: string, unpacked: string, hasRefused: () => boolean) => {
  const directory = await serverDirectory(parent, THEME);
  await writeData(directory, "before");
  const type = { ipv4: "ip4set", ipv6: "ip6trie" } as const;
  const zones = LISTS.flatMap(({ id, kind }) =>
    ["point", "data"].map((part) => `${zoneOf(id)}:${type[kind]}:${id}-${part}`),
  );
  supervisor.start({
    name: "rbldnsd-trust",
    argv: [
      ...[`${unpacked}/usr/sbin/rbldnsd`, "-n", "-c", "1s", "-u", "nobody", "-w", directory],
      ...["-b", `${RBLDNSD.ip}/${RBLDNSD.port}`, ...zones],
    ],
  });
  await startDnsServer(scripted(hasRefused), { hostname: SCRIPTED.ip, port: SCRIPTED.port });
  await Bun.write(join(directory, "unbound.conf"), unboundConfiguration(directory));
  supervisor.start({ name: UNBOUND_NAME, argv: ["unbound", "-d", "-p", "-c", join(directory, "unbound.conf")] });
  await supervisor.waitForPort(UNBOUND_NAME, UNBOUND.ip, UNBOUND.port);
  return directory;
};

const commandLineCells = async (supervisor: Supervisor, subject: Subject): Promise<Claim[]> => {
  // Not a target of the service: for the list that says "listed" once, it is the first to ask.
  const address = "100.20.40.99";
  const argv = [subject.binary, "blocklist", "check", "--json", address];
  const printed = await supervisor.run(argv, { env: subject.environment, timeoutMs: 60_000 });
  const { listed_on: listedOn } = z.object({ listed_on: z.array(z.string()) }).parse(JSON.parse(printed));
  return [cellOf("command line: a new address", "third", listedOn.join(" "))];
};

/** Lists that lie, end, flap or drop what they are asked, behind a caching resolver; the truth of each is known. */
export const runTrust = async (supervisor: Supervisor, lab: Subject, unpacked: string): Promise<readonly Claim[]> => {
  let refuses = false;
  const directory = await startServers(supervisor, lab.directory, unpacked, () => refuses);
  const cataloguePath = join(directory, "catalogue.json");
  await Bun.write(cataloguePath, JSON.stringify(catalogue()));
  const environment = {
    ...lab.environment,
    POSTWARDEN_DNS_SERVERS: `${UNBOUND.ip}:${UNBOUND.port}`,
    POSTWARDEN_BLOCKLIST_CATALOGUE: cataloguePath,
    POSTWARDEN_BLOCKLIST_KEYS: "",
  };
  const subject = { ...lab, environment };
  const key = await startService(supervisor, subject, { name: "serve-trust", ...HTTP });
  const headers = { authorization: `Bearer ${key}` };
  const targets = await Promise.all([...ADDRESSES, IPV6].map((address) => watch(headers, address)));

  const before = await checkAll(headers, targets);
  const expectedBefore = LISTS.flatMap(({ id, listedBefore }) => listedBefore.map((ip) => `+${id} ${ip}`));
  const cells = [
    ...truthCells("at first", before, ({ listedBefore }) => listedBefore),
    cellOf("at first: events", [...expectedBefore, `+rcode ${SECOND}`].toSorted().join(", "), eventsOf(before)),
    cellOf(
      "at first: a list that drops all but its test entry does not hold the others up",
      "yes",
      before.elapsedMs < PASS_MS_MAX ? "yes" : `${Math.round(before.elapsedMs)} ms`,
    ),
  ];

  await writeData(directory, "after");
  refuses = true;
  await Bun.sleep(SETTLE_MS);
  const after = await checkAll(headers, targets);
  cells.push(
    ...truthCells("after", after, ({ listedAfter }) => listedAfter),
    cellOf("after: events", `+honest ${FOURTH}, -honest ${FIRST}`, eventsOf(after)),
    cellOf(
      "after: rcode REFUSED keeps what was listed",
      "yes",
      after.checked.get(SECOND)?.target.listed_on.includes("rcode") === true ? "yes" : "no",
    ),
    ...(await commandLineCells(supervisor, subject)),
  );

  await writeData(directory, "before");
  refuses = false;
  await Bun.sleep(SETTLE_MS);
  const back = await checkAll(headers, targets.slice(4));
  cells.push(cellOf("lists are back: events", "none", eventsOf(back)));
  return cells;
};
