import { type Attack, type AttackContext, type Finding, flood, tallyOf } from "./attack.ts";
import { FORM_ORIGIN, FORM_PER_DAY } from "./service.ts";

const PATH = "/v1/email-verifications";
const FLOOD_MS = 15_000;
const AT_ONCE = 60;
const BYTE = 256;
/** Mail servers that respond and that do not, and names without an answer of the name server. */
const HOSTS = ["healthy", "silent", "mute", "fail", "nowhere"];

const FOREIGN = [
  "https://evil.example",
  "null",
  `${FORM_ORIGIN}.evil.example`,
  `${FORM_ORIGIN}, https://evil.example`,
  `https://evil.example, ${FORM_ORIGIN}`,
  `${FORM_ORIGIN}/`,
  FORM_ORIGIN.toUpperCase(),
  `https://${"a".repeat(8_000)}.example`,
];

/** A visitor of number `n`, each from a network of its own; some as proxies and forgers write them. */
const visitorOf = (n: number): string => {
  const [high, middle, low] = [(n >> 16) % BYTE, (n >> 8) % BYTE, n % BYTE];
  const addresses = [
    `2001:db8:${n.toString(16).slice(-4)}::1`,
    `11.${high}.${middle}.${low}`,
    `"><script>, 12.${high}.${middle}.${low}`,
    `${"1.1.1.1,".repeat(400)}13.${middle}.${low}.1`,
  ];
  return addresses[n % addresses.length] ?? "";
};

interface Sent {
  readonly method: "POST" | "OPTIONS";
  readonly origin: string;
  readonly key: string;
  readonly email: string;
}

/** One request of a page, behind a proxy that names its visitor; the status, 0 for none. */
const send = async ({ service, signal }: AttackContext, n: number, { method, origin, key, email }: Sent) => {
  const headers = {
    origin,
    "x-forwarded-for": visitorOf(n),
    forwarded: `for=192.0.2.${n % BYTE}`,
    "x-real-ip": "192.0.2.1",
  };
  const asked = {
    ...headers,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization",
  };
  const posted = { ...headers, authorization: `Bearer ${key}`, "content-type": "application/json" };
  try {
    const init = method === "POST" ? { headers: posted, body: JSON.stringify({ email }) } : { headers: asked };
    const response = await fetch(`${service.url}${PATH}?timeout=1`, { method, ...init, signal });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
};

const isAccepted = (status: number): boolean => status >= 200 && status < 300;

const forms: Attack = {
  name: "forms",
  about: `${AT_ONCE} visitors at once, each request from another network, send preflights and verifications from listed, foreign and forged origins`,
  isQuick: true,
  seconds: 40,
  settings: { POSTWARDEN_TRUSTED_PROXIES: "127.0.0.1" },
  prepare: async (context) => async (): Promise<readonly Finding[]> => {
    const { publishable } = context.keys.attacker;
    const [listed, foreign]: [number[], number[]] = [[], []];
    await flood(context, { atOnce: AT_ONCE, forMs: FLOOD_MS }, async (n) => {
      const isForeign = n % 3 === 0;
      const origin = isForeign ? (FOREIGN[(n / 3) % FOREIGN.length] ?? "") : FORM_ORIGIN;
      const key = publishable[n % publishable.length] ?? "";
      const email = `visitor${n}@${HOSTS[n % HOSTS.length]}${n % 500}.test`;
      const status = await send(context, n, { method: n % 2 === 0 ? "OPTIONS" : "POST", origin, key, email });
      if (isForeign) foreign.push(status);
      else if (n % 2 === 1) listed.push(status);
    });
    return [
      {
        ...{ what: "foreign origins accepted", value: foreign.filter(isAccepted).length, unit: "" },
        ...{ limit: { most: 0 }, note: tallyOf(foreign) },
      },
      {
        ...{ what: "verifications of listed origins", value: listed.filter(isAccepted).length, unit: "" },
        ...{ limit: { most: FORM_PER_DAY * publishable.length }, note: tallyOf(listed) },
      },
    ];
  },
};

/** Attacks on publishable keys, which anyone can read in a page. */
export const formAttacks: readonly Attack[] = [forms];
