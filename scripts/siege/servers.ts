/**
 * The name server and the mail servers of the siege, in a process of their own: what they take to answer must not depend
 * on what the attacker is doing. Sends `{ dns, smtpPort }` to its parent once all of them listen, and ends with it.
 */
import { type SeenQuery, startDnsServer } from "../../src/testing/dns-server.ts";
import { SILENCE, startSmtpStub } from "../../src/testing/smtp-stub.ts";
import { type NameRecords, respondWith } from "../harness/world.ts";

const TTL_S = 300;
/** The provider takes its time for each group of recipients, so that many addresses are under way. */
const PROVIDER_MS = { least: 50, most: 450 };
const PROVIDER_RECIPIENTS = 25;

const HEALTHY_HOSTS = Array.from({ length: 8 }, (_, n) => `127.21.0.${n + 1}`);
const PROVIDER_HOSTS = Array.from({ length: 16 }, (_, n) => `127.21.1.${n + 1}`);
/** The hosts that accept connections and never send a banner. */
const SILENT_HOSTS = Array.from({ length: 500 }, (_, n) => `127.21.${2 + (n >> 8)}.${n & 255}`);

const addressIn = (hosts: readonly string[], n: number): string => hosts[n % hosts.length] ?? "";

/**
 * `healthyN.test` has a mail server that answers at once, `silentN.test` one that never does, `sharedN.test` one that all
 * of them share, `muteN.test` is never answered by the name server, `failN.test` with SERVFAIL.
 */
const recordsOf = (name: string): NameRecords | "silent" | undefined => {
  if (name === "mx.provider.test") return { A: PROVIDER_HOSTS };
  const [, host, kind, number] = /^(mx\.)?(healthy|silent|shared|mute|fail)(\d*)\.test$/.exec(name) ?? [];
  const mailHost: NameRecords = host === undefined ? { MX: [[10, `mx.${name}`]] } : {};
  switch (kind) {
    case "healthy":
      return { ...mailHost, A: [addressIn(HEALTHY_HOSTS, Number(number))] };
    case "silent":
      return { ...mailHost, A: [addressIn(SILENT_HOSTS, Number(number))] };
    case "shared":
      return { MX: [[10, "mx.provider.test"]] };
    case "mute":
      return "silent";
    case "fail":
      return { fails: true };
    default:
      return undefined;
  }
};

const respond = (query: SeenQuery): Buffer | undefined => {
  const records = recordsOf(query.name.toLowerCase());
  return records === "silent" ? undefined : respondWith(query, records, TTL_S);
};

const judge = (address: string): string => (address.startsWith("ada") ? "250 2.1.5 Ok" : "550 5.1.1 User unknown");

/** One host takes any free port; all others need the same one on their own addresses. */
const startMailHosts = (): number => {
  const [first = "", ...healthy] = HEALTHY_HOSTS;
  const { port } = startSmtpStub({ hostname: first, rcpt: judge });
  for (const hostname of healthy) startSmtpStub({ hostname, port, rcpt: judge });
  for (const hostname of SILENT_HOSTS) startSmtpStub({ hostname, port, banner: () => SILENCE });
  const slowly = async (address: string, nth: number): Promise<string> => {
    const { least, most } = PROVIDER_MS;
    if (nth % PROVIDER_RECIPIENTS === 0) await Bun.sleep(least + Math.random() * (most - least));
    return judge(address);
  };
  for (const hostname of PROVIDER_HOSTS) startSmtpStub({ hostname, port, rcpt: slowly });
  return port;
};

process.on("disconnect", () => process.exit());
// Ctrl-C in a terminal reaches the whole process group; the parent decides when this one ends.
process.on("SIGINT", () => undefined);
const { server } = await startDnsServer(respond);
process.send?.({ dns: `${server.address}:${server.port}`, smtpPort: startMailHosts() });
