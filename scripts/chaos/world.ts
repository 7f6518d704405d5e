/** The outside world of the chaos runs: a name server and four mail hosts on loopback, one a temperament. */
import { encodeResponse, startDnsServer, soaFor } from "../../src/testing/dns-server.ts";
import { SILENCE, startSmtpStub } from "../../src/testing/smtp-stub.ts";

/** Domains under `.chaos.test` and the host that takes their mail. */
const HOSTS = { good: "127.20.0.1", grey: "127.20.0.2", silent: "127.20.0.3", slow: "127.20.0.4" } as const;
export type Temperament = keyof typeof HOSTS;
export const TEMPERAMENTS = Object.keys(HOSTS) as Temperament[];

const SLOW_MS_MAX = 400;

const isKnown = (address: string): boolean => address.includes("exists");
const judge = (address: string): string => (isKnown(address) ? "250 2.1.5 Ok" : "550 5.1.1 User unknown");

export const startWorld = async () => {
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
    const temperament = TEMPERAMENTS.find((known) => name.includes(`${known}.chaos.test`));
    if (temperament === undefined) return encodeResponse(query, { rcode: 3, authorities: [soaFor(name)] });
    if (query.type === "MX" && !name.startsWith("mx.")) {
      const data = { preference: 10, exchange: `mx.${temperament}.chaos.test` };
      return encodeResponse(query, { answers: [{ type: "MX", name: query.name, ttl: 60, data }] });
    }
    if (query.type === "A")
      return encodeResponse(query, { answers: [{ type: "A", name: query.name, ttl: 60, data: HOSTS[temperament] }] });
    return encodeResponse(query, { authorities: [soaFor(name)] });
  });
  return {
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
