/**
 * The name server and the mail servers of the siege, in a process of their own: what they take to answer must not depend
 * on what the attacker is doing. Sends `{ dns, smtpPort }` to its parent once all of them listen, and ends with it.
 */
import type { Answer } from "dns-packet";
import { encodeResponse, type SeenQuery, startDnsServer } from "../../src/testing/dns-server.ts";
import { SILENCE, startSmtpStub } from "../../src/testing/smtp-stub.ts";
import { answerFor, HEALTHY_HOSTS, PROVIDER_HOSTS, SILENT_HOSTS } from "./names.ts";

const TTL_S = 300;
/** The provider takes its time for each group of recipients, so that many addresses are under way. */
const PROVIDER_MS = { least: 50, most: 450 };
const PROVIDER_RECIPIENTS = 25;
const SERVFAIL = 2;
const NXDOMAIN = 3;

/** A negative response counts only with the SOA of its zone (RFC 2308 §2). */
const SOA: Answer = {
  ...{ type: "SOA", name: "test", ttl: TTL_S },
  data: {
    mname: "ns.test",
    rname: "hostmaster.test",
    serial: 1,
    refresh: 3600,
    retry: 600,
    expire: 86_400,
    minimum: 300,
  },
};

const respond = (query: SeenQuery): Buffer | undefined => {
  const name = query.name.toLowerCase();
  const record = { name: query.name, ttl: TTL_S };
  if (name === "mx.provider.test" && query.type === "A") {
    return encodeResponse(query, { answers: PROVIDER_HOSTS.map((data) => ({ ...record, type: "A", data })) });
  }
  const answer = answerFor(name);
  if (answer.kind !== "exists") {
    if (answer.kind === "silent") return undefined;
    if (answer.kind === "servfail") return encodeResponse(query, { rcode: SERVFAIL });
    return encodeResponse(query, { rcode: NXDOMAIN, authorities: [SOA] });
  }
  if (query.type === "MX" && answer.mailHost !== null) {
    const data = { preference: 10, exchange: answer.mailHost };
    return encodeResponse(query, { answers: [{ ...record, type: "MX", data }] });
  }
  if (query.type === "A" && answer.address !== null) {
    return encodeResponse(query, { answers: [{ ...record, type: "A", data: answer.address }] });
  }
  return encodeResponse(query, { authorities: [SOA] });
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
