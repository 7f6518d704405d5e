/** What stands around the binary on loopback: name servers, free ports, and clients that work in turns. */
import type { Answer } from "dns-packet";
import { encodeResponse, type SeenQuery, soaFor } from "../../src/testing/dns-server.ts";

/** A port of 127.0.0.1 on which nobody listened a moment ago. */
export const freePort = (): number => {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => undefined } });
  const { port } = listener;
  listener.stop(true);
  return port;
};

/** Does `work` for every item, `atOnce` of them at a time. The first that rejects ends it all. */
export const inTurns = async <T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> => {
  const left = [...items].values();
  const worker = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
};

const SERVFAIL = 2;
const NXDOMAIN = 3;
const TTL_S = 60;

/** The records of one name. `fails`: no response is given about it. */
export interface NameRecords {
  readonly A?: readonly string[];
  readonly MX?: ReadonlyArray<readonly [preference: number, exchange: string]>;
  readonly TXT?: readonly string[];
  readonly PTR?: readonly string[];
  readonly CNAME?: string;
  readonly fails?: true;
}

/** Text in strings of at most 255 octets (RFC 7208 §3.3). */
const stringsOf = (text: string): Buffer[] => {
  const bytes = Buffer.from(text);
  return Array.from({ length: Math.ceil(bytes.length / 255) }, (_, n) => bytes.subarray(n * 255, (n + 1) * 255));
};

const answersOf = (entry: NameRecords, { name, type }: SeenQuery, ttl: number): Answer[] => {
  const record = { name, ttl };
  if (entry.CNAME !== undefined) return [{ ...record, type: "CNAME", data: entry.CNAME }];
  switch (type) {
    case "A":
    case "PTR":
      return (entry[type] ?? []).map((data) => ({ ...record, type, data }));
    case "TXT":
      return (entry.TXT ?? []).map((text) => ({ ...record, type, data: stringsOf(text) }));
    case "MX":
      return (entry.MX ?? []).map(([preference, exchange]) => ({ ...record, type, data: { preference, exchange } }));
    default:
      return [];
  }
};

/** The response of a name server that knows these records of a name, or that the name does not exist. */
export const respondWith = (query: SeenQuery, entry: NameRecords | undefined, ttl = TTL_S): Buffer => {
  const authorities = [{ ...soaFor(query.name), ttl } as Answer];
  if (entry === undefined) return encodeResponse(query, { rcode: NXDOMAIN, authorities });
  if (entry.fails) return encodeResponse(query, { rcode: SERVFAIL });
  const answers = answersOf(entry, query, ttl);
  return encodeResponse(query, answers.length > 0 ? { answers } : { authorities });
};

/** The response of a blocklist about one entry: TTL 0, so that a listing that comes or goes is seen at once. */
export const respondAsList = (query: SeenQuery, zone: string, entry: NameRecords | undefined): Buffer => {
  const authorities = [{ ...soaFor(zone), name: zone, ttl: 0 } as Answer];
  if (entry === undefined) return encodeResponse(query, { rcode: NXDOMAIN, authorities });
  const answers = answersOf(entry, query, 0);
  return encodeResponse(query, answers.length > 0 ? { answers } : { authorities });
};

/** A configuration of unbound. `clauses` are lines of its part `server`, `zones` whole parts. */
export const unboundText = (options: {
  readonly directory: string;
  readonly port: number;
  readonly interfaces: readonly string[];
  readonly verbosity: number;
  readonly clauses: readonly string[];
  readonly zones: string;
}): string => `server:
${options.interfaces.map((place) => `  interface: ${place}\n`).join("")}  port: ${options.port}
  directory: "${options.directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  verbosity: ${options.verbosity}
  num-threads: 1
  so-rcvbuf: 4m
  do-daemonize: no
  do-ip6: no
  access-control: 127.0.0.0/8 allow
  module-config: "iterator"
  local-zone: "test." transparent
${options.clauses.map((clause) => `  ${clause}\n`).join("")}${options.zones}remote-control:
  control-enable: no
`;
