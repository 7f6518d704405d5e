import { join } from "node:path";
import { startDnsServer } from "../../src/testing/dns-server.ts";
import { type WrongAnswers, bareNxdomain, emptyAnswer, serveZone } from "../../src/testing/dns-wrong.ts";
import type { Zone } from "../../src/testing/dns-zone.ts";
import { unboundText } from "../harness/world.ts";
import { LAB_LISTS, SLOW_ZONE, servedZone } from "./blocklists-lists.ts";
import { DNS, RBLDNSD, SLOW_RBLDNSD, SUFFIX, SYSTEM_DNS_PORT, WRONG_DNS, addressOf } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";
import { ADDRESS_LIST, NAME_LIST } from "./rbldnsd.ts";
import { BAD_ZONES, zoneText } from "./zone.ts";

/** Zones below `lab.test` for which unbound asks the wrong server. */
const WRONG_ZONES = ["emptydns", "bareno"] as const;

const EMPTY = `emptydns.${SUFFIX}`;
const BARE = `bareno.${SUFFIX}`;

/** What is true. Everything below `emptydns` is answered with NOERROR and nothing, everything below `bareno` with NXDOMAIN, both without an SOA. */
const TRUTH: Zone = {
  [EMPTY]: { MX: [[10, `mx.${EMPTY}`]] },
  [`mx.${EMPTY}`]: { A: [addressOf("main")] },
  [`implicit.${EMPTY}`]: { A: [addressOf("main")] },
  [`emptyhost.${SUFFIX}`]: { MX: [[10, `mx.${EMPTY}`]] },
  [`exists.${SUFFIX}`]: { MX: [[10, `main.mx.${SUFFIX}`]] },
  [`main.mx.${SUFFIX}`]: { A: [addressOf("main")] },
};

const isBelow = (question: string, zone: string): boolean =>
  question.endsWith(` ${zone}`) || question.endsWith(`.${zone}`);

/** By name, so that it holds for names that nobody has thought of. */
const WRONG: WrongAnswers = new Proxy<WrongAnswers>(
  {},
  {
    get: (_, question) => {
      if (typeof question !== "string") return undefined;
      if (isBelow(question, EMPTY)) return emptyAnswer;
      if (isBelow(question, BARE)) return bareNxdomain;
      return question === `MX exists.${SUFFIX}` ? [emptyAnswer] : undefined;
    },
  },
);

/** Starts it inside this process, with which it ends; throws when its address is taken. */
export const startWrongDns = async (): Promise<void> => {
  await startDnsServer(serveZone(TRUTH, WRONG), { hostname: WRONG_DNS.ip, port: WRONG_DNS.port });
};

const NAME = "unbound";

const stubZone = (zone: string, { ip, port }: { readonly ip: string; readonly port: number }): string =>
  `stub-zone:\n  name: "${zone}"\n  stub-addr: ${ip}@${port}\n  stub-prime: no\n`;

const blocklist = (zone: string): string => stubZone(zone, zone === SLOW_ZONE ? SLOW_RBLDNSD : RBLDNSD);

const blocklists = (): readonly string[] => [
  ...[ADDRESS_LIST, NAME_LIST],
  ...LAB_LISTS.filter(({ datasets }) => datasets !== null).map(servedZone),
];

const configuration = (directory: string): string =>
  unboundText({
    directory,
    port: DNS.port,
    interfaces: [`${DNS.ip}@${DNS.port}`, `${DNS.ip}@${SYSTEM_DNS_PORT}`],
    verbosity: 1,
    clauses: [
      "do-not-query-localhost: no",
      'local-zone: "10.in-addr.arpa." transparent',
      'local-zone: "127.in-addr.arpa." transparent',
    ],
    // Parts called `server` may stand several times in unbound.conf; the bad zones use that.
    zones: `${Object.values(BAD_ZONES).join("")}auth-zone:
  name: "."
  zonefile: "${join(directory, "root.zone")}"
  for-downstream: no
  for-upstream: yes
  fallback-enabled: no
${WRONG_ZONES.map((zone) => stubZone(`${zone}.${SUFFIX}`, WRONG_DNS)).join("")}${blocklists().map(blocklist).join("")}`,
  });

/** Starts unbound on `DNS`, authoritative for the zone of the lab, and in front of rbldnsd for the blocklists. */
export const startDns = async (supervisor: Supervisor, directory: string): Promise<void> => {
  const configPath = join(directory, "unbound.conf");
  await Bun.write(join(directory, "root.zone"), zoneText());
  await Bun.write(configPath, configuration(directory));
  await supervisor.run(["unbound-checkconf", configPath]);
  supervisor.start({ name: NAME, argv: ["unbound", "-d", "-p", "-c", configPath] });
  await supervisor.waitForPort(NAME, DNS.ip, DNS.port);
};
