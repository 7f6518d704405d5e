/** The outside world of the chaos runs: a name server and four mail hosts on loopback, one a temperament. */
import { startDnsServer } from "../../src/testing/dns-server.ts";
import { SILENCE, startSmtpStub } from "../../src/testing/smtp-stub.ts";
import { respondAsList, respondWith } from "../harness/world.ts";

/** Domains under `.chaos.test` and the host that takes their mail. */
const HOSTS = { good: "127.20.0.1", grey: "127.20.0.2", silent: "127.20.0.3", slow: "127.20.0.4" } as const;
export type Temperament = keyof typeof HOSTS;
export const TEMPERAMENTS = Object.keys(HOSTS) as Temperament[];

const SLOW_MS_MAX = 400;

const isKnown = (address: string): boolean => address.includes("exists");
const judge = (address: string): string => (isKnown(address) ? "250 2.1.5 Ok" : "550 5.1.1 User unknown");

/** The zone of the one blocklist of these runs. */
const LIST_ZONE = "bl.chaos.test";

/** A catalogue of that list alone, for `POSTWARDEN_BLOCKLIST_CATALOGUE`. */
export const CATALOGUE = {
  version: "2026-01-01",
  excluded: [],
  lists: [
    {
      ...{ id: "chaoslist", name: "Chaos list", operator: "Chaos", kinds: ["ipv4"], zone: LIST_ZONE },
      codes: [
        {
          ...{ match: ["127.0.0.2"], id: "chaoslist", name: "Chaos list" },
          ...{ meaning: "Listed for a test.", category: "spam", severity: "high" },
        },
      ],
      refusals: [],
      test_points: { ipv4: { positive: [{ value: "127.0.0.2" }], negative: ["127.0.0.1"] } },
      budget: { queries_per_day: 100_000_000, spacing_ms: 0 },
      ...{ default_enabled: true, delist_url: null, confidence: "A" },
    },
  ],
};

const reversed = (ip: string): string => ip.split(".").toReversed().join(".");

export const startWorld = async () => {
  /** Addresses on the blocklist. */
  const listed = new Set<string>();
  const seen = new Set<string>();
  const greylist = (address: string): string => {
    if (seen.has(address)) return judge(address);
    seen.add(address);
    return "450 4.2.0 Greylisted, come back later";
  };
  const good = startSmtpStub({ hostname: HOSTS.good, rcpt: judge });
  const { port } = good;
  const stubs = [
    good,
    startSmtpStub({ hostname: HOSTS.grey, port, rcpt: greylist }),
    startSmtpStub({ hostname: HOSTS.silent, port, banner: () => SILENCE }),
    startSmtpStub({
      hostname: HOSTS.slow,
      port,
      rcpt: async (address) => {
        await Bun.sleep(Math.random() * SLOW_MS_MAX);
        return judge(address);
      },
    }),
  ];
  const dns = await startDnsServer((query) => {
    const name = query.name.toLowerCase();
    if (name.endsWith(`.${LIST_ZONE}`)) {
      const ip = reversed(name.slice(0, -LIST_ZONE.length - 1));
      const isListed = ip === "127.0.0.2" || listed.has(ip);
      return respondAsList(query, LIST_ZONE, isListed ? { A: ["127.0.0.2"], TXT: ["Listed for a test"] } : undefined);
    }
    const temperament = TEMPERAMENTS.find((known) => name.includes(`${known}.chaos.test`));
    if (temperament === undefined) return respondWith(query, undefined);
    const A = [HOSTS[temperament]];
    return respondWith(query, name.startsWith("mx.") ? { A } : { A, MX: [[10, `mx.${temperament}.chaos.test`]] });
  });
  return {
    listed,
    /** The binary's settings in this world, on a data directory. */
    settings: (dataDir: string): Readonly<Record<string, string>> => ({
      POSTWARDEN_DATA_DIR: dataDir,
      POSTWARDEN_PORT: "0",
      POSTWARDEN_DNS_SERVERS: `${dns.server.address}:${dns.server.port}`,
      POSTWARDEN_SMTP_PORT: String(port),
      POSTWARDEN_PROBE_ALLOW_NETWORKS: "127.20.0.0/16",
      POSTWARDEN_SMTP_CONNECT_TIMEOUT_MS: "1000",
      POSTWARDEN_SMTP_REPLY_TIMEOUT_MS: "1500",
      POSTWARDEN_GREYLIST_RETRIES_S: "1,1,2",
      POSTWARDEN_HELO_NAME: "probe.chaos.test",
    }),
    stop(): void {
      for (const stub of stubs) stub.stop();
      dns.stop();
    },
  };
};
